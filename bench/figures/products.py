"""Speed of square products over their size, beside PyTorch and the card's peak; and their errors by type."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.products import CATEGORY as CHOSEN
from pygpukit.benchmark.result import BenchmarkReport

from .picture import BLUE, GREY, RED, Figure, MissingDataError, Numbers, at_points, short

TYPES = ("bfloat16", "float16", "tf32", "float8_e4m3", "int8")
# Dense, in TFLOP/s, by the vendor's data sheet of the cards of SM 9.0 with their full power.
PEAKS = {"bfloat16": 989.0, "float16": 989.0, "tf32": 495.0, "float8_e4m3": 1979.0, "int8": 1979.0}
CARDS = ("NVIDIA H100 80GB HBM3", "NVIDIA H200")


def over_size(report: BenchmarkReport) -> Numbers:
    """[size, ours, PyTorch's] of square products of each type; of two layouts that of weights, b by columns."""
    rates: dict[str, dict[int, list[float]]] = {}
    for row in report.results:
        dtype, _, shape = row.name.removesuffix(" beside PyTorch").partition(" ")
        batch, m, n, k, *transposed = shape.split() if shape.count(" ") >= 3 else ("0", "0", "1", "1")
        if row.category != "matmul" or row.peer_value is None or row.value is None or dtype not in TYPES:
            continue
        if (batch, m, n) == ("1", n, k) and (transposed or int(m) not in rates.get(dtype, {})):
            rates.setdefault(dtype, {})[int(m)] = [short(row.value), short(row.peer_value)]
    if not rates:
        raise MissingDataError("rows of square products beside PyTorch")
    curves = {
        dtype: [[size, *rates[dtype][size]] for size in sorted(rates[dtype])] for dtype in TYPES if dtype in rates
    }
    peaks = {dtype: PEAKS[dtype] for dtype in curves} if report.gpu.name in CARDS else {}
    return {"device": report.gpu.name, "curves": curves, "peaks": peaks}


def draw_over_size(numbers: Numbers, pyplot: Any) -> Any:
    """A plot a type, all from 0 to its peak."""
    curves = numbers["curves"]
    figure, axes = pyplot.subplots(
        1, len(curves), figsize=(2.3 * len(curves), 2.8), layout="constrained", squeeze=False
    )
    for axis, (dtype, points) in zip(axes[0], curves.items(), strict=True):
        sizes, ours, theirs = zip(*points, strict=True)
        axis.plot(sizes, ours, "o-", color=BLUE, markersize=3, label="pygpukit")
        axis.plot(sizes, theirs, "s--", color=GREY, markersize=3, label="PyTorch (cuBLAS)")
        if dtype in numbers["peaks"]:
            axis.axhline(numbers["peaks"][dtype], color=RED, linewidth=0.8, label="peak, dense")
        at_points(axis, sizes)
        axis.set_ylim(bottom=0)
        axis.set_title(dtype)
        axis.set_xlabel("m = n = k")
    axes[0][0].set_ylabel("TFLOP/s; of int8 TOP/s")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.suptitle(f"Square products, {numbers['device']}")
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def by_type(report: BenchmarkReport) -> Numbers:
    """The largest error over the largest result, of the largest size that every type was measured at."""
    by_size: dict[str, dict[int, float]] = {}
    for row in report.results:
        kind, _, rest = row.name.partition(" ")
        if row.category == CHOSEN and row.peer is None and kind in ("gemm", "fp8"):
            dtype, size = rest.split()
            by_size.setdefault(dtype, {})[int(size)] = short(row.rel_error)
    common = set.intersection(*(set(sizes) for sizes in by_size.values())) if by_size else set()
    if not common:
        raise MissingDataError("products of one size in each type, by --gemm --fp8 --sizes --dtypes")
    largest = max(common)
    errors = sorted(((dtype, sizes[largest]) for dtype, sizes in by_size.items()), key=lambda one: -one[1])
    return {"device": report.gpu.name, "size": largest, "errors": [list(one) for one in errors]}


def draw_by_type(numbers: Numbers, pyplot: Any) -> Any:
    """A bar a type; without an error there is none."""
    names, errors = zip(*numbers["errors"], strict=True)
    figure, axis = pyplot.subplots(figsize=(6, 1.2 + 0.3 * len(names)), layout="constrained")
    smallest = min((error for error in errors if error), default=1.0) / 10
    axis.barh(names, [max(error - smallest, 0) for error in errors], left=smallest, color=BLUE)
    for place, error in enumerate(errors):
        axis.annotate(f"  {error:.1e}" if error else "  0", (max(error, smallest), place), va="center")
    axis.set(xscale="log", xlim=(smallest, 1))
    axis.invert_yaxis()
    axis.set_xlabel("largest error against float64, over the largest result")
    axis.set_title(f"Products of {numbers['size']} cubed, {numbers['device']}")
    return figure


FIGURES = (
    Figure(
        "products-over-size",
        "Square products over their size: TFLOP/s here, in PyTorch in the same run, and the card's peak",
        "matmul",
        over_size,
        draw_over_size,
    ),
    Figure(
        "products-by-error",
        "The largest error of products in each type, over the largest result",
        "matmul",
        by_type,
        draw_by_type,
    ),
)
