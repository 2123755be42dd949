"""Requests beside tenants that always want the device: how long they take, and how many of them."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.result import BenchmarkReport, percentile

from .picture import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Figure,
    Numbers,
    distribution,
    logarithmic,
    row_of,
    rows_of,
    samples_of,
    short,
)

GATED = "request beside a storm, p99"
ALONE = "alone"
ROWS = {
    "beside it, scheduler": GATED,
    "plain streams": "request beside a storm, plain streams, p99",
    "priorities only": "request beside a storm, priorities only, p99",
}
COLORS = {ALONE: GREY, "beside it, scheduler": BLUE, "plain streams": ORANGE, "priorities only": GREEN}


def latencies(report: BenchmarkReport) -> Numbers:
    """By load and line: the distribution of the requests' microseconds and their 99th percentile."""

    def line(samples: list[float]) -> Numbers:
        return {"cdf": distribution(samples), "p99": short(percentile(samples, 0.99))}

    alone = line(samples_of(row_of(report, "scheduler", "request alone, p99")))
    loads: Numbers = {}
    for row in rows_of(report, "scheduler", GATED):
        load = row.params["load"]
        lines = {label: line(samples_of(row_of(report, "scheduler", name, load=load))) for label, name in ROWS.items()}
        loads[load] = {ALONE: alone, **lines}
    return {"device": report.gpu.name, "loads": loads}


def draw_latencies(numbers: Numbers, pyplot: Any) -> Any:
    """A panel for each load; a dot at each line's 99th percentile."""
    loads = numbers["loads"]
    figure, axes = pyplot.subplots(1, len(loads), figsize=(11, 3.9), sharey=True, squeeze=False, layout="constrained")
    for axis, (load, lines) in zip(axes[0], loads.items(), strict=True):
        for label, points in lines.items():
            us, part = zip(*points["cdf"], strict=True)
            axis.plot(us, part, color=COLORS[label], linewidth=1.2, label=label)
            axis.plot(points["p99"], 0.99, marker="o", markersize=4, color=COLORS[label])
        logarithmic(axis, "x")
        axis.set_xlabel("request, us")
        axis.set_title(f"beside {load.replace('_', ' ')}", fontsize=9)
        axis.grid(color="#dddddd", linewidth=0.6)
    axes[0][0].set_ylabel("part of the requests that took at most this")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(f"Requests of ten 100 us kernels; dots: 99th percentiles, {numbers['device']}", fontsize=10)
    return figure


FIGURES = (
    Figure(
        "request-latency",
        "Distribution of a request's latency alone and beside each load: under the scheduler, on plain streams and"
        " with stream priorities only",
        "scheduler",
        latencies,
        draw_latencies,
    ),
)
