"""Events as Trace Event JSON, which chrome://tracing and Perfetto draw."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pygpukit.scheduler.events import (
    Event,
    LaunchEvent,
    MemoryEvent,
    QueueEvent,
    ShareEvent,
    TaskEvent,
    ThrottleEvent,
)

_FINISHED = ("Succeeded", "Failed", "Cancelled", "Rejected", "Expired")
_WINDOWS = {"10 ms": 10_000_000, "100 ms": 100_000_000, "1 s": 1_000_000_000}
_SHARES_NS = 100_000_000  # between two ShareEvents of a task that gets something
# Groups of rows beside those of schedulers, which are numbered from 0.
_THROTTLED, _EVICTED = 1_000_000, 1_000_001


def chrome_trace(events: Iterable[Event], now_ns: int) -> str:
    """Trace Event JSON: a row a task with a slice a phase; rows for stretches in which limits held a task back, and in
    which a tenant had blocks in host memory, with an instant for each that moved; counters of shares, SM occupancy and
    tasks in line. Times in microseconds.

    What lasts is drawn up to now_ns.
    """
    trace = _Trace()
    for event in events:
        trace.add(event)
    return json.dumps({"traceEvents": trace.finish(now_ns), "displayTimeUnit": "ms"})


class _Trace:
    def __init__(self) -> None:
        self._drawn: list[dict[str, Any]] = []
        self._rows: dict[tuple[int, int], str] = {}
        self._groups: dict[int, str] = {}
        self._entered: dict[int, TaskEvent] = {}
        self._shares: dict[tuple[int, int], ShareEvent] = {}
        self._occupancy: dict[int, LaunchEvent] = {}
        self._tenants: dict[str, int] = {}
        self._away: dict[tuple[int, int], MemoryEvent] = {}  # by device and block
        self._bytes_away: Counter[str] = Counter()  # by tenant
        self._since: dict[str, tuple[int, int]] = {}  # by tenant: when its blocks began to go, and the most bytes away

    def add(self, event: Event) -> None:
        if isinstance(event, TaskEvent):
            self._phase(event)
        elif isinstance(event, QueueEvent):
            line = f"queue depth of {event.waits_for or 'the default partition'}"
            self._count(line, event.t_ns, event.number >> 32, "", "tasks", event.depth)
        elif isinstance(event, ThrottleEvent):
            row = self._row(_THROTTLED, event.number & 0xFFFFFFFF, event.name, "throttled by their limits")
            held = {"throttled_ns": event.throttled_ns, "throttles": event.throttles}
            args = {**held, "device": event.device, "sequence": event.sequence}
            self._slice("throttled", "throttle", row, event.from_ns, event.t_ns, args)
        elif isinstance(event, ShareEvent):
            self._share(event)
        elif isinstance(event, MemoryEvent):
            self._memory(event)
        else:
            self._launch(event)

    def finish(self, now_ns: int) -> list[dict[str, Any]]:
        """Everything, what is open ended at now_ns, the names of rows first."""
        for event in self._entered.values():
            self._end_phase(event, now_ns)
        for share in self._shares.values():
            self._rest(share, now_ns)
        for tenant in list(self._since):
            self._end_stretch(tenant, now_ns)
        rows = [
            {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
            for (pid, tid), name in self._rows.items()
        ]
        groups = [
            {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}}
            for pid, name in self._groups.items()
        ]
        return groups + rows + self._drawn

    def _row(self, pid: int, tid: int, name: str, group: str = "") -> dict[str, int]:
        self._rows[pid, tid] = name
        if group:
            self._groups[pid] = group
        return {"pid": pid, "tid": tid}

    def _slice(
        self, name: str, category: str, row: dict[str, int], from_ns: int, until_ns: int, args: dict[str, Any]
    ) -> None:
        times = {"ts": from_ns / 1000, "dur": max(0, until_ns - from_ns) / 1000}
        self._drawn.append({"name": name, "cat": category, "ph": "X", **times, **row, "args": args})

    def _count(self, name: str, t_ns: int, pid: int, identity: str, what: str, value: float) -> None:
        counted: dict[str, Any] = {"name": name, "ph": "C", "ts": t_ns / 1000, "pid": pid, "args": {what: value}}
        self._drawn.append(counted | {"id": identity} if identity else counted)

    # ---- phases ----

    def _phase(self, event: TaskEvent) -> None:
        if before := self._entered.pop(event.number, None):
            self._end_phase(before, event.t_ns)
        if event.target not in _FINISHED:
            self._row(event.number >> 32, event.number & 0xFFFFFFFF, event.name)
            self._entered[event.number] = event
            return
        self._end_phase(event, event.t_ns)
        for key in [key for key in self._shares if key[0] == event.number]:
            last = self._shares.pop(key)
            self._draw_share(last._replace(t_ns=event.t_ns, share_10ms=0.0, share_100ms=0.0, share_1s=0.0))
        if launch := self._occupancy.pop(event.number, None):
            self._draw_occupancy(launch._replace(t_ns=event.t_ns, occupancy=0.0))

    def _end_phase(self, event: TaskEvent, until_ns: int) -> None:
        row = self._row(event.number >> 32, event.number & 0xFFFFFFFF, event.name)
        args = {"task": event.name, "reason": event.reason, "device": event.device, "sequence": event.sequence}
        self._slice(event.target, "task", row, event.t_ns, until_ns, args)

    # ---- counters ----

    def _share(self, event: ShareEvent) -> None:
        key = (event.number, event.device)
        if before := self._shares.get(key):
            self._rest(before, event.t_ns)
        self._shares[key] = event
        self._draw_share(event)

    def _draw_share(self, event: ShareEvent) -> None:
        shares = (event.share_10ms, event.share_100ms, event.share_1s)
        for window, share in zip(_WINDOWS, shares, strict=True):
            self._draw_window(event, window, event.t_ns, share)

    def _draw_window(self, event: ShareEvent, window: str, t_ns: int, share: float) -> None:
        name = f"{event.name}: share of device {event.device} over {window}"
        self._count(name, t_ns, event.number >> 32, str(event.number), "share", share)

    def _rest(self, event: ShareEvent, until_ns: int) -> None:
        """A task that gets nothing has no event: then its shares are zero, one window later."""
        for window, window_ns in _WINDOWS.items():
            zero_ns = event.t_ns + window_ns + _SHARES_NS
            if zero_ns < until_ns:
                self._draw_window(event, window, zero_ns, 0.0)

    def _launch(self, event: LaunchEvent) -> None:
        """Drawn where it changes: a loop launches the same kernel again and again."""
        before = self._occupancy.get(event.number)
        if event.occupancy is not None and event.number and (not before or before.occupancy != event.occupancy):
            self._occupancy[event.number] = event
            self._draw_occupancy(event)

    def _draw_occupancy(self, event: LaunchEvent) -> None:
        name = f"{event.name}: SM occupancy of its launches"
        self._count(name, event.t_ns, event.number >> 32, str(event.number), "occupancy", event.occupancy or 0.0)

    # ---- host memory ----

    def _memory(self, event: MemoryEvent) -> None:
        key = (event.device, event.block)
        if before := self._away.pop(key, None):
            self._bytes_away[before.name] -= before.bytes
        if event.action == "evicted":
            self._away[key] = event
            self._bytes_away[event.name] += event.bytes
            since, peak = self._since.get(event.name, (event.t_ns, 0))
            self._since[event.name] = (since, max(peak, self._bytes_away[event.name]))
        if before and not self._bytes_away[before.name]:
            self._end_stretch(before.name, event.t_ns)
        moved = {"name": event.action, "cat": "memory", "ph": "i", "s": "t", "ts": event.t_ns / 1000}
        args = {"bytes": event.bytes, "block": event.block, "device": event.device, "sequence": event.sequence}
        self._drawn.append({**moved, **self._tenant_row(event.name), "args": args})

    def _end_stretch(self, tenant: str, until_ns: int) -> None:
        since_ns, peak = self._since.pop(tenant)
        self._slice("in host memory", "memory", self._tenant_row(tenant), since_ns, until_ns, {"bytes": peak})

    def _tenant_row(self, tenant: str) -> dict[str, int]:
        place = self._tenants.setdefault(tenant, len(self._tenants) + 1)
        return self._row(_EVICTED, place, tenant or "of no tenant", "memory that was evicted")
