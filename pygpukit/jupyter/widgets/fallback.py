"""Static pictures of a dashboard's state as HTML with SVG and a table, for places that show outputs without a kernel.

Figures that differ between equal runs (addresses, times, identities) are left out, so that stored outputs compare;
readings of sensors are put in where they are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pygpukit.core.text import escape, human_bytes
from pygpukit.telemetry.state import State

WIDTH = 640
ROW = 14
LETTER = 7  # about as wide as a letter is
LABEL, BAR = 130, 300  # of a row with words: where its bar begins, and how long it is
MAX_SHAPES = 1000  # the picture is stored in the notebook
MAX_ROWS = 50
UNLIMITED_BYTES = 1 << 60  # a pool without a limit reports one near 2**64
COLOURS = ("#4f7be0", "#1f9e8f", "#d97a28", "#9263cf", "#cf4f86", "#68a03c", "#b08a14", "#73849c")
PHASE_COLOURS = {
    "Queued": "#c98a12",
    "Admitted": "#7ba0f2",
    "Running": "#2f62d9",
    "Suspended": "#8349cc",
    "Succeeded": "#17803d",
    "Rejected": "#c02626",
    "Failed": "#c02626",
    "Cancelled": "#73849c",
    "Expired": "#a0522d",
}
STYLE = "font: 13px system-ui, sans-serif; font-variant-numeric: tabular-nums; max-width: 640px"
_CACHE_HEADS = ("KV cache of", "Holder", "Blocks", "Shared", "Size")
CELL = "text-align: left; padding: 1px 16px 1px 0"


def memory_html(state: State) -> str:
    """The pool's bar, its blocks by address, and tables of owners and of the blocks of KV caches."""
    gauges = state.gauges
    used, reserved, quota = (gauges.get(name, 0) for name in ("used", "reserved", "limit"))
    limited = 0 < quota < UNLIMITED_BYTES
    whole = max(quota if limited else reserved, reserved, 1)
    limit = f" of {human_bytes(quota)}" if limited else ""
    words = (
        f"{human_bytes(used)} used, {human_bytes(reserved)} reserved{limit}; "
        f"{gauges.get('live_blocks', 0)} live blocks, peak {human_bytes(gauges.get('peak_used', 0))}"
    )
    bar = [
        _rect(0, 0, WIDTH, "currentColor", 0.1),
        _rect(0, 0, WIDTH * reserved / whole, COLOURS[0], 0.4),
        _rect(0, 0, WIDTH * used / whole, COLOURS[0]),
    ]
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for block in state.blocks:
        owner = block.owner or "unnamed"
        sizes[owner] += block.size
        counts[owner] += 1
    rows = [(o, human_bytes(s), str(counts[o])) for o, s in sorted(sizes.items(), key=lambda one: (-one[1], one[0]))]
    tables = _table(("Owner", "Size", "Blocks"), rows) + _table(_CACHE_HEADS, [_cache(row) for row in state.caches])
    return _page("GPU memory", state.label, words, bar + _map(state), 2 if state.segments else 1, tables)


def scheduler_html(state: State) -> str:
    """Tasks by phase as one bar, and a table of tasks and contexts."""
    tasks = [state.tasks[number] for number in sorted(state.tasks)]
    counts = Counter(str(task.get("phase", "")) for task in tasks)
    launches = state.gauges.get("launches", 0) + state.gauges.get("host_launches", 0)
    phases = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(counts.items()))
    bar, labels = _phases(counts)
    rows = [_task(task) for task in tasks] + [_context(context) for context in state.contexts]
    table = _table(("Task", "Phase", "QoS", "Share", "Memory"), rows)
    contexts = len(state.contexts)
    beside = f", {contexts} context{'' if contexts == 1 else 's'}" if contexts else ""
    idle = "; not started, start() or result() runs its tasks" if state.unstarted else ""
    words = f"{phases or 'no task'}{beside}; {launches} launches{idle}"
    return _page("GPU scheduler", state.label, words, bar, labels, table)


def _phases(counts: Mapping[str, int]) -> tuple[list[str], int]:
    """One bar of the tasks in each phase with a label for each below, and how many rows that takes."""
    shapes = []
    left, x, row = 0.0, 0.0, 1
    for phase, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        width = WIDTH * count / sum(counts.values())
        colour = PHASE_COLOURS.get(phase, COLOURS[7])
        shapes.append(_rect(left, 0, width - 1, colour))
        left += width
        label = f"{count} {phase.lower()}"
        taken = 18 + LETTER * len(label) + 16
        if x + taken > WIDTH:
            x, row = 0.0, row + 1
        y = row * (ROW + 6)
        shapes += [_rect(x, y, 12, colour), _text(x + 18, y, label)]
        x += taken
    return shapes, row + 1 if shapes else 0


def cells_html(state: State) -> str:
    """Rows of what each run of a cell kept. Times, peaks and prompt numbers are left out: they differ between runs."""
    rows = [
        (str(number), str(row["launches"]), human_bytes(row["kept"]), human_bytes(row["leaked"]))
        for number, row in enumerate(state.cells, 1)
    ]
    max_kept = max((row["kept"] for row in state.cells), default=0) or 1
    step = WIDTH / max(1, len(rows))
    bars = [
        _rect(step * i, ROW * (1 - row["kept"] / max_kept), step - 2, COLOURS[0])
        for i, row in enumerate(state.cells)
        if row["kept"]
    ]
    words = f"{len(rows)} cells; they kept {human_bytes(sum(row['kept'] for row in state.cells))}"
    table = _table(("Run", "Launches", "Kept", "Held, unnamed"), rows)
    return _page("GPU cells", state.label, words, bars, 1 if bars else 0, table)


def device_html(state: State, readings: bool = False) -> str:
    """The fields of the newest sample, each with a bar where it is a percentage. readings: also what sensors say."""
    sample = state.device_sample
    fields = sample.get("fields", [])
    shapes = []
    for row, one in enumerate(fields):
        percent = one["value"] if readings and one["unit"] == "%" and one["value"] is not None else 0
        y = row * (ROW + 6)
        shapes += [_text(0, y, str(one["label"])), _rect(LABEL, y, BAR, "currentColor", 0.1)]
        shapes += [
            _rect(LABEL, y, BAR * percent / 100, COLOURS[0]),
            _text(LABEL + BAR + 10, y, _reading(one, readings)),
        ]
    listed = [one for one in fields if readings or one["value"] is None]
    rows = [(str(one["label"]), _reading(one, readings), str(one["note"])) for one in listed]
    words = str(sample.get("source", "no sample"))
    reported = sum(one["value"] is not None for one in fields)
    if reported and not readings:
        words += f"; {reported} fields are shown while the kernel runs"
    return _page("GPU device", state.label, words, shapes, len(fields), _table(("Field", "Value", "Note"), rows))


def links_html(label: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of the links between devices: what they are, and what the wire carries."""
    cells = []
    for row in rows:
        kind = f"{row['lanes']} {row['kind']}" if row["lanes"] else str(row["kind"])
        rate = f"{human_bytes(int(row['bytesPerS']))}/s" if row["bytesPerS"] else "not told"
        cells.append((str(row["from"]), str(row["to"]), kind, rate))
    words = f"{len(rows)} links between devices" if rows else "one device, and no link"
    return _page("GPU links", label, words, [], 0, _table(("From", "To", "Kind", "Wire"), cells))


def _reading(one: Mapping[str, Any], readings: bool) -> str:
    value, unit = one["value"], str(one["unit"])
    if value is None:
        return "not available"
    if not readings:
        return "live only"
    return human_bytes(int(value)) + unit[1:] if unit in ("B", "B/s") else f"{value:g} {unit}".rstrip()


def _cache(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["cache"], row["holder"], str(row["blocks"]), str(row["shared"]), human_bytes(row["bytes"])


def _task(task: Mapping[str, object]) -> tuple[str, ...]:
    name = str(task.get("name") or f"task {task.get('number')}")
    return (name, str(task.get("phase", "")), str(task.get("policy", "")), *_promised(task))


def _context(context: Mapping[str, object]) -> tuple[str, ...]:
    phase = "context, ended" if context.get("endedNs") else "context"
    return (str(context.get("name", "")), phase, "", *_promised(context))


def _promised(row: Mapping[str, object]) -> tuple[str, str]:
    """Share and memory in words, "" for what was not asked for."""
    share, memory = int(str(row.get("sharePpm", 0))), int(str(row.get("memoryBytes", 0)))
    return f"{share / 1e4:g} %" if share else "", human_bytes(memory) if memory else ""


def _map(state: State) -> list[str]:
    """Mapped segments end to end in one row, blocks inside; ordered by content, as addresses differ between runs."""
    inside: dict[int, list[tuple[int, int, str]]] = {start: [] for start, _ in state.segments}
    starts = sorted(inside)
    sizes = dict(state.segments)
    for block in state.blocks[:MAX_SHAPES]:
        at = bisect_right(starts, block.address) - 1
        if at >= 0 and block.address - starts[at] < sizes[starts[at]]:
            inside[starts[at]].append((block.address - starts[at], block.size, block.owner))
    rows = [(-size, inside[start]) for start, size in state.segments]
    total = max(1, -sum(size for size, _ in rows))
    parts = []
    left = 0.0
    colours: dict[str, str] = {}
    for negative_size, blocks in sorted(rows):
        width = WIDTH * -negative_size / total
        if width > 1:  # a gap is left between two
            parts.append(_rect(left, ROW + 6, width - 1, "currentColor", 0.1))
        for offset, length, owner in blocks:
            colour = colours.setdefault(owner, COLOURS[len(colours) % len(COLOURS)])
            parts.append(_rect(left + WIDTH * offset / total, ROW + 6, max(WIDTH * length / total - 0.5, 0.5), colour))
        left += width
    return parts


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:g}" y="{y + ROW - 3:g}" font-size="12" fill="currentColor">{escape(words)}</text>'


def _rect(x: float, y: float, width: float, fill: str, opacity: float = 1.0) -> str:
    height = ROW - y if 0 < y < ROW else ROW
    place = f'x="{x:.1f}" y="{y:g}" width="{max(width, 0):.1f}" height="{height:g}"'
    return f'<rect {place} rx="2" fill="{fill}" opacity="{opacity}"/>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th style="{CELL}">{escape(text)}</th>' for text in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{escape(text)}</td>' for text in row) + "</tr>" for row in rows[:MAX_ROWS]
    )
    more = f"<p>and {len(rows) - MAX_ROWS} more</p>" if len(rows) > MAX_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _page(title: str, device: str, words: str, shapes: Sequence[str], rows: int, table: str) -> str:
    picture = ""
    if rows:
        frame = f'viewBox="0 0 {WIDTH} {rows * (ROW + 6)}" width="100%" role="img" aria-label="{escape(words)}"'
        picture = f"<svg {frame}>{''.join(shapes)}</svg>"
    head = f"<p><b>{escape(title)}</b> {escape(device)}<br>{escape(words)}</p>"
    return f'<div style="{STYLE}">{head}{picture}{table}</div>'
