"""Suite `conv`: the convolutions of ResNet-50, Whisper and Kokoro, grouped and depthwise ones, channels last and first.

A row is the device's time of one call out of a cold cache, with the largest error against float64 (conv_cases.py).
PyTorch makes the same in a process of its own (conv_peers.py). On the simulated device small ones run, by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from statistics import mean, median
from typing import Any

from .conv_cases import KINDS, LAYOUTS, Case, cases, ends, error, title
from .operator_peers import process_times
from .operators import beside, device_us
from .result import BenchmarkResult, Unavailable

CATEGORY = "conv"
PEER = "torch (cuDNN)"
OVER = "speed over PyTorch, geometric mean"
WARM_UPS = 1000  # of 0.1 ms
TIMEOUT_S = 300


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from ..core.backend import ensure, is_sim

    ensure()
    if is_sim():
        yield Unavailable(f"{CATEGORY}/figures of a GPU", "small ones ran, by NumPy: their times say nothing")
    else:
        _warm_up()
    for kind in KINDS:
        for case in cases("small" if is_sim() else "quick" if quick else "full"):
            for layout in LAYOUTS:
                yield _row(case, kind, layout, quick)


def _warm_up() -> None:
    """Work until the device's clocks have risen."""
    import pygpukit as gp

    square = gp.ones((2048, 2048), dtype="bfloat16")
    for _ in range(WARM_UPS):
        gp.matmul(square, square)
    gp.synchronize()


def _row(case: Case, kind: str, layout: str, quick: bool) -> BenchmarkResult | Unavailable:
    name, params = title(case, layout), {"dtype": kind}
    try:
        call, wrong = convolution(case, kind, layout)
        samples = device_us(call, quick)
    except Exception as failure:  # it must not cost the figures of the others; the report has the reason
        key = BenchmarkResult(name, CATEGORY, params, value=0).key
        return Unavailable(key, f"{type(failure).__name__}: {failure}"[:200])
    us = median(samples)
    return BenchmarkResult(
        name, CATEGORY, params, median_us=us, tflops=case.flops / us * 1e-6, rel_error=wrong,
        iterations=len(samples), samples=samples,
    )  # fmt: skip


def convolution(case: Case, kind: str, layout: str) -> tuple[Callable[[], Any], float]:
    """The function that convolves fresh operands, the weight packed as models keep it, and the result's error."""
    import pygpukit as gp

    from ..ops.nn.conv.tile import packed

    dtype = "float32" if kind == "tf32" else kind
    x, w = (gp.random.randn(*shape, dtype=dtype) for shape in (case.x, case.w))
    last, packs = layout == "last", not case.transposed or case.setting("groups") == 1
    laid_out = _moved(x, last).clone() if last else x
    weight = packed(w, transposed=case.transposed, tf32=kind == "tf32" or None) if packs else w
    function = getattr(gp, f"conv{'_transpose' * case.transposed}{len(case.x) - 2}d")
    more = {"channels_last": last, "tf32": True if kind == "tf32" else None}

    def call() -> Any:
        return function(laid_out, weight, **case.settings, **more)

    results = ends(call())
    host = [value.astype("float32").to_numpy() for value in (ends(x), w, results)]
    host[2] = host[2].transpose(0, -1, *range(1, host[2].ndim - 1)) if last else host[2]
    return call, error(case, host[0], host[1], host[2])


def _moved(images: Any, last: bool) -> Any:
    """A view of (B, C, ...) with the channels last."""
    return images.transpose(0, *range(2, images.ndim), 1) if last else images


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """PyTorch's times beside ours, and geometric means by model and type: of each layout, and of the faster ones."""
    from .._core import native

    if native.backend_name() == "sim":
        yield Unavailable(f"{CATEGORY}/torch", "the simulated device is no GPU to compare peers on")
        return
    theirs: dict[str, tuple[float, float]] = {}
    for key, peers in process_times(f"{__package__}.conv_peers", "quick" if quick else "full", timeout_s=TIMEOUT_S):
        if isinstance(peers, str):
            yield Unavailable(f"{CATEGORY}/{key} torch", peers)
        else:
            theirs[key] = peers
    for mine in ours:
        if mine.key in theirs:
            us, wrong = theirs[mine.key]
            row = beside(mine, PEER, us)
            row.rel_error, row.params = mine.rel_error, {**mine.params, "peer's error": wrong}
            yield row
    yield from means({row.key: row.median_us or 0.0 for row in ours}, {key: us for key, (us, _) in theirs.items()})


def means(ours: dict[str, float], theirs: dict[str, float]) -> Iterator[BenchmarkResult]:
    """Geometric means of the speed over PyTorch, from microseconds by the rows' keys."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for case in cases("full"):
        for kind in KINDS:
            keys = {one: BenchmarkResult(title(case, one), CATEGORY, {"dtype": kind}, value=0).key for one in LAYOUTS}
            both = {one: (ours[key], theirs[key]) for one, key in keys.items() if ours.get(key) and theirs.get(key)}
            ratios = {one: their / own for one, (own, their) in both.items()}
            if len(both) == len(LAYOUTS):
                ratios["faster of both"] = min(t for _, t in both.values()) / min(o for o, _ in both.values())
            for layout, ratio in ratios.items():
                for model in (case.name.split()[0], "all"):
                    groups.setdefault((kind, model, layout), []).append(ratio)
    for (kind, model, layout), group in sorted(groups.items()):
        yield BenchmarkResult(
            OVER, CATEGORY, {"dtype": kind, "of": model, "channels": layout},
            iterations=len(group), value=exp(mean(map(log, group))), unit="x", better="higher",
        )  # fmt: skip
