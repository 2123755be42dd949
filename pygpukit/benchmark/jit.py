"""Suite `jit`: new kernels, plain and with small floats; an unchanged cell again; the disk cache in a new process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .measure import interpreter_json
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "jit"

# The element type of a kernel, the header it needs, and how the kernel multiplies.
TYPES = {
    "small": ("float", "", "x[i] * factor"),
    "bf16": ("__nv_bfloat16", "#include <cuda_bf16.h>", "__float2bfloat16(__bfloat162float(x[i]) * factor)"),
    "fp8": ("__nv_fp8_e4m3", "#include <cuda_fp8.h>", "__nv_fp8_e4m3(float(x[i]) * factor)"),
}

# Each script runs in a fresh interpreter; argv: cache folder, a number that makes the source new, and one of TYPES.
PRELUDE = """
import json, os, struct, sys, time
os.environ["PYGPUKIT_CACHE_DIR"] = sys.argv[1]
import pygpukit as gp
def source(number):
    return '''%s
extern "C" __global__ void bench(%s* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    factor += %d.0f;
    if (i < n) x[i] = %s;
}''' % (sys.argv[4], sys.argv[3], number, sys.argv[5])
def timed(fn):
    begin = time.perf_counter_ns()
    fn()
    return (time.perf_counter_ns() - begin) * 1e-6
gp.empty(1); gp.synchronize()
if sys.argv[4]:  # the compiler writes its headers out once a version
    gp.jit(sys.argv[4] + "\\n__global__ void k() {}")
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
from pygpukit.core import records
COMPILED = 0
def compiles(since):
    data, _, _ = _core.ring_read(since)
    return sum((one.kind, one.b) == (records.COMPILE, COMPILED) for one in records.unpack(data))
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
    with tempfile.TemporaryDirectory() as folder:
        disk = []
        for kind in TYPES:
            first: list[float] = []
            later: list[float] = []
            for repeat in range(repeats):
                number = 1 + repeat * 10
                try:
                    new = _run(NEW, folder, number, kind)
                except RuntimeError as error:  # this backend's compiler has no such header
                    first = []
                    yield Unavailable(f"{CATEGORY}/new {kind} kernel", str(error).strip().splitlines()[-1])
                    break
                first.append(new["first"])
                later += new["later"]
                if kind == "small":
                    disk += [_run(DISK, folder, number + i, kind) for i in range(2)]
            if first:
                yield from_samples(f"new {kind} kernel, first of a process", CATEGORY, first, "ms")
                yield from_samples(f"new {kind} kernel", CATEGORY, later, "ms")
        yield from_samples("disk hit in a new process", CATEGORY, disk, "ms")
        if find_spec("IPython") is None:
            for name in ("unchanged cell again", "compiles by unchanged cell"):
                yield Unavailable(f"{CATEGORY}/{name}", "IPython is not installed")
            return
        cell = _run(CELL, str(Path(folder) / "cells"), 1, "small")
        yield from_samples("unchanged cell again", CATEGORY, cell["again"], "ms")
        yield BenchmarkResult("compiles by unchanged cell", CATEGORY, value=cell["compiles"], unit="count")


def _run(script: str, folder: str, number: int, kind: str) -> Any:
    element, header, product = TYPES[kind]
    return interpreter_json(script, folder, str(number), element, header, product)
