"""Suite `determinism`: reductions and normalisations run many times over; how many different results there were.

Each operation runs on the default stream alone, on a stream of its own beside one that is kept busy, in a scheduled
task with half of the device, and as a graph where a capture takes it. A run's result is told by a 64-bit digest that a
kernel makes on the device; all digests of a row form one set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pygpukit.benchmark.operator_cases import function
from pygpukit.benchmark.result import BenchmarkResult, Unavailable

CATEGORY = "determinism"
WORST_ROW = "most distinct results of one operation"
RUNS, RUNS_QUICK, RUNS_SIM = 1000, 100, 3
SHAPE, SHAPE_SIM = (1031, 4099), (5, 131)  # odd: the last block and vector of every row are partial
BUSY_ELEMENTS, BUSY_ELEMENTS_SIM = 8 << 20, 1 << 10

OPERATIONS = {
    "sum": "gp.sum(m)",
    "sum, axis 0": "gp.sum(m, axis=0)",
    "sum, axis 1": "gp.sum(m, axis=1)",
    "mean": "gp.mean(m)",
    "prod": "gp.prod(near_one)",
    "max": "gp.max(m)",
    "min": "gp.min(m)",
    "var": "gp.var(m)",
    "std, axis 1": "gp.std(m, axis=1)",
    "argmax": "gp.argmax(m)",
    "argmin": "gp.argmin(m)",
    "cumsum": "gp.cumsum(m, axis=1)",
    "cumsum of all": "gp.cumsum(m.reshape(-1))",
    "softmax": "gp.softmax(m)",
    "log_softmax": "gp.log_softmax(m)",
    "layernorm": "gp.layernorm(m, w, b)",
    "rmsnorm": "gp.rmsnorm(m, w)",
    "matmul": "gp.matmul(m[:64], m[:64].T)",
    "rfft": "gp.fft.rfft(m)",
    "rfft, one kernel": "gp.fft.rfft(m, 4096)",
}

DIGEST = """
extern "C" __global__ void digest(const unsigned short* x, long long n, unsigned long long* sums, long long slot) {
    unsigned long long sum = 0;  // of the mixed position and value of every two bytes: their order does not matter
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        unsigned long long h = ((unsigned long long)i << 16 | x[i]) + 0x9e3779b97f4a7c15ull;
        h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
        h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
        sum += h ^ (h >> 31);
    }
    if (sum != 0) atomicAdd(sums + slot, sum);
}
"""


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import pygpukit as gp
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()
    on_sim = native.backend_name() == "sim"
    try:
        trial = _Trial(RUNS_SIM if on_sim else RUNS_QUICK if quick else RUNS, on_sim)
    except gp.NvrtcError as error:
        yield Unavailable(f"{CATEGORY}/{WORST_ROW}", f"the digest kernel is not compiled: {error}")
        return
    if trial.without_graph:
        yield Unavailable(f"{CATEGORY}/as a graph", trial.without_graph)
    max_distinct = 0
    for dtype in ("float32", "bfloat16"):
        names = _inputs(dtype, SHAPE_SIM if on_sim else SHAPE)
        for name, expression in OPERATIONS.items():
            title = f"{name} {dtype}"
            try:
                distinct = trial.distinct(function(expression, names))
            except Exception as error:  # it must not cost the others' results; the report has the reason
                yield Unavailable(f"{CATEGORY}/{title}", f"{expression}: {type(error).__name__}: {error}"[:300])
                continue
            max_distinct = max(max_distinct, distinct)
            yield BenchmarkResult(
                title, CATEGORY, value=distinct, unit="count", iterations=trial.total, correct=distinct == 1
            )
    if max_distinct:
        yield BenchmarkResult(
            WORST_ROW, CATEGORY, value=max_distinct, unit="count", iterations=trial.total, correct=max_distinct == 1
        )


def _inputs(dtype: str, shape: tuple[int, int]) -> dict[str, Any]:
    import numpy as np

    import pygpukit as gp

    rng = np.random.default_rng(8)
    hosts = {
        "m": rng.standard_normal(shape, dtype=np.float32),
        "near_one": rng.uniform(0.999, 1.001, shape[0]).astype(np.float32),
        "w": rng.random(shape[1], dtype=np.float32),
        "b": rng.random(shape[1], dtype=np.float32),
    }
    return {"gp": gp, **{name: gp.from_numpy(host).astype(dtype) for name, host in hosts.items()}}


class _Trial:
    """Runs of one operation in every situation. total: how many a row stands for."""

    def __init__(self, runs: int, on_sim: bool) -> None:
        import pygpukit as gp

        self._digest: Any = gp.jit(DIGEST, func="digest")
        self._grid = 1 if on_sim else 264
        self._runs = runs
        self._stream, self._neighbour = gp.Stream(priority="high"), gp.Stream()
        busy = BUSY_ELEMENTS_SIM if on_sim else BUSY_ELEMENTS
        self._busy = gp.ones(busy), gp.ones(busy)
        gp.synchronize()
        self._situations: list[Callable[..., None]] = [self._alone, self._beside_neighbour, self._in_task]
        self.without_graph = self._refusal()
        if not self.without_graph:
            self._situations.append(self._as_graph)
        self.total = runs * len(self._situations)

    def distinct(self, call: Callable[[], Any]) -> int:
        """The number of different results that call() had."""
        import pygpukit as gp

        sums = gp.zeros(self.total, "uint64")
        gp.synchronize()
        for number, situation in enumerate(self._situations):
            situation(call, partial(self._note, sums, number * self._runs))
            gp.synchronize()
        return len(set(sums.to_numpy().tolist()))

    def _note(self, sums: Any, first: int, run: int, result: Any) -> None:
        """sums[first + run] = digest of the result, in the order of the current stream."""
        from pygpukit._core import native

        dense = result.contiguous()
        count = dense.nbytes // 2
        halves = native.view(dense, (count,), (2,), dense.offset, "uint16")
        self._digest[self._grid, 256](halves, count, sums, first + run)

    def _alone(self, call: Callable[[], Any], note: Callable[[int, Any], None]) -> None:
        for run in range(self._runs):
            note(run, call())

    def _beside_neighbour(self, call: Callable[[], Any], note: Callable[[int, Any], None]) -> None:
        import pygpukit as gp

        source, target = self._busy
        for run in range(self._runs):
            with self._neighbour:
                gp.mul(source, source, out=target)
            with self._stream:
                note(run, call())

    def _in_task(self, call: Callable[[], Any], note: Callable[[int, Any], None]) -> None:
        from pygpukit.scheduler import Scheduler

        with Scheduler(workers=1) as scheduler:
            scheduler.submit(self._alone, call, note, bandwidth=0.5).result()

    def _refusal(self) -> str:
        """Why an operation that makes its result cannot be captured, "" when it can."""
        import pygpukit as gp

        x = gp.ones(8)
        gp.add(x, x)
        try:
            with self._stream.capture():
                gp.add(x, x)
        except gp.GPUError as error:
            return str(error)
        return ""

    def _as_graph(self, call: Callable[[], Any], note: Callable[[int, Any], None]) -> None:
        with self._stream:
            call()  # what is made on first use must not be made during capture
        with self._stream.capture() as graph:
            result = call()
        with self._stream:
            for run in range(self._runs):
                graph.launch(self._stream)
                note(run, result)
