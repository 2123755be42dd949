"""Figures: the numbers that each takes from a report, and how they are drawn; the same bytes each time.

Each picture names the digest of its numbers, by which one can tell that it belongs to a report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from typing import Any

from pygpukit.benchmark.result import BenchmarkReport, BenchmarkResult
from pygpukit.core.extras import need

Numbers = dict[str, Any]

STYLE = {"svg.hashsalt": "pygpukit", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
BLUE, LIGHT_BLUE, ORANGE, GREEN, RED, GREY = "#2a6fbb", "#7fb3e6", "#d9822b", "#6a9f58", "#b3261e", "#777777"


class MissingDataError(ValueError):
    """A report has not measured what a figure shows."""


@dataclass(frozen=True)
class Figure:
    """A picture of a report. read raises MissingDataError; draw is given the numbers and matplotlib's pyplot."""

    name: str
    caption: str
    suite: str  # that measures what it shows
    read: Callable[[BenchmarkReport], Numbers]
    draw: Callable[[Numbers, Any], Any]

    def numbers(self, report: BenchmarkReport) -> Numbers:
        """Numbers that it shows of a report. Raises MissingDataError naming the figure, what is missing, the suite."""
        try:
            return self.read(report)
        except MissingDataError as missing:
            text = f"figure {self.name!r} needs {missing}; measure again with --suite {self.suite}"
            raise MissingDataError(text) from None


def rows_of(report: BenchmarkReport, category: str, name: str) -> list[BenchmarkResult]:
    """A report's own rows of a name, whatever their parameters. Raises MissingDataError when there is none."""
    rows = [row for row in report.results if row.category == category and row.name == name and row.peer is None]
    if not rows:
        raise MissingDataError(f"the row {category}/{name}")
    return rows


def row_of(report: BenchmarkReport, category: str, name: str, **params: Any) -> BenchmarkResult:
    """The one with these parameters. Raises MissingDataError."""
    key = BenchmarkResult(name, category, params, value=0).key
    first = next((row for row in report.results if row.key == key), None)
    if first is None:
        raise MissingDataError(f"the row {key}")
    return first


def value_of(row: BenchmarkResult) -> float:
    """Its value to six digits, for drawing."""
    return short(row.value or 0.0)


def series_of(row: BenchmarkResult) -> dict[str, list[float]]:
    """Its columns over time. Raises MissingDataError when it has none."""
    if not row.series:
        raise MissingDataError(f"the series of {row.key}")
    return row.series


def samples_of(row: BenchmarkResult) -> list[float]:
    """Its samples. Raises MissingDataError when it has none."""
    if not row.samples:
        raise MissingDataError(f"the samples of {row.key}")
    return row.samples


def short(value: float) -> float:
    """A number to six digits: more are not seen, and differ between machines."""
    return float(f"{value:.6g}")


def thinned(values: list[float], max_points: int) -> list[float]:
    """At most so many of them, evenly spaced, the last included; to six digits."""
    step = max(1, -(-len(values) // max_points))
    return [short(value) for value in values[::-1][::step][::-1]]


def distribution(samples: list[float], points: int = 120) -> list[list[float]]:
    """[value, part of the samples that are at most that] at so many ranks and at the 99th percentile."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    ranks = sorted({round(last * i / points) for i in range(points + 1)} | {min(last, int(len(ordered) * 0.99))})
    return [[short(ordered[rank]), short((rank + 1) / len(ordered))] for rank in ranks]


def label(value: float) -> str:
    """A figure beside a bar: three digits, no exponent below a million."""
    return f"{short(float(f'{value:.3g}')):,g}"


def logarithmic(axes: Any, *directions: str) -> None:
    """Make the axes "x" or "y" of a plot logarithmic, with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for direction in directions:
        axes.set(**{f"{direction}scale": "log"})
        axis = getattr(axes, f"{direction}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter(NullFormatter())


def at_points(axis: Any, points: Sequence[float]) -> None:
    """Make the x axis of a plot logarithmic, and name these ascending points on it, of close ones the last."""
    named = [point for point, after in zip(points, [*points[1:], float("inf")], strict=True) if after > 1.1 * point]
    axis.set_xscale("log", base=2)
    axis.set_xticks(named, [f"{point:,g}" for point in named], fontsize=7, rotation=45)
    axis.minorticks_off()


def digest(numbers: Numbers) -> str:
    """Of what a picture shows."""
    return blake2b(json.dumps(numbers, sort_keys=True).encode(), digest_size=16).hexdigest()


def svg(figure: Figure, report: BenchmarkReport) -> bytes:
    """The picture of a report. Raises MissingDataError, and ModuleNotFoundError that tells how to get matplotlib."""
    numbers = figure.numbers(report)
    mpl = need("matplotlib", "lab", "drawing figures")

    mpl.use("agg")
    from matplotlib import pyplot

    with mpl.rc_context(STYLE):
        drawn = figure.draw(numbers, pyplot)
        target = BytesIO()
        metadata = {"Date": None, "Creator": None, "Description": f"numbers: {digest(numbers)}"}
        drawn.savefig(target, format="svg", facecolor="white", metadata=metadata)
        pyplot.close(drawn)
    lines = (line.rstrip() for line in _rounded_paths(target.getvalue()).splitlines())
    return b"\n".join(lines) + b"\n"


def _rounded_paths(drawn: bytes) -> bytes:
    """Paths to hundredths of a point: less is not seen, and takes twice the bytes."""
    return re.sub(rb'\bd="[^"]*"', lambda path: re.sub(rb"(\.\d\d)\d+", rb"\1", path[0]), drawn)
