"""A profile as people read it: a table of totals, and in a notebook a timeline above it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from pygpukit.core.backend import is_sim
from pygpukit.profiling.waiting import OTHER_LIBRARIES
from pygpukit.profiling.work import Total, Work

if TYPE_CHECKING:
    from pygpukit.profiling.trace import Profile

_ROWS = 20  # of the table; the rest is summed in one line
_DRAWN = 4000  # works of the timeline; more would be drawn on one another
_WIDTH, _LANE = 860, 22
_COLOURS = {"kernel": "#4a7fe8", "graph": "#7d5fe0", "host": "#4a7fe8", "copy": "#1d9d8b", "fill": "#c98216"}
SIMULATED = "times are the simulated device's: the processor's, which say nothing about a GPU"


def as_text(profile: Profile) -> str:
    """The head line and the table."""
    lines = [_head(profile)]
    if profile.works:
        lines.append(f"{'count':>8} {'total ms':>11} {'mean us':>11} {'longest us':>11} {'busy':>7}  name")
    for total in _shown(profile.totals()):
        lines.append(
            f"{total.count:>8} {total.total_us / 1e3:>11.3f} {total.mean_us:>11.2f} {total.longest_us:>11.2f} "
            f"{total.share:>6.1%}  {total.name}"
        )
    return "\n".join([*lines, *notes(profile)])


def as_html(profile: Profile) -> str:
    """The same with a timeline; every text of a kernel, tenant or cell is escaped."""
    rows = "".join(
        f"<tr><td style='text-align:left'><code>{escape(total.name)}</code></td><td>{total.count}</td>"
        f"<td>{total.total_us / 1e3:.3f}</td><td>{total.mean_us:.2f}</td><td>{total.longest_us:.2f}</td>"
        f"<td>{total.share:.1%}</td></tr>"
        for total in _shown(profile.totals())
    )
    columns = "".join(f"<th>{name}</th>" for name in ("count", "total ms", "mean us", "longest us", "busy"))
    head = f"<tr><th style='text-align:left'>name</th>{columns}</tr>"
    below = "".join(f"<div>{escape(note)}</div>" for note in notes(profile))
    table = f"<table>{head}{rows}</table>" if rows else ""
    drawn = timeline(profile.works, profile.begin_ns, max(profile.wall_ns, 1))
    return f"<div><div><b>{escape(_head(profile))}</b></div>{drawn}{table}{below}</div>"


def _head(profile: Profile) -> str:
    works, wall = profile.works, profile.wall_ns
    if not works:
        return f"nothing was launched in {wall / 1e6:.2f} ms"
    launches = sum(work.launches for work in works if work.kind in ("kernel", "graph", "host"))
    busy = profile.busy_ns
    share = f"{busy / 1e6:.3f} of {wall / 1e6:.3f} ms ({busy / wall:.1%})"
    return f"{launches} launches, {len(works)} works; the device was busy {share}"


def notes(profile: Profile) -> list[str]:
    """Sentences about it: how long the device waited and for what, what has no time, whose times these are."""
    lines = []
    waits = profile.waits()
    if waits:
        by_cause: dict[str, float] = {}
        for wait in waits:
            by_cause[wait.cause] = by_cause.get(wait.cause, 0.0) + wait.duration_us / 1e3
        longest = sorted(by_cause.items(), key=lambda one: -one[1])
        causes = "; ".join(f"{took:.3f} ms {cause}" for cause, took in longest)
        lines.append(
            f"it waited {len(waits)} times for more than 10 us, {sum(by_cause.values()):.3f} ms in all: {causes}"
        )
    if profile.untimed:
        why = "of tasks, on streams of other libraries, or too many"
        lines.append(f"{profile.untimed} works have no time of their own: {why}")
    if is_sim():
        lines.append(SIMULATED)
    return lines


def _shown(totals: list[Total]) -> list[Total]:
    """The longest, and the rest as one."""
    if len(totals) <= _ROWS:
        return totals
    rest = totals[_ROWS - 1 :]
    count, total = sum(one.count for one in rest), sum(one.total_us for one in rest)
    longest, share = max(one.longest_us for one in rest), sum(one.share for one in rest)
    other = Total(f"{len(rest)} others", "", count, total, total / count, longest, 0, share)
    return [*totals[: _ROWS - 1], other]


def timeline(works: Sequence[Work], begin_ns: int, span_ns: int) -> str:
    """Works as bars, a lane a stream of a device; of very many those that last longest. HTML."""
    if not works:
        return ""
    lanes = {key: lane for lane, key in enumerate(sorted({_lane(work) for work in works}))}
    height = len(lanes) * _LANE + 16
    bars = []
    for work in sorted(works, key=lambda work: work.begin_ns - work.end_ns)[:_DRAWN]:
        left = (work.begin_ns - begin_ns) / span_ns * _WIDTH
        width = max((work.end_ns - work.begin_ns) / span_ns * _WIDTH, 0.5)
        where = f", {work.cell}:{work.line}" if work.line else ""
        title = escape(f"{work.name}: {work.duration_us:.2f} us at {(work.begin_ns - begin_ns) / 1e3:.1f} us{where}")
        bars.append(
            f"<rect x='{left:.2f}' y='{lanes[_lane(work)] * _LANE + 2}' width='{width:.2f}' height='{_LANE - 4}' "
            f"fill='{_COLOURS[work.kind]}'><title>{title}</title></rect>"
        )
    names = "".join(_text(_WIDTH + 6, lane * _LANE + 15, "start", lane_name(key)) for key, lane in lanes.items())
    scale = _text(0, height - 2, "start", "0") + _text(_WIDTH, height - 2, "end", f"{span_ns / 1e6:.3f} ms")
    return (
        f"<svg viewBox='0 0 {_WIDTH + 150} {height}' width='100%' style='max-width:{_WIDTH + 150}px' role='img' "
        f"aria-label='timeline of {len(works)} works'>{''.join(bars)}{names}{scale}</svg>"
    )


def _text(x: int, y: int, anchor: str, text: str) -> str:
    font = "fill='currentColor' font-size='11'"
    return f"<text x='{x}' y='{y}' {font} text-anchor='{anchor}'>{escape(text)}</text>"


def _lane(work: Work) -> tuple[int, int, bool]:
    return work.device, work.stream, work.tenant == OTHER_LIBRARIES


def lane_name(key: tuple[int, int, bool]) -> str:
    """Of a lane: device, stream, and whether other libraries have it."""
    device, stream, other = key
    name = "default stream" if stream == 0 else f"stream {stream}"
    name = f"{name} of {OTHER_LIBRARIES}" if other else name
    return f"{name} of device {device}" if device else name
