"""Suite `dask`: a map over files by one worker and by two, of work that waits as reading from elsewhere does."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from pygpukit.benchmark.result import BenchmarkResult, Unavailable

CATEGORY = "dask"
FILES, QUICK_FILES = 1000, 60
PART = 200  # files at a time
WORKERS = (1, 2)
VALUES = 4096  # float32 in a file
WAIT_S = 0.05
WARMUP = 20  # files: each worker opens its device


def total(path: Path, wait_s: float) -> float:
    """The sum of a file's values, by the device, after a wait."""
    import pygpukit as gp

    time.sleep(wait_s)
    return float(gp.from_numpy(np.load(path)).sum())


def measured(paths: list[Path]) -> dict[int, float]:
    """Seconds of a map over all files by one worker and by two, in turns: what else the machine does slows both."""
    import pygpukit as gp

    work, took = partial(total, wait_s=WAIT_S), dict.fromkeys(WORKERS, 0.0)
    with ExitStack() as stack:
        clients = {}
        for workers in WORKERS:
            cluster = stack.enter_context(gp.dask.cluster([0] * workers))
            clients[workers] = cluster.get_client()
            stack.callback(clients[workers].close)
            list(gp.dask.map(work, paths[:WARMUP], client=clients[workers], progress=False))
        for first in range(0, len(paths), PART):
            for workers, client in clients.items():
                begin = time.perf_counter()
                sums = list(gp.dask.map(work, paths[first : first + PART], client=client, progress=False))
                took[workers] += time.perf_counter() - begin
                if sums != [place * VALUES for place in range(first, first + len(sums))]:
                    raise AssertionError(f"the sums of the files from {first} on are wrong or out of order")
    return took


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """Files a second by one worker and by two, and the second over the first."""
    from importlib.util import find_spec

    if find_spec("distributed") is None:
        yield Unavailable(CATEGORY, "distributed is not installed (extra dask)")
        return
    count = QUICK_FILES if quick else FILES
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{place}.npy" for place in range(count)]
        for place, path in enumerate(paths):
            np.save(path, np.full(VALUES, place, np.float32))
        params = {"files": count, "wait": f"{WAIT_S * 1e3:g} ms"}
        rates = {workers: count / took for workers, took in measured(paths).items()}
        for workers, rate in rates.items():
            yield BenchmarkResult(
                "map over files", CATEGORY, {"workers": workers, **params}, value=rate, unit="files/s", better="higher"
            )
        yield BenchmarkResult(
            "two workers over one", CATEGORY, params, value=rates[2] / rates[1], unit="x", better="higher"
        )
