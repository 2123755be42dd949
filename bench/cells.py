"""Suite `cells`: from running a new %%cuda cell to a kernel that can be launched, and the card that the cell shows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec

from pygpukit.benchmark.measure import interpreter_json
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "cells"
FIRST_ROW = "new cell to runnable, first of a process"
LATER_ROW = "new cell to runnable"
CARD_ROW = "card of a result, text and HTML"

# Runs in a fresh interpreter; argv: cache folder, cells after the first, and a number that makes their sources new.
SCRIPT = """
import json, os, sys, time
os.environ["PYGPUKIT_CACHE_DIR"] = sys.argv[1]
import pygpukit as gp
from IPython.core.interactiveshell import InteractiveShell
cells, number = int(sys.argv[2]), int(sys.argv[3])
shell = InteractiveShell.instance()
def timed(fn):
    begin = time.perf_counter_ns()
    value = fn()
    return (time.perf_counter_ns() - begin) * 1e-6, value
def run(code):
    done = shell.run_cell(code)
    done.raise_error()
    return done.result
def cell(at):
    return '''%%%%cuda
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor + %d.0f;
}''' % (number + at)
gp.empty(1); gp.synchronize()
run("%load_ext pygpukit")
times, results = zip(*[timed(lambda at=at: run(cell(at))) for at in range(cells + 1)])
x = shell.user_ns["x"] = gp.ones(256)
run("scale(x, 0.0, 256)")
assert x.to_numpy().tolist() == [number + cells] * 256, "the last cell's kernel is not the one that is bound"
cards = [timed(result._repr_mimebundle_)[0] for result in results]
print(json.dumps({"first": times[0], "later": times[1:], "cards": cards}))
"""


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    if find_spec("IPython") is None:
        for name in (FIRST_ROW, LATER_ROW, CARD_ROW):
            yield Unavailable(f"{CATEGORY}/{name}", "IPython is not installed")
        return
    first, later, cards = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(1 if quick else 5):
            times = interpreter_json(SCRIPT, folder, "3", str(1 + 10 * repeat))
            first.append(times["first"])
            later += times["later"]
            cards += times["cards"]
    yield from_samples(FIRST_ROW, CATEGORY, first, "ms")
    yield from_samples(LATER_ROW, CATEGORY, later, "ms")
    yield from_samples(CARD_ROW, CATEGORY, cards, "ms")
