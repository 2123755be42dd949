"""Bytes that move: eviction and restoring beside plain copies, and the transfer engine beside one large copy."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.result import BenchmarkReport

from .picture import (
    BLUE,
    GREY,
    LIGHT_BLUE,
    ORANGE,
    Figure,
    Numbers,
    label,
    logarithmic,
    row_of,
    rows_of,
    short,
    value_of,
)

MIB = 1 << 20
SIDES = {"evict": "host", "restore": "device"}
WAYS = ("H2D", "D2H", "both")
URGENT = {
    "alone": "urgent 64 KiB alone",
    "beside a large copy,\nengine": "urgent 64 KiB beside a large copy",
    "beside a large copy,\none piece": "urgent 64 KiB beside a large copy, plain",
}


def eviction(report: BenchmarkReport) -> Numbers:
    """By call and size in MiB: GB/s of the call and of a plain pinned copy the same way."""
    calls: Numbers = {}
    for call, side in SIDES.items():
        sizes: Numbers = {}
        for row in rows_of(report, "eviction", call):
            mib = row.params["MiB"]
            plain = row_of(report, "eviction", f"plain pinned copy to the {side}", MiB=mib)
            sizes[str(mib)] = {"moved": short(mib * MIB * 1e-6 / value_of(row)), "plain": value_of(plain)}
        calls[call] = sizes
    return {"device": report.gpu.name, "calls": calls}


def draw_eviction(numbers: Numbers, pyplot: Any) -> Any:
    """A panel for each call, a pair of bars for each size."""
    figure, axes = pyplot.subplots(1, 2, figsize=(7.5, 3.6), sharey=True, layout="constrained")
    for axis, (call, sizes) in zip(axes, numbers["calls"].items(), strict=True):
        for offset, kind, color in ((-0.2, "moved", BLUE), (0.2, "plain", GREY)):
            at = [place + offset for place in range(len(sizes))]
            by = {"moved": "the pool", "plain": "plain pinned copy"}[kind] if axis is axes[0] else None
            bars = axis.bar(at, [rates[kind] for rates in sizes.values()], width=0.38, color=color, label=by)
            axis.bar_label(bars, fmt=label, fontsize=8)
        axis.set_xticks(range(len(sizes)), list(sizes))
        axis.set_xlabel("block, MiB")
        axis.set_title(f"{call}, to the {SIDES[call]}", fontsize=9)
        axis.margins(y=0.12)
    axes[0].set_ylabel("GB/s")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(f"Moving a block out and back, {numbers['device']}", fontsize=10)
    return figure


def transfers(report: BenchmarkReport) -> Numbers:
    """GB/s by way and engine, and microseconds of an urgent copy by what is under way: the median and the worst."""
    rates = {
        way: {by: value_of(row_of(report, "transfers", f"pinned copy, {by}", way=way)) for by in ("engine", "plain")}
        for way in WAYS
    }
    urgent = {
        beside: {
            "median": value_of(rows_of(report, "transfers", name)[0]),
            "worst": value_of(rows_of(report, "transfers", f"{name}, worst")[0]),
        }
        for beside, name in URGENT.items()
    }
    return {"device": report.gpu.name, "rates": rates, "urgent": urgent}


def draw_transfers(numbers: Numbers, pyplot: Any) -> Any:
    """Rates on the left, waits of an urgent copy on the right."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for offset, name, color, by in ((-0.2, "engine", BLUE, "the engine"), (0.2, "plain", GREY, "one piece")):
        at = [place + offset for place in range(len(WAYS))]
        bars = left.bar(at, [numbers["rates"][way][name] for way in WAYS], width=0.38, color=color, label=by)
        left.bar_label(bars, fmt=label, fontsize=8)
    left.set_xticks(range(len(WAYS)), ["to the device", "to the host", "both at once"])
    left.set_ylabel("GB/s")
    left.margins(y=0.12)
    left.legend(frameon=False, fontsize=8)
    left.set_title("pinned copies", fontsize=9)
    for offset, kind, color in ((-0.2, "median", LIGHT_BLUE), (0.2, "worst", ORANGE)):
        at = [place + offset for place in range(len(URGENT))]
        bars = right.bar(at, [waits[kind] for waits in numbers["urgent"].values()], 0.38, color=color, label=kind)
        right.bar_label(bars, fmt=label, fontsize=8)
    logarithmic(right, "y")
    right.margins(y=0.12)
    right.set_xticks(range(len(URGENT)), list(URGENT), fontsize=8)
    right.set_ylabel("us")
    right.legend(frameon=False, fontsize=8)
    right.set_title("an urgent copy of 64 KiB", fontsize=9)
    figure.suptitle(f"Transfers, {numbers['device']}", fontsize=10)
    return figure


FIGURES = (
    Figure(
        "eviction-rate",
        "Evicting and restoring a block beside plain pinned copies of as many bytes",
        "eviction",
        eviction,
        draw_eviction,
    ),
    Figure(
        "transfer-rate",
        "The transfer engine beside the same copies as one piece, and what an urgent copy waits for",
        "transfers",
        transfers,
        draw_transfers,
    ),
)
