"""Suite `dask`: a map over files by one worker and by two, of work that waits as reading from elsewhere does."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from pygpukit.benchmark.result import BenchmarkResult, Unavailable

CATEGORY = "dask"
FILES, QUICK_FILES = 1000, 60
VALUES = 4096  # float32 in a file
WAIT_S = 0.05
WARMUP = 20  # files: each worker opens its device


def total(path: Path, wait_s: float) -> float:
    """The sum of a file's values, by the device, after a wait."""
    import pygpukit as gp

    time.sleep(wait_s)
    return float(gp.from_numpy(np.load(path)).sum())


def measured(paths: list[Path], workers: int) -> float:
    """Seconds of a map over all files on so many workers, which are there before."""
    import pygpukit as gp

    work = partial(total, wait_s=WAIT_S)
    with gp.dask.cluster([0] * workers) as cluster, cluster.get_client() as client:
        client.wait_for_workers(workers)
        list(gp.dask.map(work, paths[:WARMUP], client=client, progress=False))
        begin = time.perf_counter()
        sums = list(gp.dask.map(work, paths, client=client, progress=False))
        took = time.perf_counter() - begin
    wrong = [place for place, value in enumerate(sums) if value != place * VALUES]
    if wrong:
        raise AssertionError(f"the sums of files {wrong[:5]} are wrong or out of order")
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
        rates = {}
        for workers in (1, 2):
            rates[workers] = count / measured(paths, workers)
            yield BenchmarkResult(
                "map over files",
                CATEGORY,
                {"workers": workers, **params},
                value=rates[workers],
                unit="files/s",
                better="higher",
            )
        yield BenchmarkResult(
            "two workers over one", CATEGORY, params, value=rates[2] / rates[1], unit="x", better="higher"
        )
