"""A model on several workers: requests spread, errors in their own words, and workers that die under requests."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from alone import alone

import pygpukit as gp

pytest.importorskip("distributed", reason="extra dask")
pytestmark = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "2")


class Scales:
    """A model: it multiplies."""

    def __init__(self, factor: float) -> None:
        self.weight = gp.full(1, factor)

    def multiply(self, x: gp.GPUArray) -> tuple[gp.GPUArray, int]:
        return x * self.weight, os.getpid()

    def refuse(self) -> None:
        raise OSError("the disk is full")

    def stream(self) -> gp.Stream:
        return gp.Stream()

    def wait_for(self, path: str) -> int:
        """The process in which it waited until a file was there."""
        Path(f"{path}.{os.getpid()}.{random.random()}").touch()
        while not Path(path).exists():
            time.sleep(0.01)
        return os.getpid()

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def broken() -> None:
    raise LookupError("there are no weights")


def spread(folder: str) -> None:
    draw = random.Random(44)
    with gp.dask.cluster() as cluster, cluster.get_client(), gp.dask.serve(Scales, factor=3) as model:
        assert model.workers() == {"device-0": 0, "device-1": 0}
        host = np.arange(5, dtype=np.float32)
        answers = [one.result() for one in [model.submit("multiply", gp.from_numpy(host + n)) for n in range(12)]]
        for n, (product, _) in enumerate(answers):
            np.testing.assert_array_equal(product.to_numpy(), 3 * (host + n))
        with pytest.raises(
            gp.worker.WorkerTaskError, match=r"refuse\(\) on device-[01]: OSError: the disk is full"
        ) as raised:
            model.ask("refuse")
        assert raised.value.kind == "OSError" and "the disk is full" in raised.value.remote_traceback
        for method, words in (("nothing", "no attribute 'nothing'"), ("stream", "TypeError: .*pickle")):
            with pytest.raises(gp.worker.WorkerTaskError, match=words):
                model.ask(method)

        gate = Path(folder) / "gate"
        waiting = [model.submit("wait_for", str(gate)) for _ in range(4)]
        while len(list(Path(folder).iterdir())) < 4:  # all have begun: two on each worker
            time.sleep(0.01)
        assert sorted(model.workers().values()) == [2, 2]
        pids = {int(path.name.split(".")[1]) for path in Path(folder).iterdir()}
        assert len(pids) == 2
        victim = draw.choice(sorted(pids))
        os.kill(victim, signal.SIGKILL)
        while len(list(Path(folder).iterdir())) < 6:  # its two have begun again elsewhere
            time.sleep(0.01)
        gate.touch()
        survivors = [one.result() for one in waiting]
        assert len(survivors) == 4 and victim not in survivors
        while len(model.workers()) < 2:  # the restarted worker loads a replica in its place
            product, _ = model.ask("multiply", gp.ones(1))
            assert product.item() == 3
            time.sleep(0.05)

        with pytest.raises(
            gp.worker.WorkerDiedError, match=r"die\(\): the workers that were asked died: (device-.*){3}"
        ):
            model.ask("die")
        assert model.ask("multiply", gp.ones(1))[0].item() == 3  # as soon as a worker is there again
        model.close()
        with pytest.raises(gp.worker.WorkerError, match=r"the service is closed"):
            model.ask("multiply", gp.ones(1))


def test_requests_are_spread_and_outlive_their_workers(tmp_path: Path) -> None:
    alone(__file__, "spread", str(tmp_path))


def refused() -> None:
    with gp.dask.cluster() as cluster, cluster.get_client():
        with pytest.raises(
            gp.worker.WorkerTaskError, match=r"loading on device-[01]: LookupError: there are no weights"
        ):
            gp.dask.serve(broken)
        with pytest.raises(gp.worker.WorkerError, match="3 replicas need as many workers"):
            gp.dask.serve(Scales, factor=1, replicas=3)
        with gp.dask.serve(Scales, factor=2, replicas=1) as one:
            assert len(one.workers()) == 1


def test_a_model_that_cannot_be_loaded_says_why() -> None:
    alone(__file__, "refused")
