"""Maps over arrays and files on real worker processes with a simulated device each, which die now and then."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alone import alone

import pygpukit as gp

pytest.importorskip("distributed", reason="extra dask")
SIMULATED = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")
pytestmark = SIMULATED


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "2")


@contextmanager
def two_workers() -> Iterator[Any]:
    with gp.dask.cluster() as cluster, cluster.get_client():
        yield cluster


def total(array: gp.GPUArray) -> tuple[float, int, int]:
    return float(array.sum()), gp.device_count(), os.getpid()


def doubled(item: dict[str, gp.GPUArray]) -> list[gp.GPUArray]:
    return [item["x"] * 2]


def mean_of_file(path: Path) -> float:
    return float(gp.from_numpy(np.load(path)).mean())


def refuse_even(number: int) -> int:
    if number % 2 == 0:
        raise KeyError(f"{number} is even")
    return number


def not_to_be_sent(number: int) -> Any:
    return gp.Stream() if number == 1 else number


def arrays_and_files(folder: str) -> None:
    rng = np.random.default_rng()
    hosts = [rng.standard_normal(size).astype(np.float32) for size in range(1, 24)]
    paths = [Path(folder) / f"{place}.npy" for place in range(len(hosts))]
    for path, host in zip(paths, hosts, strict=True):
        np.save(path, host)
    with two_workers() as cluster:
        answers = list(gp.dask.map(total, map(gp.from_numpy, hosts)))
        want = [float(np.sum(host, dtype=np.float64)) for host in hosts]
        np.testing.assert_allclose([sum_ for sum_, _, _ in answers], want, rtol=1e-4, atol=1e-5)
        assert {count for _, count, _ in answers} == {1}  # each sees its device alone
        assert {pid for *_, pid in answers} <= {one.pid for one in cluster.workers.values()} - {os.getpid()}

        ((back,),) = gp.dask.map(doubled, [{"x": gp.from_numpy(hosts[-1])}])
        np.testing.assert_array_equal(back.to_numpy(), hosts[-1] * 2)

        np.testing.assert_allclose(
            list(gp.dask.map(mean_of_file, paths, progress=False)),
            [h.mean(dtype=np.float64) for h in hosts],
            rtol=1e-4,
            atol=1e-6,
        )
        missing = Path(folder) / "none.npy"
        with pytest.raises(gp.worker.WorkerTaskError, match=r"item 2 \(.*none\.npy.*\): FileNotFoundError: ") as raised:
            list(gp.dask.map(mean_of_file, [*paths[:2], missing, *paths[2:]]))
        assert raised.value.kind == "FileNotFoundError" and "mean_of_file" in raised.value.remote_traceback

        results = list(gp.dask.map(refuse_even, iter(range(9)), errors="return"))
        assert [one for one in results if isinstance(one, int)] == [1, 3, 5, 7]
        assert str(results[4]) == "item 4 (4): KeyError: '4 is even'"
        assert list(gp.dask.map(refuse_even, [])) == []
        zero, stream = gp.dask.map(not_to_be_sent, range(2), errors="return")
        assert zero == 0 and re.match(r"item 1 \(1\): TypeError: .*pickle", str(stream)), stream

        drawn: list[int] = []
        endless = gp.dask.map(refuse_even, (drawn.append(n) or n for n in iter(lambda: 7, None)))
        assert [next(endless) for _ in range(30)] == [7] * 30
        endless.close()
        assert len(drawn) <= 30 + 2 * (64 + 2)  # no more are drawn than may wait


def test_results_come_in_order_and_errors_in_their_own_words(tmp_path: Path) -> None:
    alone(__file__, "arrays_and_files", str(tmp_path))


def square_unless_marked(item: tuple[int, str]) -> int:
    """Dies at the first try of a marked item: the file is there."""
    number, marker = item
    if marker and Path(marker).exists():
        Path(marker).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def workers_die(folder: str) -> None:
    draw = random.Random(44)
    marked = {place: Path(folder) / str(place) for place in draw.sample(range(40), 2)}
    for path in marked.values():
        path.touch()
    items = [(place, str(marked.get(place, ""))) for place in range(40)]
    with two_workers() as cluster:
        results = []
        for result in gp.dask.map(square_unless_marked, items, retries=3):
            results.append(result)
            if len(results) in (5, 20):  # and one that is killed from outside, whatever it does just then
                alive = [one.pid for one in cluster.workers.values() if one.pid]
                if alive:
                    os.kill(draw.choice(alive), signal.SIGKILL)
        assert results == [place * place for place in range(40)]
        assert not any(path.exists() for path in marked.values())


def test_items_of_workers_that_die_are_run_again(tmp_path: Path) -> None:
    alone(__file__, "workers_die", str(tmp_path))


def deadly(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def one_kills() -> None:
    with two_workers() as cluster:
        results = list(gp.dask.map(deadly, range(8), errors="return"))
        assert [one for one in results if isinstance(one, int)] == [0, 1, 2, 4, 5, 6, 7]
        assert isinstance(results[3], gp.worker.WorkerDiedError)
        assert str(results[3]).startswith(
            "item 3 (3), also by itself: every worker that ran it died; the last was device-"
        )
        names = {one["name"] for one in cluster.scheduler_info["workers"].values()}
        assert names <= {"device-0", "device-1"}


def test_an_item_that_kills_workers_is_parted_from_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    alone(__file__, "one_kills")


def refusals() -> None:
    with pytest.raises(ValueError, match="No clients found"):
        gp.dask.map(refuse_even, [1])
    from distributed import Client

    with Client(processes=False, n_workers=1, dashboard_address=None, protocol="tcp"):
        for call in (lambda: gp.dask.map(refuse_even, [1]), lambda: gp.dask.serve(dict)):
            with pytest.raises(gp.worker.WorkerError, match=r"pygpukit dask worker ADDRESS|this cluster has 0"):
                call()
        for wrong in ({"retries": -1}, {"errors": "ignore"}):
            with pytest.raises(gp.InvalidSpecError, match=next(iter(wrong))):
                gp.dask.map(refuse_even, [1], **wrong)
        with pytest.raises(gp.InvalidSpecError, match="function=3 cannot be called"):
            gp.dask.map(3, [1])
        for wrong in ({"threads": 0}, {"retries": -1}, {"replicas": 0}):
            with pytest.raises(gp.InvalidSpecError, match=f"{next(iter(wrong))}="):
                gp.dask.serve(dict, **wrong)
        with pytest.raises(gp.InvalidSpecError, match="model=3"):
            gp.dask.serve(3)
    with pytest.raises(gp.DeviceMismatchError, match="devices: there is no device 2"):
        gp.dask.cluster([0, 2])
    with pytest.raises(gp.InvalidSpecError, match="memory_limit='much'"):
        gp.dask.cluster(memory_limit="much")


def test_what_cannot_be_done_is_refused_before_anything_runs() -> None:
    alone(__file__, "refusals")
