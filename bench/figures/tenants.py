"""Tenants that overcommit memory, and tenants that join and leave."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.result import BenchmarkReport

from ..churn import UNITS
from .picture import (
    BLUE,
    GREEN,
    GREY,
    LIGHT_BLUE,
    ORANGE,
    RED,
    Figure,
    Numbers,
    distribution,
    label,
    logarithmic,
    row_of,
    rows_of,
    samples_of,
    series_of,
    short,
    value_of,
)

WAITS = {"submit to admit": GREY, "submit to start": LIGHT_BLUE, "submit to done": BLUE, "joining to done": ORANGE}


def overcommit(report: BenchmarkReport) -> Numbers:
    """By overcommit: % of the work kept, GB/s moved, wrong bytes, visits over time; and the rates of plain copies."""
    ratios: Numbers = {}
    alone = row_of(report, "overcommit", "work", overcommit=1).value or 0.0
    for row in rows_of(report, "overcommit", "work"):
        params = row.params
        series = series_of(row)
        ratios[f"{params['overcommit']:g}"] = {
            "kept": short(100 * (row.value or 0.0) / alone),
            "evicted": value_of(row_of(report, "overcommit", "evicted", **params)),
            "restored": value_of(row_of(report, "overcommit", "restored", **params)),
            "wrong": value_of(row_of(report, "overcommit", "wrong bytes", **params)),
            "visits": [[short(us * 1e-6) for us in series["t_us"]], series["visits"]],
        }
    plain = {
        side: value_of(rows_of(report, "overcommit", f"plain pinned copy to the {side}")[0])
        for side in ("host", "device")
    }
    return {"device": report.gpu.name, "overcommit": ratios, "plain": plain}


def draw_overcommit(numbers: Numbers, pyplot: Any) -> Any:
    """Work kept, work over time, and rates of the moves under those of plain copies."""
    ratios = numbers["overcommit"]
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(10.5, 3.7), layout="constrained")
    places, labels = range(len(ratios)), [f"{ratio} x" for ratio in ratios]
    bars = left.bar(places, [bars_of["kept"] for bars_of in ratios.values()], width=0.6, color=BLUE)
    left.bar_label(bars, fmt=label, fontsize=8)
    left.set_xticks(places, labels)
    left.set_xlabel("bytes of all arrays over the limit")
    left.set_ylabel("% of the work without overcommit")
    left.set_title("work kept", fontsize=9)
    for color, (ratio, bars_of) in zip((GREY, BLUE, ORANGE, GREEN), ratios.items(), strict=False):
        middle.plot(*bars_of["visits"], color=color, label=f"{ratio} x, {bars_of['wrong']:g} wrong bytes")
    middle.set_xlabel("s")
    middle.set_ylabel("visits of all tenants")
    middle.set_title("work over time", fontsize=9)
    middle.legend(frameon=False, fontsize=8)
    for offset, key, color in ((-0.2, "evicted", BLUE), (0.2, "restored", LIGHT_BLUE)):
        at = [place + offset for place in places]
        bars = right.bar(at, [bars_of[key] for bars_of in ratios.values()], 0.38, color=color, label=key)
        right.bar_label(bars, fmt=label, fontsize=8)
    for side, style in (("host", "--"), ("device", ":")):
        by = f"plain copy to the {side}"
        right.axhline(numbers["plain"][side], color=GREY, linestyle=style, linewidth=0.9, label=by)
    right.set_xticks(places, labels)
    right.set_xlabel("bytes of all arrays over the limit")
    right.set_ylabel("GB/s")
    right.set_title("moved", fontsize=9)
    right.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    figure.suptitle(f"Four tenants whose arrays exceed the memory limit, {numbers['device']}", fontsize=10)
    return figure


def churn(report: BenchmarkReport) -> Numbers:
    """Distributions of the waits in microseconds, and by what may grow: [tenants that left, growth]."""
    waits = {wait: distribution(samples_of(row_of(report, "churn", f"{wait}, p99"))) for wait in WAITS}
    grown: Numbers = {}
    for what, unit in UNITS.items():
        series = series_of(row_of(report, "churn", f"growth of {what}"))
        values = series[what]
        grown[f"{what}, {unit}"] = [series["tenants"], [short(value - values[0]) for value in values]]
    joined = value_of(row_of(report, "churn", "tenants that joined"))
    return {"device": report.gpu.name, "tenants": joined, "waits": waits, "grown": grown}


def draw_churn(numbers: Numbers, pyplot: Any) -> Any:
    """Waits on the left, growth on the right; that of interned names is on purpose."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
    for wait, points in numbers["waits"].items():
        us, part = zip(*points, strict=True)
        left.plot(us, part, color=WAITS[wait], label=wait)
    logarithmic(left, "x")
    left.set_xlabel("us")
    left.set_ylabel("part of the tenants that waited at most this")
    left.grid(color="#dddddd", linewidth=0.6)
    left.legend(frameon=False, fontsize=8)
    left.set_title("waits", fontsize=9)
    for color, (what, points) in zip((BLUE, ORANGE, GREEN, GREY, RED), numbers["grown"].items(), strict=False):
        right.plot(*points, color=color, marker=".", label=what)
    right.set_yscale("symlog", linthresh=1)
    right.set_xlabel("tenants that have left")
    right.set_ylabel("growth")
    right.grid(color="#dddddd", linewidth=0.6)
    right.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    right.set_title("what stays behind", fontsize=9)
    figure.suptitle(f"{numbers['tenants']:g} tenants that join and leave, {numbers['device']}", fontsize=10)
    return figure


FIGURES = (
    Figure(
        "overcommit",
        "Work kept, and bytes moved, while four tenants' arrays exceed what the pool may hold",
        "overcommit",
        overcommit,
        draw_overcommit,
    ),
    Figure(
        "tenant-churn",
        "What tenants that join and leave wait for, and what grows meanwhile",
        "churn",
        churn,
        draw_churn,
    ),
)
