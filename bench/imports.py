"""Suite `imports`: what `import pygpukit` costs over a bare interpreter, and what it loads."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from pygpukit.benchmark.measure import interpreter_json
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "imports"
PEERS = ("numpy", "cupy", "cuda.core", "triton", "torch")

LOADED = """
import sys
before = set(sys.modules)
import pygpukit
import json, os
names = sorted(set(sys.modules) - before)
heavy = [n for n in ("numpy", "IPython", "ipykernel", "ipywidgets") if n in sys.modules]
maps = "/proc/self/maps"
if os.path.exists(maps) and "libcuda.so" in open(maps).read():
    heavy.append("libcuda")
print(json.dumps({"modules": names, "heavy": heavy}))
"""

# By the interpreter's own clock: starting and ending a process varies by more than a light import takes.
IMPORT = """
import time
begin = time.perf_counter_ns()
import {module}
print((time.perf_counter_ns() - begin) / 1e6)
"""


def _over_bare(module: str, rounds: int) -> list[float]:
    """Milliseconds that importing the module adds to a fresh interpreter's life."""
    code = IMPORT.format(module=module)
    interpreter_json(code)  # bytecode and the page cache are warm afterwards
    return [interpreter_json(code) for _ in range(rounds)]


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    yield from_samples(
        "import pygpukit over a bare interpreter", CATEGORY, _over_bare("pygpukit", 7 if quick else 21), "ms"
    )
    loaded = interpreter_json(LOADED)
    yield BenchmarkResult("modules loaded by import pygpukit", CATEGORY, value=len(loaded["modules"]), unit="count")
    yield BenchmarkResult(
        "numpy, IPython or libcuda loaded by import",
        CATEGORY,
        value=len(loaded["heavy"]),
        unit="count",
        correct=not loaded["heavy"],
    )


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    mine = ours[0]
    for module in PEERS:
        top = module.partition(".")[0]
        if find_spec(top) is None:
            yield Unavailable(f"{CATEGORY}/import {module}", "not installed")
            continue
        theirs = from_samples("", CATEGORY, _over_bare(module, 3), "ms")
        yield BenchmarkResult(mine.name, CATEGORY, value=mine.value, unit="ms", peer=module, peer_value=theirs.value)
