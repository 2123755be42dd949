"""The map of operations and shapes: how fast each is beside PyTorch, and beside a copy of as many bytes."""

from __future__ import annotations

from math import log2
from typing import Any

from pygpukit.benchmark.result import BenchmarkReport

from ..shape_cases import DTYPES, LAYOUTS, OPERATIONS
from ..shapes import CATEGORY, COPY
from .picture import Figure, MissingDataError, Numbers, short

LAYOUT_NAMES = [layout.name for layout in LAYOUTS]
NAMES = [operation.name for operation in OPERATIONS]


def speeds(report: BenchmarkReport) -> Numbers:
    """By type, for each operation PyTorch's time over ours at each layout; None where one was not measured."""
    values = _empty()
    for row in report.results:
        if row.category == CATEGORY and row.peer == "torch" and "dtype" in row.params and row.value and row.peer_value:
            _put(values, row.params, row.name, row.peer_value / row.value)
    return _checked(values, report, 'rows of shapes beside "torch"')


def shares(report: BenchmarkReport) -> Numbers:
    """By type, for each operation that does not sort the share of the copy rate in per cent at each layout."""
    rows = [row for row in report.results if row.category == CATEGORY and row.peer is None and "dtype" in row.params]
    copies = {_place(row.params): row.bandwidth_gbps for row in rows if row.name == COPY}
    on_gpu = report.environment.get("backend") != "sim"
    values = _empty()
    for row in rows if on_gpu else ():
        copy = copies.get(_place(row.params))
        if row.name != COPY and copy and row.bandwidth_gbps:
            _put(values, row.params, row.name, 100 * row.bandwidth_gbps / copy)
    return _checked(values, report, "rows of shapes from a GPU")


def _empty() -> dict[str, dict[str, list[float | None]]]:
    return {dtype: {name: [None] * len(LAYOUTS) for name in NAMES} for dtype in DTYPES}


def _put(plots: dict[str, dict[str, list[float | None]]], own: dict[str, Any], name: str, value: float) -> None:
    if name in plots.get(own["dtype"], {}) and own["layout"] in LAYOUT_NAMES:
        plots[own["dtype"]][name][LAYOUT_NAMES.index(own["layout"])] = short(value)


def _place(own: dict[str, Any]) -> tuple[str, str]:
    return own["layout"], own["dtype"]


def _checked(plots: Any, report: BenchmarkReport, what: str) -> Numbers:
    if not any(value for by_name in plots.values() for row in by_name.values() for value in row):
        raise MissingDataError(what)
    return {"device": report.gpu.name, "cells": plots}


def draw_speeds(numbers: Numbers, pyplot: Any) -> Any:
    """A panel a type, a line an operation, a column a shape: blue is faster than PyTorch, red slower."""
    title = f"Speed over PyTorch's, {numbers['device']}: white is equal, grey was not measured"
    return _map(
        numbers, pyplot, title, "RdBu", (-2.0, 2.0), lambda value: log2(max(value, 1e-6)), ["1/4", "1/2", "1", "2", "4"]
    )


def draw_shares(numbers: Numbers, pyplot: Any) -> Any:
    """The same panels in per cent of the rate of a device copy of the shape."""
    title = f"Per cent of the rate of a device copy, {numbers['device']}: grey was not measured"
    return _map(numbers, pyplot, title, "viridis", (0.0, 100.0), float, ["0", "25", "50", "75", "100"])


def _map(
    numbers: Numbers, pyplot: Any, title: str, colors: str, bounds: tuple[float, float], scale: Any, labels: list[str]
) -> Any:
    figure, axes = pyplot.subplots(1, len(DTYPES), figsize=(13, 12.5), sharey=True, layout="constrained")
    colormap = pyplot.get_cmap(colors).with_extremes(bad="#d0d0d0")
    picture = None
    for axis, (dtype, values) in zip(axes, numbers["cells"].items(), strict=True):
        cells = [[float("nan") if value is None else scale(value) for value in values[name]] for name in NAMES]
        picture = axis.imshow(cells, cmap=colormap, vmin=bounds[0], vmax=bounds[1], aspect="auto", interpolation="none")
        axis.set_title(dtype, fontsize=10)
        axis.set_xticks(range(len(LAYOUTS)), [f"{one.name}, {one.label}" for one in LAYOUTS], rotation=90, fontsize=7)
        axis.set_yticks(range(len(NAMES)), NAMES, fontsize=7)
        axis.tick_params(length=0)
    low, high = bounds
    bar = figure.colorbar(picture, ax=axes, shrink=0.4)
    bar.set_ticks([low + (high - low) * k / (len(labels) - 1) for k in range(len(labels))], labels=labels)
    figure.suptitle(title, fontsize=11)
    return figure


FIGURES = (
    Figure(
        "shapes-beside-pytorch",
        "60 operations at 16 shapes in three types: the speed over PyTorch's in the same run",
        "shapes",
        speeds,
        draw_speeds,
    ),
    Figure(
        "shapes-of-copy",
        "The same operations in per cent of the rate of a device copy of the shape",
        "shapes",
        shares,
        draw_shares,
    ),
)
