"""Static pictures of a dashboard's state as HTML with SVG, for places that show outputs without a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from pygpukit.core.text import human_bytes

if TYPE_CHECKING:
    from pygpukit import _core

WIDTH = 640
ROW = 14
MAX_SHAPES = 1000  # the picture is stored in the notebook
UNLIMITED_BYTES = 1 << 60  # a pool without a limit reports one near 2**64
COLOURS = ("#4f7be0", "#1f9e8f", "#d97a28", "#9263cf", "#cf4f86", "#68a03c", "#b08a14", "#73849c")
STYLE = "font: 13px system-ui, sans-serif; font-variant-numeric: tabular-nums; max-width: 640px"


def memory_html(
    device: str,
    stats: _core.PoolStats,
    segments: Sequence[tuple[int, int, bool]],
    blocks: Sequence[tuple[int, int, int, int, int, int, int, bool]],
) -> str:
    """The pool's bar and its blocks by address; no address, time or identity is in the text."""
    limited = 0 < stats.quota < UNLIMITED_BYTES
    whole = max(stats.quota if limited else stats.reserved, stats.reserved, 1)
    limit = f" of {human_bytes(stats.quota)}" if limited else ""
    words = (
        f"{human_bytes(stats.used)} used, {human_bytes(stats.reserved)} reserved{limit}; "
        f"{stats.active_blocks} live blocks, peak {human_bytes(stats.peak_used)}"
    )
    bar = [
        _rect(0, 0, WIDTH, "currentColor", 0.1),
        _rect(0, 0, WIDTH * stats.reserved / whole, COLOURS[0], 0.4),
        _rect(0, 0, WIDTH * stats.used / whole, COLOURS[0]),
    ]
    return _page("GPU memory", device, words, bar + _map(segments, blocks), 2 if segments else 1)


def scheduler_html(device: str, tasks: Sequence[_core.TaskRecord], counters: Mapping[str, int]) -> str:
    """Tasks by phase as one bar, and the launches so far."""
    counts = Counter(task.phase for task in tasks)
    launches = counters["launches"] + counters["host_launches"]
    phases = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(counts.items()))
    bar = []
    left = 0.0
    for colour, (_, count) in zip(COLOURS, sorted(counts.items()), strict=False):
        width = WIDTH * count / len(tasks)
        bar.append(_rect(left, 0, width, colour))
        left += width
    return _page("GPU scheduler", device, f"{phases or 'no task'}; {launches} launches", bar, 1 if bar else 0)


def _map(
    segments: Sequence[tuple[int, int, bool]], blocks: Sequence[tuple[int, int, int, int, int, int, int, bool]]
) -> list[str]:
    """Mapped segments end to end in one row, blocks inside; ordered by content, as addresses differ between runs."""
    rows = []
    for start, size, mapped in segments:
        inside = [(b[1] - start, b[2], b[4] or b[3]) for b in blocks[:MAX_SHAPES] if start <= b[1] < start + size]
        if mapped:
            rows.append((-size, inside))
    total = -sum(size for size, _ in rows)
    parts = []
    left = 0.0
    colours: dict[int, str] = {}  # in the order of the picture: the ids themselves differ between runs
    for negative_size, inside in sorted(rows, key=lambda row: (row[0], [shape[:2] for shape in row[1]])):
        width = WIDTH * -negative_size / total
        parts.append(_rect(left, ROW + 6, width - 1, "currentColor", 0.1))
        for offset, length, owner in inside:
            colour = colours.setdefault(owner, COLOURS[len(colours) % len(COLOURS)])
            parts.append(_rect(left + WIDTH * offset / total, ROW + 6, max(WIDTH * length / total - 0.5, 0.5), colour))
        left += width
    return parts


def _rect(x: float, y: float, width: float, fill: str, opacity: float = 1.0) -> str:
    place = f'x="{x:.1f}" y="{y}" width="{max(width, 0):.1f}" height="{ROW}"'
    return f'<rect {place} rx="2" fill="{fill}" opacity="{opacity}"/>'


def _page(title: str, device: str, words: str, shapes: Sequence[str], rows: int) -> str:
    picture = ""
    if rows:
        frame = f'viewBox="0 0 {WIDTH} {rows * (ROW + 6)}" width="100%" role="img" aria-label="{escape(words)}"'
        picture = f"<svg {frame}>{''.join(shapes)}</svg>"
    return f'<div style="{STYLE}"><p><b>{escape(title)}</b> {escape(device)}<br>{escape(words)}</p>{picture}</div>'
