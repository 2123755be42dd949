"""Suite `shapes`: 60 operations at 16 shapes and layouts in three types, beside PyTorch, CuPy and the copy rate.

A row is the device's time of one call out of a cold cache, the median of event times, with the rate of the bytes that
it must move: operands once, results once. Rows "copy" are device copies of the same shapes. Rows "on the host" are what
a call on 256 elements costs the host. Peers run the same operations on the same shapes in processes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from pygpukit.benchmark.measure import host_ns
from pygpukit.benchmark.operators import device_us
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

from .shape_cases import DTYPES, HOST_SHAPE, LAYOUTS, OPERATIONS, Layout, elements, function
from .shape_peers import peer_times

CATEGORY = "shapes"
COPY, HOST = "copy of as many bytes", "on the host"
HOST_CALLS = 100


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()
    backend = native.backend_name() or ""
    for order in LAYOUTS:
        layout = order.at(backend)
        for dtype in DTYPES:
            names = arrays(layout, dtype)
            source, target = (native.empty(layout.shape, dtype) for _ in range(2))
            native.fill(source, bytes(source.itemsize))
            us = device_us(lambda source=source, target=target: native.copy(target, source), quick)  # type: ignore[misc]
            yield _row(COPY, params(layout, dtype), us, 2 * source.nbytes)
            for operation in OPERATIONS:
                if operation.suits(dtype):
                    yield _measured(operation.name, params(layout, dtype), operation.gp, names, quick)
            names.clear()
    names = arrays(Layout("", HOST_SHAPE), "float32")
    for operation in OPERATIONS:
        call = function(operation.gp, names)
        ns = host_ns(call, HOST_CALLS, 3 if quick else 15, native.synchronize)
        yield from_samples(f"{operation.name} {HOST}", CATEGORY, [v * 1e-3 for v in ns], "us")


def params(layout: Layout, dtype: str) -> dict[str, Any]:
    return {"layout": layout.name, "shape": layout.label, "dtype": dtype}


def arrays(layout: Layout, dtype: str) -> dict[str, Any]:
    """The arrays that the expressions of the operations see: the same on every run."""
    import numpy as np

    import pygpukit as gp

    rng = np.random.default_rng(4)

    def build() -> Any:
        values = rng.standard_normal(elements(layout), dtype=np.float32)
        whole = gp.from_numpy(values * 50 if dtype == "int64" else values).astype(dtype)
        rows = whole[layout.offset :].reshape((*layout.shape[:-1], layout.shape[-1] + layout.margin))
        return rows[..., : layout.shape[-1]]

    x, y = build(), build()
    return {
        "gp": gp,
        "x": x,
        "y": y,
        "r": x.reshape(-1, x.shape[-1])[0].clone(),
        "mask": gp.from_numpy(rng.random(layout.shape, dtype=np.float32) < 0.5),
        "pick": gp.from_numpy(rng.permutation(layout.shape[0])),
        "p": gp.from_numpy(rng.integers(0, layout.shape[1], layout.shape)),
    }


def _measured(
    name: str, own: dict[str, Any], expression: str, names: dict[str, Any], quick: bool
) -> BenchmarkResult | Unavailable:
    call = function(expression, names)
    try:
        us = device_us(call, quick)
        moved = moved_bytes(call, names)
    except Exception as error:  # it must not cost the figures of the others; the report has the reason
        key = BenchmarkResult(name, CATEGORY, own, value=0).key
        return Unavailable(key, f"{expression}: {type(error).__name__}: {error}"[:200])
    return _row(name, own, us, moved)


def _row(name: str, own: dict[str, Any], us: list[float], moved: int) -> BenchmarkResult:
    row = from_samples(name, CATEGORY, us, "us", params=dict(own))
    row.bandwidth_gbps = moved / median(us) * 1e-3
    return row


def moved_bytes(call: Callable[[], object], names: dict[str, Any]) -> int:
    """Every array that the call names read once, every array that it returns written once."""
    code: Any = call
    read = sum(names[name].nbytes for name in code.__code__.co_names if hasattr(names.get(name), "nbytes"))
    result = call()
    results = result if isinstance(result, tuple) else (result,)
    return read + sum(one.nbytes for one in results if hasattr(one, "nbytes"))


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """The peers' times of the same calls."""
    from pygpukit._core import native

    if native.backend_name() == "sim":
        yield Unavailable(f"{CATEGORY}/peers", "the simulated device is no GPU to compare peers on")
        return
    mine = {row.key: row for row in ours}
    for library in ("torch", "cupy"):
        for key, us in peer_times(library):
            if isinstance(us, str):
                yield Unavailable(f"{key} {library}", us)
            elif key in mine:
                row = mine[key]
                yield BenchmarkResult(
                    row.name, CATEGORY, dict(row.params), value=row.value, peer=library, peer_value=us
                )
