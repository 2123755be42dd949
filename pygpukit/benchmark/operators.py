"""Suite `operators`: array operators against a device copy of as many bytes, and what a call costs the host.

A row is in GB/s of effective bytes (operator_cases.py), out of a cold cache, median of event times; a second row has it
as a percentage of the copy. The peers run the same operators in processes of their own (operator_peers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from .measure import host_ns
from .operator_cases import CALL_ELEMENTS, CALLS, CASES, DTYPES, NARROW_BYTES, WIDE_BYTES, Case, Size, function, size
from .operator_peers import peer_times
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "operators"
SAMPLES = 20
BUDGET_MS = 1500.0
OF_COPY = ", of the copy"
RAW_ROW = "C++ loop over the driver's launch, add kernel"
OVER_RAW = " over the driver's launch"
OVER_CUPY = ", speed over cupy's"

ADD = """
extern "C" __global__ void add(const float* a, const float* b, float* out, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
"""


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from .._core import native
    from ..core.backend import ensure

    ensure()
    backend = native.backend_name() or ""
    sizes = {dtype: size(dtype, backend, quick) for dtype in DTYPES}
    ruler = Ruler(max(case.moved(s) for case in CASES for s in sizes.values()), quick)
    for dtype, s in sizes.items():
        names = arrays(dtype, s)
        for case in CASES:
            yield from _measure(case, dtype, s, names, ruler, quick)
        names.clear()
    yield from ruler.rows()
    yield from _calls(quick)


def arrays(dtype: str, s: Size) -> dict[str, Any]:
    """The arrays that the expressions of the cases see: fresh random data, the same on every run."""
    import numpy as np

    import pygpukit as gp

    rng = np.random.default_rng(4)
    host = rng.standard_normal(s.n, dtype=np.float32)
    x, y, w, b = (gp.from_numpy(a).astype(dtype) for a in (host, host[::-1], host[: s.columns], host[-s.columns :]))
    narrow, wide = (x.reshape(s.nbytes // width, width // s.item) for width in (NARROW_BYTES, WIDE_BYTES))
    return {
        "gp": gp,
        "x": x,
        "y": y,
        "m": x.reshape(s.n // s.columns, s.columns),
        "w": w,
        "b": b,
        "mask": gp.from_numpy(rng.random(s.n, dtype=np.float32) < 0.5),
        "narrow": narrow,
        "wide": wide,
        "pick_narrow": gp.from_numpy(rng.permutation(len(narrow))),
        "pick_wide": gp.from_numpy(rng.permutation(len(wide))),
    }


def _measure(
    case: Case, dtype: str, s: Size, names: dict[str, Any], ruler: Ruler, quick: bool
) -> Iterator[BenchmarkResult | Unavailable]:
    call = function(case.gp, names)
    title = f"{case.name} {dtype}"
    try:
        us = device_us(call, quick)
    except Exception as error:  # it must not cost the figures of the others; the report has the reason
        key = f"{CATEGORY}/{title}{OF_COPY}[Mi={_params(s)['Mi']}]"
        yield Unavailable(key, f"{case.gp}: {type(error).__name__}: {error}")
        return
    moved = case.moved(s)
    row = from_samples(title, CATEGORY, [moved / t * 1e-3 for t in us], "GB/s", better="higher")
    row.params = _params(s)
    row.bandwidth_gbps, row.median_us = row.value, median(us)
    yield row
    copy = ruler.us(moved)
    share = from_samples(title + OF_COPY, CATEGORY, [100 * copy / t for t in us], "%", better="higher")
    share.params = _params(s)
    yield share


def _params(s: Size) -> dict[str, Any]:
    return {"Mi": s.n / (1 << 20) if s.n % (1 << 20) else s.n >> 20}


def device_us(call: Callable[[], object], quick: bool) -> list[float]:
    """Event times of single calls, each after a read of several times the L2 cache."""
    from .._core import native
    from ..profiling import timing

    samples = timing.sample(
        call,
        native.current_stream(),
        flush_l2=True,
        warmup_ms=1.0,
        max_samples=timing.MIN_SAMPLES if quick else SAMPLES,
        budget_ms=BUDGET_MS,
    )
    return list(samples.us)


class Ruler:
    """Device copies of random bytes, each measured once for a number of bytes that it reads and writes together."""

    def __init__(self, largest: int, quick: bool) -> None:
        """largest: the most bytes that us() will be asked for."""
        import numpy as np

        from .._core import native

        self._quick = quick
        self._us: dict[int, list[float]] = {}
        half = _rounded(largest // 2)
        self._source, self._target = native.empty(half, "uint8"), native.empty(half, "uint8")
        noise = np.random.default_rng(5).integers(0, 256, min(half, 1 << 24), dtype=np.uint8)
        native.copy_from_host(self._source, np.resize(noise, half))

    def us(self, moved: int) -> float:
        """Microseconds of a copy that moves as many bytes."""
        from .._core import native

        half = _rounded(moved // 2)
        if half not in self._us:
            source, target = self._source[:half], self._target[:half]
            self._us[half] = device_us(lambda: native.copy(target, source), self._quick)
        return median(self._us[half]) * moved / (2 * half)

    def rows(self) -> Iterator[BenchmarkResult]:
        for half, us in sorted(self._us.items()):
            row = from_samples(
                "copy device to device", CATEGORY, [2 * half / t * 1e-3 for t in us], "GB/s", better="higher"
            )
            row.params = {"MiB": round(half / (1 << 20), 3)}
            row.bandwidth_gbps, row.median_us = row.value, median(us)
            yield row


def _rounded(nbytes: int) -> int:
    """Up to a multiple of 1/16 of its leading power of two: operands that differ by a few bytes share one copy."""
    step = max(1 << (nbytes.bit_length() - 5), 16)
    return -(-nbytes // step) * step


def _calls(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import pygpukit as gp

    from .._core import native

    x, y, z = gp.ones(CALL_ELEMENTS), gp.ones(CALL_ELEMENTS), gp.empty(CALL_ELEMENTS)
    try:
        bound: Any = gp.jit(ADD, func="add")[CALL_ELEMENTS // 256, 256]
    except gp.NvrtcError as error:
        for name, *_ in CALLS:
            yield Unavailable(f"{CATEGORY}/{name}", f"the driver's launch is not measured: {error}")
        return
    names = {"gp": gp, "x": x, "y": y, "z": z}
    calls = 100 if native.backend_name() == "sim" else 500
    functions = [function(expression, names) for _, expression, *_ in CALLS]
    raw: list[float] = []
    ours: list[list[float]] = [[] for _ in CALLS]
    for _ in range(5 if quick else 25):  # in turn, so that all meet the same clocks
        raw.append(native.launch_loop_ns(bound, (x, y, z, CALL_ELEMENTS), calls))
        native.synchronize()
        for samples, call in zip(ours, functions, strict=True):
            samples += host_ns(call, calls, 1, native.synchronize)
    yield from_samples(RAW_ROW, CATEGORY, [v * 1e-3 for v in raw], "us")
    for (name, *_), samples in zip(CALLS, ours, strict=True):
        yield from_samples(name, CATEGORY, [v * 1e-3 for v in samples], "us")
        yield from_samples(name + OVER_RAW, CATEGORY, [v / r for v, r in zip(samples, raw, strict=True)], "x")


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """The peers' figures from the same bytes; for sort also our speed over CuPy's."""
    from .._core import native

    by_name = {r.name: r for r in ours}
    if native.backend_name() == "sim":
        yield Unavailable(f"{CATEGORY}/peers", "the simulated device is no GPU to compare peers on")
        return
    for library in ("torch", "cupy"):
        for name, us in peer_times(library, quick):
            mine = by_name.get(name)
            if isinstance(us, str):
                yield Unavailable(f"{CATEGORY}/{name} {library}", us)
            elif mine is not None and mine.unit == "us":
                yield beside(mine, library, us)
            elif mine is not None and mine.value is not None and mine.median_us is not None:
                yield beside(mine, library, mine.value * mine.median_us / us)
                if library == "cupy" and name.startswith("sort"):
                    ratio = us / mine.median_us
                    yield BenchmarkResult(
                        name + OVER_CUPY, CATEGORY, dict(mine.params), value=ratio, unit="x", better="higher"
                    )


def beside(mine: BenchmarkResult, library: str, figure: float) -> BenchmarkResult:
    return BenchmarkResult(
        mine.name,
        mine.category,
        dict(mine.params),
        value=mine.value,
        unit=mine.unit,
        better=mine.better,
        peer=library,
        peer_value=figure,
    )
