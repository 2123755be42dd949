"""Suite `imports`: what `import pygpukit` costs over a bare interpreter, and what it loads."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from .measure import interpreter_json, interpreter_ms
from .result import BenchmarkResult, Unavailable, from_samples

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


def _over_bare(module: str, rounds: int) -> list[float]:
    """Milliseconds over a bare interpreter that ran just before: a slow moment meets both."""
    code = f"import {module}"
    interpreter_ms(code)  # bytecode and the page cache are warm afterwards
    pairs = [(interpreter_ms("pass"), interpreter_ms(code)) for _ in range(rounds)]
    return [loaded - bare for bare, loaded in pairs]


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
