"""Speed of each convolution beside PyTorch, in both layouts."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.conv import CATEGORY, PEER
from pygpukit.benchmark.conv_cases import LAYOUTS, cases, title
from pygpukit.benchmark.result import BenchmarkReport

from .picture import BLUE, LIGHT_BLUE, RED, Figure, MissingDataError, Numbers, short

DTYPE, LIMIT = "bfloat16", 0.8


def speeds(report: BenchmarkReport) -> Numbers:
    """PyTorch's time over ours by layout and convolution; None where one was not measured."""
    rows = [row for row in report.results if (row.category, row.peer) == (CATEGORY, PEER)]
    ratios = {row.name: 1 / row.ratio for row in rows if row.params.get("dtype") == DTYPE and row.ratio}
    names = [case.name for case in cases("full") if any(title(case, layout) in ratios for layout in LAYOUTS)]
    if not names:
        raise MissingDataError(f'rows of convolutions in {DTYPE} beside "{PEER}"')
    values = {
        layout: [short(ratios[one]) if (one := f"{name}, channels {layout}") in ratios else None for name in names]
        for layout in LAYOUTS
    }
    return {"device": report.gpu.name, "names": names, "speeds": values}


def draw_speeds(numbers: Numbers, pyplot: Any) -> Any:
    """Two bars a convolution, with a line where both are equally fast and one at the limit of the mean."""
    names = numbers["names"]
    figure, axis = pyplot.subplots(figsize=(8, 1.5 + 0.21 * len(names)), layout="constrained")
    colors = dict(zip(LAYOUTS, (BLUE, LIGHT_BLUE), strict=True))
    for offset, (layout, values) in zip((-0.19, 0.19), numbers["speeds"].items(), strict=True):
        at = [place + offset for place in range(len(names))]
        axis.barh(at, [value or 0 for value in values], height=0.36, color=colors[layout], label=f"channels {layout}")
    axis.axvline(1, color="black", linewidth=0.8)
    axis.axvline(LIMIT, color=RED, linewidth=0.8, label="the geometric mean must reach")
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel("speed over cuDNN's through PyTorch (cold L2, medians)")
    axis.set_title(f"Convolutions in {DTYPE}, {numbers['device']}")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


FIGURES = (
    Figure(
        "convolutions-beside-pytorch",
        f"Convolutions of ResNet-50, Whisper and Kokoro in {DTYPE}: the speed over cuDNN's in the same run",
        CATEGORY,
        speeds,
        draw_speeds,
    ),
)
