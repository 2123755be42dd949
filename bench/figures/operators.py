"""The array operators beside a device copy and beside their peers."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.goals import OF_COPY
from pygpukit.benchmark.result import BenchmarkReport

from .picture import BLUE, GREEN, LIGHT_BLUE, ORANGE, RED, Figure, MissingDataError, Numbers

DTYPES = ("float32", "bfloat16")
SHARE = ", of the copy"
LIMITS = {name: limit for limit, names in OF_COPY.items() for name in names}
OURS, PEERS = "pygpukit", {"torch": "PyTorch", "cupy": "CuPy"}
COLORS = {"float32": BLUE, "bfloat16": LIGHT_BLUE, OURS: BLUE, "PyTorch": ORANGE, "CuPy": GREEN}


def shares(report: BenchmarkReport) -> Numbers:
    """Per cent of the rate of a device copy of as many bytes, by type and operator, and the limits."""
    values = {row.name: row.value for row in report.results if row.category == "operators"}
    by_dtype = {dtype: {name: values.get(f"{name} {dtype}{SHARE}") for name in LIMITS} for dtype in DTYPES}
    if not any(value for by_name in by_dtype.values() for value in by_name.values()):
        raise MissingDataError(f'rows of operators "{SHARE[2:]}"')
    return {"device": report.gpu.name, "limits": LIMITS, "shares": by_dtype}


def rates(report: BenchmarkReport) -> Numbers:
    """Effective GB/s of each operator here and in the peers, by type, and the rate of the largest device copy."""
    rows = [row for row in report.results if row.category == "operators" and row.unit == "GB/s"]
    copies = [row for row in rows if row.name == "copy device to device"]
    if not copies:
        raise MissingDataError("the row operators/copy device to device")
    values: Numbers = {dtype: {name: {} for name in LIMITS} for dtype in DTYPES}
    for row in rows:
        name, _, dtype = row.name.rpartition(" ")
        if dtype not in values or name not in LIMITS:
            continue
        values[dtype][name][PEERS[row.peer] if row.peer else OURS] = row.peer_value or row.value
    roof = max(copies, key=lambda row: float(row.params["MiB"])).value
    return {"device": report.gpu.name, "copy": roof, "rates": values}


def draw_shares(numbers: Numbers, pyplot: Any) -> Any:
    """Bars for each operator and type, with a mark at the operator's limit."""
    names = list(numbers["limits"])
    figure, axis = pyplot.subplots(figsize=(8, 6.2), layout="constrained")
    for offset, (dtype, values) in zip((-0.19, 0.19), numbers["shares"].items(), strict=True):
        at = [place + offset for place in range(len(names))]
        axis.barh(at, [values[name] or 0 for name in names], height=0.36, color=COLORS[dtype], label=dtype)
    for place, name in enumerate(names):
        limit = numbers["limits"][name]
        label = "must reach" if place == 0 else None
        axis.plot([limit, limit], [place - 0.42, place + 0.42], color=RED, linewidth=1.6, label=label)
    axis.axvline(100, color="black", linewidth=0.8)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xlim(0, 110)
    axis.set_xlabel("% of the rate of a device copy of as many bytes (cold L2, medians)")
    axis.set_title(f"Operators on 64 Mi elements, {numbers['device']}")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def draw_rates(numbers: Numbers, pyplot: Any) -> Any:
    """A point for each library on each operator's line, under the roof that a device copy makes."""
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 5.6), sharey=True, layout="constrained")
    for axis, (dtype, values) in zip(axes, numbers["rates"].items(), strict=True):
        for library, marker in ((OURS, "o"), ("PyTorch", "s"), ("CuPy", "D")):
            seen = [(rate[library], place) for place, rate in enumerate(values.values()) if library in rate]
            label = library if axis is axes[0] else None
            across, down = zip(*seen, strict=True) if seen else ((), ())
            order = 4 if library == OURS else 3
            axis.scatter(across, down, s=30, marker=marker, color=COLORS[library], label=label, zorder=order)
        axis.axvline(numbers["copy"], color="black", linewidth=0.8)
        axis.set_yticks(range(len(values)), list(values))
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_xlim(0, 1.08 * numbers["copy"])
        axis.set_title(f"{dtype}; line: a device copy, {numbers['copy']:,.0f} GB/s", fontsize=9)
        axis.set_xlabel("effective GB/s")
    axes[0].invert_yaxis()
    figure.suptitle(f"Operators on 64 Mi elements beside their peers, {numbers['device']}", fontsize=10)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


FIGURES = (
    Figure(
        "operators-of-copy",
        "Operators in per cent of the rate of a device copy, float32 and bfloat16, with the share that each must reach",
        "operators",
        shares,
        draw_shares,
    ),
    Figure(
        "operators-beside-peers",
        "Effective bandwidth of the same operators here, in PyTorch and in CuPy, under the rate of a device copy",
        "operators",
        rates,
        draw_rates,
    ),
)
