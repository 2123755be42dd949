"""Suite `jit`: a new small kernel, an unchanged cell again, and the disk cache in a new process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from .measure import interpreter_json
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "jit"

# Each script runs in a fresh interpreter; argv: cache folder, and a number that makes the source new.
PRELUDE = """
import json, os, struct, sys, time
os.environ["PYGPUKIT_CACHE_DIR"] = sys.argv[1]
import pygpukit as gp
def source(number):
    return '''extern "C" __global__ void bench(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor + %d.0f;
}''' % number
def timed(fn):
    begin = time.perf_counter_ns()
    fn()
    return (time.perf_counter_ns() - begin) * 1e-6
gp.empty(1); gp.synchronize()
number = int(sys.argv[2])
"""
NEW = (
    PRELUDE
    + """
first = timed(lambda: gp.jit(source(number), func="bench"))
later = [timed(lambda i=i: gp.jit(source(number + i), func="bench")) for i in range(1, 4)]
print(json.dumps({"first": first, "later": later}))
"""
)
DISK = (
    PRELUDE
    + """
print(json.dumps(timed(lambda: gp.jit(source(number), func="bench"))))
"""
)
CELL = (
    PRELUDE
    + """
from IPython.core.interactiveshell import InteractiveShell
from pygpukit import _core
COMPILE, COMPILED = 48, 0
def compiles(since):
    data, _, _ = _core.ring_read(since)
    records = [data[i:i + 64] for i in range(0, len(data), 64)]
    heads = [struct.unpack_from("<16xH22xQ", r) for r in records]  # kind, and b: where the image came from
    return heads.count((COMPILE, COMPILED))
shell = InteractiveShell.instance()
def run(cell):
    shell.run_cell(cell).raise_error()
run("%load_ext pygpukit")
cell = "%%cuda\\n" + source(number)
run(cell)
head = _core.ring_head()
again = [timed(lambda: run(cell)) for _ in range(20)]
print(json.dumps({"again": again, "compiles": compiles(head)}))
"""
)


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    repeats = 1 if quick else 5
    first, later, disk = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(repeats):
            number = 1 + repeat * 10
            new = interpreter_json(NEW, folder, str(number))
            first.append(new["first"])
            later += new["later"]
            disk += [interpreter_json(DISK, folder, str(number + i)) for i in range(2)]
        yield from_samples("new small kernel, first of a process", CATEGORY, first, "ms")
        yield from_samples("new small kernel", CATEGORY, later, "ms")
        yield from_samples("disk hit in a new process", CATEGORY, disk, "ms")
        if find_spec("IPython") is None:
            for name in ("unchanged cell again", "compiles by unchanged cell"):
                yield Unavailable(f"{CATEGORY}/{name}", "IPython is not installed")
            return
        cell = interpreter_json(CELL, str(Path(folder) / "cells"), "1")
        yield from_samples("unchanged cell again", CATEGORY, cell["again"], "ms")
        yield BenchmarkResult("compiles by unchanged cell", CATEGORY, value=cell["compiles"], unit="count")
