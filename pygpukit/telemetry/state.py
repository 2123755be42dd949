"""The state behind a static picture, as plain rows: read from the process, or computed from a trace's messages."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit.core import records
from pygpukit.telemetry import cell_figures, messages
from pygpukit.telemetry.rows import context_rows, task_row
from pygpukit.telemetry.trace import Entry, TraceError

if TYPE_CHECKING:
    from pygpukit.scheduler.contexts import ContextRecord

_MAGIC = 0x314B4750
GAUGES = (
    *("used", "reserved", "limit", "cached", "evicted", "peak_used", "live_blocks", "segments"),
    *("launches", "host_launches", "h2d_bytes", "d2h_bytes", "device_free", "device_total", "running", "queued"),
)
PHASES = (
    *("Submitted", "Rejected", "Queued", "Admitted", "Running"),
    *("Suspended", "Succeeded", "Failed", "Cancelled", "Expired"),
)


@dataclass
class Block:
    """One live block. owner: array, else tenant, else ""."""

    address: int
    size: int
    owner: str
    resident: bool


@dataclass
class State:
    """gauges: by the names of GAUGES. tasks: rows as a page takes them, by number. contexts: likewise, all there are.
    device_sample: the newest, or {}. unstarted: labels of schedulers whose tasks wait for start(). caches: rows of who
    has how many blocks of KV caches."""

    label: str = ""
    gauges: dict[str, int] = field(default_factory=dict)
    segments: list[tuple[int, int]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    tasks: dict[int, dict[str, Any]] = field(default_factory=dict)
    contexts: list[dict[str, Any]] = field(default_factory=list)
    cells: list[dict[str, Any]] = field(default_factory=list)
    device_sample: dict[str, Any] = field(default_factory=dict)
    unstarted: list[str] = field(default_factory=list)
    caches: list[dict[str, Any]] = field(default_factory=list)


def live(
    label: str,
    tasks: Sequence[_core.TaskRecord],
    contexts: Sequence[ContextRecord],
    device_sample: dict[str, Any] | None = None,
    unstarted: Iterable[str] = (),
    caches: Iterable[dict[str, Any]] = (),
    place: int = 0,
) -> State:
    """The state of this process now. place: the device whose memory is meant."""
    stats, counters = _core.pool_stats(place), _core.counters()
    return State(
        label,
        {
            "used": stats.used,
            "reserved": stats.reserved,
            "limit": stats.quota,
            "peak_used": stats.peak_used,
            "live_blocks": stats.active_blocks,
            "launches": counters["launches"],
            "host_launches": counters["host_launches"],
        },
        [(address, size) for address, size, mapped in _core.pool_segments(place) if mapped],
        [
            Block(address, size, _core.name(name) or _core.name(tenant), resident)
            for _, address, size, tenant, name, _, _, resident in _core.pool_blocks(place)
        ],
        {task.number: task_row(task) for task in tasks},
        context_rows(contexts),
        [row.message() for row in cell_figures.ledger.rows()],
        device_sample or {},
        sorted(unstarted),
        list(caches),
    )


def of_entries(label: str, entries: Iterable[Entry]) -> State:
    """The state after a trace's messages. Raises TraceError for a message or a frame that cannot be read."""
    builder = _Builder(State(label))
    for entry in entries:
        kind = messages.check(entry.content)
        if kind == "frame":
            builder.frame(entry.buffers[0])
        elif kind == "snapshot":
            builder.snapshot(entry.content)
        elif kind == "tasks":
            builder.state.tasks.update({row["number"]: row for row in entry.content.get("rows", [])})
        elif kind == "names":
            builder.rename(entry.content.get("rows", []))
        elif kind == "contexts":
            builder.state.contexts = entry.content.get("rows", [])
        elif kind == "caches":
            builder.state.caches = entry.content.get("rows", [])
        elif kind == "cells":
            builder.state.cells = entry.content.get("rows", [])
        elif kind == "device":
            builder.state.device_sample = entry.content
    return builder.finish()


class _Builder:
    """Keeps names and blocks by address while messages come; what each kind means is in docs/seams.md."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._names: dict[int, str] = {}
        self._blocks: dict[int, tuple[int, int, int, bool]] = {}  # size, tenant, name, resident
        self._segments: dict[int, int] = {}
        self._next = self._snapshot_seq = self._place = 0

    def snapshot(self, message: dict[str, Any]) -> None:
        self._snapshot_seq = int(message["seq"])
        self._place = int(message.get("place", 0))
        self._segments = dict(message["segments"])
        self._blocks = {b[0]: (b[1], b[3], b[4], bool(b[7])) for b in message["blocks"]}
        self.state.tasks.update({row["number"]: row for row in message["tasks"]})

    def rename(self, rows: list[list[int]]) -> None:
        for address, _, name in rows:
            if address in self._blocks:
                size, tenant, _, resident = self._blocks[address]
                self._blocks[address] = (size, tenant, name, resident)

    def frame(self, data: bytes) -> None:
        try:
            magic, version, *_, count, _session, _first, _following, _lost, _t, _seq = records.HEADER.unpack_from(data)
            if (magic, version) != (_MAGIC, 1):
                raise TraceError(f"the trace has a frame of version {version}; this pygpukit reads version 1")
            self.state.gauges = dict(zip(GAUGES, records.GAUGES.unpack_from(data, records.HEADER.size), strict=True))
            end = records.IN_FRAME + count * records.BYTES
            self._read_names(data, end)
            for one in records.unpack(data[records.IN_FRAME : end]):
                self._record(one)
        except struct.error as error:
            raise TraceError(f"the trace has a frame that is cut off: {error}") from None

    def _read_names(self, data: bytes, at: int) -> None:
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
        for _ in range(count):
            number, size = struct.unpack_from("<II", data, at)
            self._names[number] = data[at + 8 : at + 8 + size].decode("utf-8", "replace")
            at += 8 + -(-size // 4) * 4

    def _record(self, one: records.Record) -> None:
        if one.seq < self._next:
            return
        self._next = one.seq + 1
        if one.kind == records.TASK:
            self._task(one.a, one.name, PHASES[min(one.b % 256, len(PHASES) - 1)], one.t_ns)
        if one.seq < self._snapshot_seq or one.device != self._place:
            return
        if one.kind == records.ALLOC:
            self._blocks[one.a] = (one.b, one.tenant, one.name, True)
        elif one.kind == records.FREE:
            self._blocks.pop(one.a, None)
        elif one.kind in (records.EVICT, records.RESTORE) and one.a in self._blocks:
            self._blocks[one.a] = (*self._blocks[one.a][:3], one.kind == records.RESTORE)
        elif one.kind == records.SEGMENT_MAP:
            self._segments[one.a] = one.b
        elif one.kind == records.SEGMENT_UNMAP:
            self._segments.pop(one.a, None)

    def _task(self, number: int, name: int, phase: str, t_ns: int) -> None:
        row = self.state.tasks.setdefault(number, {"number": number, "submittedNs": t_ns, "startedNs": 0})
        row.setdefault("name", self._names.get(name, ""))
        row["phase"] = phase
        row["finishedNs"] = t_ns if phase in (PHASES[1], *PHASES[6:]) else 0
        if phase == "Running":
            row["startedNs"] = row["startedNs"] or t_ns

    def finish(self) -> State:
        self.state.segments = sorted(self._segments.items())
        self.state.blocks = [
            Block(address, size, self._names.get(name, "") or self._names.get(tenant, ""), resident)
            for address, (size, tenant, name, resident) in sorted(self._blocks.items())
        ]
        return self.state
