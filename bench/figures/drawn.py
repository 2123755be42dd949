"""Speed of calls at shapes that nobody named beside PyTorch, by family."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.drawn import CATEGORY, NEAR, OVER, PEER
from pygpukit.benchmark.drawn_cases import FAMILIES
from pygpukit.benchmark.result import BenchmarkReport

from .picture import BLUE, GREY, RED, Figure, MissingDataError, Numbers, logarithmic, short


def speeds(report: BenchmarkReport) -> Numbers:
    """PyTorch's time over ours of each cell, ascending, and their geometric mean, by family."""
    rows = [row for row in report.results if row.category == CATEGORY]
    cells: dict[str, list[float]] = {family: [] for family in FAMILIES}
    for row in rows:
        if row.peer == PEER and row.ratio:
            cells[row.name.partition(":")[0]].append(short(1 / row.ratio))
    means = {row.params["of"]: short(row.value or 0.0) for row in rows if row.name == OVER}
    if not any(cells.values()):
        raise MissingDataError(f'rows of random shapes beside "{PEER}"')
    return {
        "device": report.gpu.name,
        "cells": {name: sorted(values) for name, values in cells.items()},
        "means": means,
    }


def draw_speeds(numbers: Numbers, pyplot: Any) -> Any:
    """A row a family: a point a cell, a bar at the geometric mean."""
    names = list(numbers["cells"])
    figure, axis = pyplot.subplots(figsize=(8, 0.8 + 0.5 * len(names)), layout="constrained")
    for place, name in enumerate(names):
        values = numbers["cells"][name]
        heights = [place + 0.3 * ((rank * 7) % 11 / 10 - 0.5) for rank in range(len(values))]
        axis.plot(values, heights, "o", color=BLUE, markersize=3, alpha=0.6, label="a cell" if not place else None)
        mean = numbers["means"].get(name)
        if mean:
            label = "geometric mean" if not place else None
            axis.plot([mean, mean], [place - 0.35, place + 0.35], color="black", linewidth=2, label=label)
    logarithmic(axis, "x")
    axis.axvline(1, color=GREY, linewidth=0.8)
    axis.axvline(NEAR, color=RED, linewidth=0.8, label=f"{NEAR}")
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xlabel("speed over PyTorch's in the same run (cold L2, medians)")
    axis.set_title(f"Shapes that nobody named, {numbers['device']}")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


FIGURES = (
    Figure(
        "random-shapes-beside-pytorch",
        "Calls at shapes drawn from a seed: the speed over PyTorch's in the same run, by family",
        CATEGORY,
        speeds,
        draw_speeds,
    ),
)
