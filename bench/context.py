"""Suite `context`: from a started interpreter to the first array on the device."""

from __future__ import annotations

from collections.abc import Iterator

from pygpukit.benchmark.measure import interpreter_json
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "context"

FIRST = """
import json, time
import pygpukit as gp
begin = time.perf_counter_ns()
gp.empty(1)
gp.synchronize()
ready = time.perf_counter_ns()
gp.ones(1).to_numpy()
print(json.dumps([(ready - begin) * 1e-6, (time.perf_counter_ns() - ready) * 1e-6]))
"""


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    pairs = [interpreter_json(FIRST) for _ in range(3 if quick else 7)]
    yield from_samples("backend, context and first allocation", CATEGORY, [p[0] for p in pairs], "ms")
    yield from_samples("then the first result on the host", CATEGORY, [p[1] for p in pairs], "ms")
