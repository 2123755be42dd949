"""Tenants that all want the device: the share that each gets over time, how far that is off, and what is kept."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.result import BenchmarkReport, percentile

from ..scheduler import CASES
from ..scheduler_contest import Run, errors_pp
from .picture import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Figure,
    Numbers,
    label,
    logarithmic,
    row_of,
    rows_of,
    series_of,
    short,
    thinned,
    value_of,
)

TENANT_COLORS = (BLUE, ORANGE, GREEN, "#8a5fb0")
WINDOWS_S = (0.01, 0.1, 1.0)
LENGTHS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
POINTS = 60
ROWS = {"the scheduler": "throughput kept", "plain streams": "throughput, plain streams",
        "priorities only": "throughput, priorities only"}  # fmt: skip
COLORS = {"the scheduler": BLUE, "plain streams": ORANGE, "priorities only": GREEN}


def run_of(report: BenchmarkReport, name: str, case: str) -> Run:
    """The contest that a row's series hold. Raises MissingDataError."""
    rows = (row for row in rows_of(report, "scheduler", "kernel alone") if row.params.get("shares", case) == case)
    alone = {row.params["tenant"]: row.value or 0.0 for row in rows}
    return Run.from_series(series_of(row_of(report, "scheduler", name, shares=case)), alone)


def over_time(report: BenchmarkReport) -> Numbers:
    """By case, the tenants, what each was promised, and by window [ends in seconds, shares of each tenant in %]."""
    cases: Numbers = {}
    for case, promised in CASES.items():
        run = run_of(report, ROWS["the scheduler"], case)
        windows: Numbers = {}
        for window_s in WINDOWS_S:
            ends, shares = run.ends_s(window_s), run.measured(window_s)
            columns = [thinned([100 * share[i] for share in shares], POINTS) for i in range(len(promised))]
            windows[f"{window_s:g}"] = [thinned(ends, POINTS), *columns]
        cases[case] = {"tenants": run.names, "promised": [100 * share for share in promised], "windows": windows}
    return {"device": report.gpu.name, "cases": cases}


def draw_over_time(numbers: Numbers, pyplot: Any) -> Any:
    """A column for each case, a row for each window; dashes are the promises."""
    cases = numbers["cases"]
    figure, axes = pyplot.subplots(
        len(WINDOWS_S), len(cases), figsize=(10, 6.6), sharex="col", sharey=True, squeeze=False, layout="constrained"
    )
    for column, (case, values) in enumerate(cases.items()):
        for row, (window, (ends, *shares)) in enumerate(values["windows"].items()):
            axis = axes[row][column]
            for i, tenant in enumerate(values["tenants"]):
                color = TENANT_COLORS[i]
                axis.plot(ends, shares[i], color=color, linewidth=0.9, label=tenant.replace("_", " "))
                axis.axhline(values["promised"][i], color=color, linewidth=0.8, linestyle=(0, (4, 3)))
            axis.set_ylim(0, 100)
            axis.set_title(f"{case}, over {1000 * float(window):g} ms", fontsize=9)
            if column == 0:
                axis.set_ylabel("% of the device time")
        axes[-1][column].set_xlabel("end of the window, s")
        axes[0][column].legend(fontsize=7, frameon=False, loc="upper right", ncols=2)
    figure.suptitle(f"Shares achieved (lines) and promised (dashes), {numbers['device']}", fontsize=10)
    return figure


def errors(report: BenchmarkReport) -> Numbers:
    """By case and line, [length in ms, the worst tenant's error in percentage points] of each length of window."""
    cases: Numbers = {}
    for case, promised in CASES.items():
        lines: Numbers = {}
        for streams, name in ROWS.items():
            run = run_of(report, name, case)
            lasted_s = run.ticks[-1].host_s - run.ticks[0].host_s
            lengths = [length for length in LENGTHS_S if length <= lasted_s / 2]
            meters = {"by work": run.worked}
            if run.ticks[0].gpu_s:
                meters = {"by device time": run.measured, **meters}
            for meter, windows in meters.items():
                errors_by_length = {length: errors_pp(windows(length), promised) for length in lengths}
                kinds = {"p99": 0.99, "worst": 1.0} if meter == "by device time" else {"p99": 0.99}
                for kind, part in kinds.items():
                    points = [[1000 * length, short(percentile(pp, part))] for length, pp in errors_by_length.items()]
                    lines[f"{streams}, {meter}, {kind}"] = points
        cases[case] = lines
    return {"device": report.gpu.name, "cases": cases}


def draw_errors(numbers: Numbers, pyplot: Any) -> Any:
    """A panel for each case, both axes logarithmic."""
    cases = numbers["cases"]
    figure, axes = pyplot.subplots(1, len(cases), figsize=(10, 4.2), sharey=True, squeeze=False, layout="constrained")
    for axis, (case, lines) in zip(axes[0], cases.items(), strict=True):
        for line, points in lines.items():
            color = COLORS[line.partition(",")[0]]
            style = "-" if "device time, p99" in line else ":" if "worst" in line else "--"
            axis.plot(*zip(*points, strict=True), color=color, linestyle=style, marker=".", label=line)
        logarithmic(axis, "x", "y")
        axis.set_xlabel("length of the window, ms")
        axis.set_title(f"shares {case}", fontsize=9)
        axis.grid(color="#dddddd", linewidth=0.6)
    axes[0][0].set_ylabel("error of the worst tenant, percentage points")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.suptitle(f"How far shares are off by the length of the window, {numbers['device']}", fontsize=10)
    return figure


def kept(report: BenchmarkReport) -> Numbers:
    """By case, per cent of the work of each tenant alone that all together do."""
    shares = {
        case: {streams: value_of(row_of(report, "scheduler", name, shares=case)) for streams, name in ROWS.items()}
        for case in CASES
    }
    return {"device": report.gpu.name, "cases": shares}


def draw_kept(numbers: Numbers, pyplot: Any) -> Any:
    """A group of bars for each case."""
    figure, axis = pyplot.subplots(figsize=(6.5, 3.8), layout="constrained")
    for i, streams in enumerate(ROWS):
        at = [place + (i - 1) * 0.27 for place in range(len(numbers["cases"]))]
        heights = [values[streams] for values in numbers["cases"].values()]
        bars = axis.bar(at, heights, width=0.25, color=COLORS[streams], label=streams)
        axis.bar_label(bars, fmt=label, fontsize=8)
    axis.axhline(100, color=GREY, linewidth=0.8)
    axis.set_xticks(range(len(numbers["cases"])), list(numbers["cases"]))
    axis.set_xlabel("shares asked for")
    axis.set_ylabel("% of the work of each alone")
    axis.margins(y=0.12)
    axis.set_title(f"Throughput kept, {numbers['device']}", fontsize=10)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


FIGURES = (
    Figure(
        "shares-over-time",
        "The share of the device time that each tenant gets, over 10 ms, 100 ms and 1 s, beside what it was promised",
        "scheduler",
        over_time,
        draw_over_time,
    ),
    Figure(
        "share-error-by-window",
        "Error of the worst tenant's share by the length of the window: under the scheduler by both meters, on plain"
        " streams and with stream priorities only",
        "scheduler",
        errors,
        draw_errors,
    ),
    Figure("throughput-kept", "Work of all tenants over the work of each alone", "scheduler", kept, draw_kept),
)
