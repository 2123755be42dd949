"""Measurements in the result card: the time and its samples, rates against the measured limits, and sweeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pygpukit.core.text import escape
from pygpukit.profiling import timing
from pygpukit.profiling.bench import SIMULATED, BenchResult

_BAR_WIDTH, _BAR_HEIGHT = 300, 8
_STRIP_WIDTH, _STRIP_HEIGHT = 216, 34
_ROOF_WIDTH, _ROOF_HEIGHT = 216, 64


@dataclass(frozen=True)
class SweepPoint:
    """One point of a sweep: its settings, and its measurement or why it could not run."""

    settings: Mapping[str, object]
    bench: BenchResult | None
    error: str = ""

    @property
    def label(self) -> str:
        return " ".join(self.labels)

    @property
    def labels(self) -> list[str]:
        return [f"{name}={value}" for name, value in self.settings.items()]


def duration(us: float, digits: int = 4) -> str:
    """Significant digits in the unit that suits: 12.34 \u00b5s, 1.204 ms."""
    unit, scale = _unit(us)
    return f"{us / scale:.{digits}g} {unit}"


def spread(bench: BenchResult) -> str:
    """The spread that follows the median's duration(), in its unit: \u00b1 0.15."""
    amount = bench.mad_us / _unit(bench.median_us)[1]
    if 0 < amount < 0.001:
        return "&plusmn; &lt; 0.001"
    return f"&plusmn; {amount:.0f}" if amount >= 100 else f"&plusmn; {amount:.2g}"


def _unit(us: float) -> tuple[str, float]:
    """The unit that suits a time, and its microseconds."""
    for unit, scale in (("\u00b5s", 1.0), ("ms", 1e3)):
        if us < 999.95 * scale:
            return unit, scale
    return "s", 1e6


def rate(giga: float, unit: str) -> str:
    """Three significant digits or more: 4261 GB/s, 61.2 TFLOP/s for operations."""
    if unit == "FLOP/s" and giga >= 1000:
        return f"{giga / 1000:.3g} TFLOP/s"
    return f"{giga:.0f} G{unit}" if giga >= 100 else f"{giga:.3g} G{unit}"


def bench_html(bench: BenchResult) -> str:
    """The section of one measurement."""
    head = f'<p class="gk-big">{duration(bench.median_us)} <small>{spread(bench)} (MAD)</small></p>'
    count = f"median of {len(bench.samples)} samples"
    if bench.batch > 1:
        count += f" of {bench.batch} launches"
    facts = [count, "cold L2" if bench.cold_l2 else "warm L2", f"fastest {duration(bench.min_us)}"]
    if bench.backend == "sim":
        facts.remove("warm L2")
    about = f'<p class="gk-small gk-muted">{" &middot; ".join(facts)}</p>'
    notes = [f'<p class="gk-small {style}">{escape(text)}</p>' for style, text in _notes(bench)]
    picture = _roofline(bench) or _strip(bench)
    return (
        f'<section><div class="gk-row"><div>{head}{about}{"".join(notes)}</div>{picture}</div>{_rates(bench)}</section>'
    )


def _notes(bench: BenchResult) -> list[tuple[str, str]]:
    notes = []
    if not bench.converged:
        notes.append(("gk-warn", f"did not converge: {timing.unsettled(bench.samples)}"))
    if bench.backend == "sim":
        notes.append(("gk-warn", SIMULATED))
        return notes
    if bench.clocks is None:
        notes.append(("gk-muted", "clocks unknown: NVML is not there"))
        return notes
    mhz = [
        f"{one} MHz" if one is not None else "unknown"
        for one in (bench.clocks.sm_mhz_before, bench.clocks.sm_mhz_after)
    ]
    clock = f"SM clock {mhz[0]}" if mhz[0] == mhz[1] else f"SM clock {mhz[0]} before, {mhz[1]} after"
    notes.append(("gk-muted", clock))
    if bench.clocks.reasons:
        notes.append(("gk-warn", f"clocks held down by {', '.join(bench.clocks.reasons)}"))
    return notes


def _rates(bench: BenchResult) -> str:
    """Rates and what part of the measured limits they are; nothing that was not given is shown."""
    limits = bench.limits
    rows = []
    if bench.gbps is not None:
        limit = rate(limits.copy_gbps, "B/s") if limits else None
        rows.append(_rate_row("memory", rate(bench.gbps, "B/s"), bench.percent_of_copy, limit, "copy", "--gk-blue"))
    if bench.gflops is not None:
        limit = rate(limits.fma_gflops, "FLOP/s") if limits else None
        name = "float32 FMA"
        rows.append(_rate_row("compute", rate(bench.gflops, "FLOP/s"), bench.percent_of_fma, limit, name, "--gk-teal"))
    width = "" if limits else " gk-facts"  # without a limit there is no bar to fill the row
    return f'<table class="gk-rates{width}"><tbody>{"".join(rows)}</tbody></table>' if rows else ""


def _rate_row(what: str, value: str, percent: float | None, limit: str | None, name: str, colour: str) -> str:
    share = bar = ""
    if percent is not None:
        share = f'<b>{percent:.0f} %</b> <span class="gk-muted">of {limit}, the measured {name} rate</span>'
        if percent > 100:
            share += ' <span class="gk-muted">(caches or other units)</span>'
        bar = _bar(percent / 100, colour, f"{percent:.0f} percent")
    return f'<tr><td class="gk-muted">{what}</td><td>{value}</td><td>{share}</td><td class="gk-bar">{bar}</td></tr>'


def _bar(part: float, colour: str, words: str) -> str:
    """A bar over its whole; words say it to those who cannot see it."""
    size = f'viewBox="0 0 {_BAR_WIDTH} {_BAR_HEIGHT}" height="{_BAR_HEIGHT}" preserveAspectRatio="none"'
    width = _BAR_WIDTH * min(max(part, 0.0), 1.0)
    whole = f'<rect width="{_BAR_WIDTH}" height="{_BAR_HEIGHT}" rx="3" fill="currentColor" opacity="0.1"/>'
    filled = f'<rect width="{width:.1f}" height="{_BAR_HEIGHT}" rx="3" fill="var({colour})"/>'
    return f'<svg role="img" aria-label="{words}" {size}>{whole}{filled}</svg>'


def _strip(bench: BenchResult) -> str:
    """Every sample in the order taken, against the median: drift and outliers show."""
    middle = bench.median_us
    reach = max(max(abs(one - middle) for one in bench.samples), 0.01 * middle) or 1.0
    half = _STRIP_HEIGHT / 2
    step = _STRIP_WIDTH / max(len(bench.samples) - 1, 1)
    dots = "".join(
        f'<circle cx="{at * step:.1f}" cy="{half - (one - middle) / reach * (half - 3):.1f}" r="1.6"/>'
        for at, one in enumerate(bench.samples)
    )
    line = f'<path d="M0 {half}H{_STRIP_WIDTH}" stroke="currentColor" opacity="0.25"/>'
    words = f"{len(bench.samples)} samples around the median"
    size = f'width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}"'
    return f'<svg role="img" aria-label="{words}" {size}>{line}<g fill="var(--gk-blue)" opacity="0.75">{dots}</g></svg>'


def _roofline(bench: BenchResult) -> str:
    """The roof of the measured limits over operations a byte, both axes logarithmic, and where the kernel stands."""
    limits = bench.limits
    if limits is None or not bench.bytes or not bench.flops or not bench.gflops:
        return ""
    intensity = bench.flops / bench.bytes
    ridge = limits.fma_gflops / limits.copy_gbps
    low, high = min(intensity, ridge) / 8, max(intensity, ridge) * 8
    top, bottom = limits.fma_gflops * 2, min(low * limits.copy_gbps, bench.gflops / 2)

    def x(value: float) -> float:
        return _ROOF_WIDTH * math.log(value / low) / math.log(high / low)

    def y(value: float) -> float:
        return _ROOF_HEIGHT * (1 - math.log(value / bottom) / math.log(top / bottom))

    roof = f"M{x(low):.1f} {y(low * limits.copy_gbps):.1f}L{x(ridge):.1f} {y(limits.fma_gflops):.1f}H{_ROOF_WIDTH}"
    at = f"{x(intensity):.1f}"
    reach = min(limits.fma_gflops, intensity * limits.copy_gbps)
    drop = f'<path d="M{at} {y(reach):.1f}V{y(bench.gflops):.1f}" stroke="var(--gk-amber)" stroke-dasharray="2 2"/>'
    point = f'<circle cx="{at}" cy="{y(bench.gflops):.1f}" r="4" fill="var(--gk-amber)"/>'
    words = f"roofline: {intensity:.3g} operations a byte, {bench.bound}-bound, {bench.percent_of_limit:.0f} percent"
    size = f'width="{_ROOF_WIDTH}" height="{_ROOF_HEIGHT}"'
    line = f'<path d="{roof}" fill="none" stroke="currentColor" stroke-width="1.5" opacity="0.55"/>'
    caption = f'<p class="gk-small gk-muted">{intensity:.3g} FLOP/byte, roof bends at {ridge:.3g}</p>'
    return f'<div><svg role="img" aria-label="{words}" {size}>{line}{drop}{point}</svg>{caption}</div>'


def sweep_html(points: Sequence[SweepPoint]) -> str:
    """The section of a sweep: one row a point, the fastest in bold, bars by time."""
    times = [point.bench.median_us for point in points if point.bench]
    best, worst = min(times, default=0.0), max(times, default=0.0)
    rows = []
    for point in points:
        bench = point.bench
        if bench is None:
            cells = f'<td class="gk-bad" colspan="3">{escape(point.error)}</td>'
        else:
            fastest = bench.median_us == best
            time = f"<b>{duration(bench.median_us)}</b>" if fastest else duration(bench.median_us)
            about = spread(bench) + ("" if bench.converged else ", did not converge")
            colour = "--gk-teal" if fastest else "--gk-blue"
            bar = _bar(bench.median_us / worst if worst else 0.0, colour, duration(bench.median_us))
            cells = f'<td>{time}</td><td class="gk-muted">{about}</td><td class="gk-bar">{bar}</td>'
        label = " ".join(f"<code>{escape(one)}</code>" for one in point.labels)
        rows.append(f"<tr><td>{label}</td>{cells}</tr>")
    note = ""
    if any(point.bench and point.bench.backend == "sim" for point in points):
        note = f'<p class="gk-small gk-warn">{SIMULATED}</p>'
    return f'<section><table class="gk-rates"><tbody>{"".join(rows)}</tbody></table>{note}</section>'
