"""What happened to tasks and how they stand: transitions with sequence numbers, and the texts that other tools read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pygpukit import _core

_PPM = 1_000_000
_UNFINISHED = ("queued", "admitted", "running", "suspended")
_FINISHED = ("succeeded", "failed", "cancelled", "rejected", "expired")


class TaskEvent(NamedTuple):
    """One task left one phase and entered another."""

    sequence: int  # of all events of the process, ascending
    t_ns: int
    number: int  # of the task, as in its record
    name: str
    source: str
    target: str
    reason: str


class TaskEvents(NamedTuple):
    """Events from one sequence number on. `lost`: events of any kind that were overwritten before this read."""

    events: list[TaskEvent]
    next_sequence: int
    lost: int


def read(core: _core.SchedulerCore, since: int, max_events: int) -> TaskEvents:
    found, following, lost = core.events(since, max_events)
    return TaskEvents([TaskEvent(*event) for event in found], following, lost)


def chrome_trace(events: Iterable[TaskEvent], now_ns: int) -> str:
    """Trace Event JSON, as chrome://tracing and Perfetto read it: a row a task, a slice a phase, times in microseconds.

    A phase that lasts is drawn up to now_ns.
    """
    slices: list[dict[str, Any]] = []
    entered: dict[int, TaskEvent] = {}

    def draw(event: TaskEvent, until_ns: int) -> None:
        slices.append(
            {
                "name": event.target,
                "cat": "task",
                "ph": "X",
                "ts": event.t_ns / 1000,
                "dur": max(0, until_ns - event.t_ns) / 1000,
                "pid": event.number >> 32,
                "tid": event.number & 0xFFFFFFFF,
                "args": {"task": event.name, "reason": event.reason, "sequence": event.sequence},
            }
        )

    names: dict[int, str] = {}
    for event in events:
        names[event.number] = event.name
        if before := entered.pop(event.number, None):
            draw(before, event.t_ns)
        if event.target.lower() in _FINISHED:
            draw(event, event.t_ns)
        else:
            entered[event.number] = event
    for event in entered.values():
        draw(event, now_ns)
    rows = [
        {"name": "thread_name", "ph": "M", "pid": number >> 32, "tid": number & 0xFFFFFFFF, "args": {"name": name}}
        for number, name in names.items()
    ]
    return json.dumps({"traceEvents": rows + slices, "displayTimeUnit": "ms"})


def prometheus(totals: Mapping[str, int], partitions: Mapping[str, Mapping[str, float]]) -> str:
    """Text exposition format, version 0.0.4, of one moment."""
    lines: list[str] = []

    def metric(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> None:
        lines.extend((f"# HELP pygpukit_{name} {text}", f"# TYPE pygpukit_{name} {kind}"))
        lines.extend(f"pygpukit_{name}{labels} {value}" for labels, value in samples)

    def by_phase(phases: Iterable[str]) -> list[tuple[str, float]]:
        return [(f'{{phase="{phase}"}}', totals[phase]) for phase in phases]

    metric("tasks_submitted_total", "counter", "Tasks submitted.", [("", totals["submitted"])])
    metric("tasks_finished_total", "counter", "Tasks that ended, by how.", by_phase(_FINISHED))
    metric("tasks", "gauge", "Unfinished tasks, by phase.", by_phase(_UNFINISHED))
    metric("reserved_memory_bytes", "gauge", "Memory that tasks reserve.", [("", totals["reserved_memory"])])
    metric("available_memory_bytes", "gauge", "Memory that none reserves.", [("", totals["available_memory"])])
    metric("reserved_share_ratio", "gauge", "Compute that tasks reserve.", [("", totals["reserved_share_ppm"] / _PPM)])
    for field, text in (
        ("memory_used_bytes", "Memory that tasks of a partition reserve."),
        ("memory_quota_bytes", "Memory that a partition keeps."),
        ("unfinished_tasks", "Tasks of a partition that have not ended."),
        ("sms", "Multiprocessors that a partition has to itself."),
    ):
        samples = [(f'{{partition="{_escaped(name)}"}}', values[field]) for name, values in partitions.items()]
        if samples:
            metric(f"partition_{field}", "gauge", text, samples)
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
