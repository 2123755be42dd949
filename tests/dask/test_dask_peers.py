"""Arrays from device to device between the workers of a host: their bits, their ways, and ends at any moment."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from alone import alone

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import DriverError

pytest.importorskip("distributed", reason="extra dask")

from pygpukit.dask import connections, desk, frames, ways

SIMULATED = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")
LARGE = (1 << 18) + 3  # elements of float32: enough for a handover


class Connection:
    """Stands for one of Dask's."""


def random_array(count: int = LARGE) -> tuple[gp.GPUArray, np.ndarray]:
    host = np.random.default_rng().standard_normal(count).astype(np.float32)
    return gp.from_numpy(host), host


def context(connection: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """What Dask says of a message for this process."""
    told = {"here": desk.here(), "desk": desk.own().name, "connection": connection} | (more or {})
    return {"recipient": {"address": "tcp://reader:1", connections.KEY: told}}


def lent(array: gp.GPUArray) -> bool:
    """True while the array's block may not leave its place for another process."""
    try:
        _core.pool_evict(array.device, array.block)
    except RuntimeError:
        return True
    assert array.to_numpy() is not None  # back
    return False


def test_an_array_is_copied_to_the_desk_and_nobody_holds_the_first() -> None:
    reader = Connection()
    name = desk.own().connect(reader)
    array, host = random_array(3 * LARGE)
    for view, want in ((array, host), (array[::-3], host[::-3]), (array[5:-7], host[5:-7])):
        header, data = frames._laid(view, context(name))
        assert not data and desk.own().waiting == 1
        array_there = frames._taken(header, data)
        np.testing.assert_array_equal(array_there.to_numpy(), want)
        assert array_there.is_contiguous() and desk.own().waiting == 0
        assert not lent(array)


def test_what_no_message_tells_of_goes_with_its_connection() -> None:
    reader = Connection()
    name = desk.own().connect(reader)
    array, _ = random_array()
    before = gp.memory.stats()["used"]
    frames._laid(array, context(name))
    assert desk.own().waiting == 1 and gp.memory.stats()["used"] > before
    del reader
    gc.collect()
    assert desk.own().waiting == 0 and gp.memory.stats()["used"] == before
    with pytest.raises(desk.NotTakenError, match="the connection has ended"):
        desk.lay(array, desk.own().name, name)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"here": {"host": "another"}}, "the reader is on another host, in another container or has no such devices"),
        ({"desk": f"pygpukit-{uuid.uuid4().hex}"}, "Connection refused"),
        ({"connection": "none"}, "the connection has ended"),
        (None, "the reader tells of no desk"),
    ],
)
def test_why_an_array_goes_over_host_memory_is_counted_and_told_once(
    told: dict[str, Any] | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = desk.own().connect(reader := Connection())
    where = {"recipient": {"address": "tcp://a:1"}} if told is None else context(name, told)
    ways._logged.clear()
    before = ways.stats()
    array, host = random_array()
    for _ in range(2):
        with pytest.raises(NotImplementedError):  # Dask pickles it then
            frames._laid(array, where)
        _, parts = frames._frames_of(array)
        np.testing.assert_array_equal(parts[-1].view(np.float32), host)
    after = ways.stats()
    (found,) = [one for one in after["host because"] if reason in one]
    assert after["host because"][found] - before["host because"].get(found, 0) == 2
    assert after["sent"]["host"] - before["sent"]["host"] == 2 * host.nbytes
    assert after["sent"]["peer"] == before["sent"]["peer"]
    assert [found in one for one in caplog.messages].count(True) == 1
    assert not lent(array)
    del reader


def test_a_handle_that_does_not_open_is_said_to_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(descriptor: int, nbytes: int) -> int:
        raise DriverError("these devices have no access")

    monkeypatch.setattr(native, "import_segment", closed)
    name = desk.own().connect(reader := Connection())
    array, _ = random_array()
    with pytest.raises(desk.NotTakenError, match="these devices have no access"):
        desk.lay(array, desk.own().name, name)
    assert desk.own().waiting == 0 and not lent(array)
    del reader


@pytest.fixture
def fake() -> Iterator[tuple[str, socket.socket]]:
    """A desk of which nothing is to be expected."""
    name = f"pygpukit-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        yield name, listening


def test_a_reader_that_ends_or_says_nothing(fake: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    name, listening = fake
    array, _ = random_array()
    thread = threading.Thread(target=lambda: listening.accept()[0].close())
    thread.start()
    with pytest.raises(desk.NotTakenError, match=r"ended meanwhile|Broken pipe|reset by peer"):
        desk.lay(array, name, "any")
    thread.join()
    monkeypatch.setattr(desk, "PATIENCE_S", 0.05)
    with pytest.raises(desk.NotTakenError, match=r"no answer within 0\.05 s"):  # nobody accepts
        desk.lay(array, name, "any")
    assert not lent(array)


def test_others_do_not_end_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    name = desk.own().connect(reader := Connection())
    array, host = random_array()
    for words in (b"", b"\x05\0\0\0", b"\xff" * 9, b"\x02\0\0\0{}"):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(f"\0{desk.own().name}")
            line.sendall(words)
    header, _ = frames._laid(array, context(name))
    np.testing.assert_array_equal(frames._taken(header, []).to_numpy(), host)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(desk.NotTakenError, match="the other process is user"):
        desk.lay(array, desk.own().name, name)
    del reader


def made(count: int) -> gp.GPUArray:
    return gp.arange(count, dtype="float32")


def copied(tree: Any) -> Any:
    return {"whole": tree, "parts": [tree[::2], (tree[:7], "text")]}


def summed(tree: Any) -> list[float]:
    return [
        float(x.to_numpy().astype(np.float64).sum()) for x in (tree["whole"], tree["parts"][0], tree["parts"][1][0])
    ]


def sums(count: int) -> list[float]:
    host = np.arange(count, dtype=np.float64)
    return [float(part.sum()) for part in (host, host[::2], host[:7])]


def patient() -> None:
    """However busy the machine is."""
    desk.PATIENCE_S = 600.0


def between_workers() -> None:
    patient()
    with gp.dask.cluster(memory_limit="1GB") as cluster, cluster.get_client() as client:
        client.run(patient)
        first, second = sorted(client.scheduler_info()["workers"])
        tree = client.submit(copied, client.submit(made, LARGE, workers=[first]), workers=[first])
        assert client.submit(summed, tree, workers=[second]).result() == sums(LARGE)
        stats = client.run(gp.dask.stats)
        whole, small = 4 * LARGE, 4 * (len(range(0, LARGE, 2)) + 7)
        ways_there = stats[first]["sent"], stats[second]["received"], stats[first]["host because"]
        assert ways_there == (*[{"peer": whole, "host": small}] * 2, {"smaller than 1 MiB": 2})
        (scattered,) = client.scatter([made(LARGE)], workers=[first], direct=True)
        assert client.submit(float, client.submit(gp.sum, scattered, workers=[first])).result() > 0
        assert client.run(gp.dask.stats)[first]["received"]["peer"] == gp.dask.stats()["sent"]["peer"] == whole
        assert client.gather(scattered).shape == (LARGE,)  # over Dask's scheduler, which opens nothing
        assert client.run(lambda: desk.own().waiting) == {first: 0, second: 0}


@SIMULATED
def test_arrays_go_from_worker_to_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "2")
    alone(__file__, "between_workers")


POINTS = {  # whose end, and around which call of it: before it, or after it
    "writer before the handle": ("send", "before"),
    "writer after the handle": ("send", "after"),
    "writer after the answer": ("lay", "after"),
    "reader before it opens": ("take_over", "before"),
    "reader after the copy": ("_lay", "after"),
    "reader before it takes": ("take", "before"),
}


def die_once(call: str, when: str, pid: int) -> None:
    """Let a worker's process kill itself around a call."""
    assert os.getpid() == pid
    owner: Any = desk.Desk if hasattr(desk.Desk, call) else desk
    original = getattr(owner, call)

    def last(*args: Any) -> Any:
        if when == "after":
            original(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, call, last)


def an_end(point: str) -> None:
    from distributed import wait

    call, when = POINTS[point]
    with gp.dask.cluster(memory_limit="1GB") as cluster, cluster.get_client() as client:
        names = {one["name"]: address for address, one in client.scheduler_info()["workers"].items()}
        first, second = names["device-0"], names["device-1"]
        dying, living = (first, second) if point.startswith("writer") else (second, first)
        client.run(patient)
        pids = client.run(os.getpid)
        used = client.run(lambda: gp.memory.stats()["used"])[living]
        x = client.submit(made, LARGE, workers=[first], allow_other_workers=True)
        wait(x)
        client.run(partial(die_once, call, when, pids[dying]), workers=[dying])
        total = client.submit(lambda x: float(x.to_numpy()[-1]), x, workers=[second], allow_other_workers=True)
        assert total.result() == LARGE - 1
        assert pids[dying] not in client.run(os.getpid).values()  # it did die
        del x, total

        def left() -> tuple[int, int]:
            gc.collect()
            return desk.own().waiting, gp.memory.stats()["used"]

        for _ in range(100):
            found = client.run(left, workers=[living])[living]
            if found == (0, used):
                return
        raise AssertionError(found)


@SIMULATED
@pytest.mark.turns(6)
@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_is_killed_costs_no_result_and_no_memory(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "2")
    alone(__file__, "an_end", point)
