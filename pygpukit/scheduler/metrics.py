"""Counters and gauges of one moment in the text exposition format of Prometheus, version 0.0.4.

Labels are bounded: tenants are the names of tasks, of which the core counts the first 64 each by itself and all later
ones together, as "(others)"; partitions are as many as were created. No label has a task's id or number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_PPM = 1_000_000
_NS = 1_000_000_000
_UNFINISHED = ("queued", "admitted", "running", "suspended")
_FINISHED = ("succeeded", "failed", "cancelled", "rejected", "expired")
_WINDOWS = ("10ms", "100ms", "1s")
_OTHERS = "(others)"

_TENANT_COUNTERS = (
    ("tasks_submitted_total", "tasks", 1, "Tasks of a tenant submitted."),
    ("gpu_seconds_total", "gpu_ns", _NS, "Device time that a tenant had."),
    ("launches_total", "launches", 1, "Launches of a tenant that the device was given."),
    ("slices_total", "slices", 1, "Parts that long launches of a tenant were cut into."),
    ("deferred_launches_total", "paced", 1, "Launches of a tenant that had to wait for their turn."),
    ("waited_seconds_total", "waited_ns", _NS, "Time that launches of a tenant waited for a turn."),
    ("throttles_total", "throttles", 1, "Times that a limit held a tenant back."),
    ("throttled_seconds_total", "throttled_ns", _NS, "Time that limits held a tenant back."),
    ("requeues_total", "requeues", 1, "Tasks of a tenant that went back to the queue to run again."),
    ("preemptions_total", "preemptions", 1, "Tasks of a tenant that gave way to a higher priority."),
)
_PARTITION_FIGURES = (
    ("memory_used_bytes", "gauge", "Memory that tasks of a partition reserve."),
    ("memory_quota_bytes", "gauge", "Memory that a partition keeps."),
    ("unfinished_tasks", "gauge", "Tasks of a partition that have not ended."),
    ("sms", "gauge", "Multiprocessors that a partition has to itself."),
    ("kernels_total", "counter", "Kernels that tasks of a partition submitted."),
    ("pending_kernels", "gauge", "Of those, the ones that wait for their turn."),
    ("transfers_total", "counter", "Copies that tasks of a partition submitted."),
    ("pending_transfers", "gauge", "Of those, the ones that have not begun, or not ended in a transfer engine."),
    ("compute_seconds_total", "counter", "Device time of tasks of a partition."),
)

_DEVICE_FIGURES = (
    ("total_memory_bytes", "total_memory", 1, "Memory of a device that tasks can reserve."),
    ("reserved_memory_bytes", "reserved_memory", 1, "Memory that tasks reserve on a device."),
    ("available_memory_bytes", "available_memory", 1, "Memory that none reserves on a device."),
    ("reserved_share_ratio", "reserved_share_ppm", _PPM, "Compute that tasks reserve on a device."),
    ("holding_tasks", "tasks", 1, "Tasks that hold something on a device, those of several devices on each."),
    ("running_tasks", "running", 1, "Of those, the ones under way."),
    ("waiting_tasks", "waiting", 1, "Tasks in line for a device alone."),
)

Traffic = Sequence[tuple[str | None, int, int]]


def prometheus(
    totals: Mapping[str, int],
    partitions: Mapping[str, Mapping[str, float]],
    tenants: Sequence[Mapping[str, Any]] = (),
    depths: Iterable[tuple[str, int]] = (),
    traffic: Traffic = (),
    counters: Mapping[str, int] | None = None,
    devices: Sequence[Mapping[str, int]] = (),
) -> str:
    """totals, partitions, tenants, depths, devices: of one scheduler. traffic, which is (tenant, bytes evicted, bytes
    restored), and counters: of the process."""
    page = _Page()
    page.add("tasks_submitted_total", "counter", "Tasks submitted.", [({}, totals["submitted"])])
    page.add("tasks_finished_total", "counter", "Tasks that ended, by how.", _by_phase(totals, _FINISHED))
    page.add("tasks", "gauge", "Unfinished tasks, by phase.", _by_phase(totals, _UNFINISHED))
    page.add("reserved_memory_bytes", "gauge", "Memory that tasks reserve.", [({}, totals["reserved_memory"])])
    page.add("available_memory_bytes", "gauge", "Memory that none reserves.", [({}, totals["available_memory"])])
    reserved_share = totals["reserved_share_ppm"] / _PPM
    page.add("reserved_share_ratio", "gauge", "Compute that tasks reserve.", [({}, reserved_share)])
    page.add("queue_depth", "gauge", "Tasks in line, by partition.", [({"partition": p}, n) for p, n in depths])
    for name, field, unit, text in _DEVICE_FIGURES:
        by_device = [
            ({"device": str(one["device"])}, one[field] if unit == 1 else one[field] / unit) for one in devices
        ]
        page.add(f"device_{name}", "gauge", text, by_device)
    for field, kind, text in _PARTITION_FIGURES:
        samples = [({"partition": name}, values[field]) for name, values in partitions.items()]
        page.add(f"partition_{field}", kind, text, samples)
    _add_tenants(page, tenants)
    moved = [({"tenant": _label(tenant)}, evicted, restored) for tenant, evicted, restored in traffic]
    text = "Bytes of a tenant that went to host memory, in the whole process."
    page.add("evicted_bytes_total", "counter", text, [(labels, evicted) for labels, evicted, _ in moved])
    text = "Bytes of a tenant that came back from host memory, in the whole process."
    page.add("restored_bytes_total", "counter", text, [(labels, restored) for labels, _, restored in moved])
    if counters is not None:
        unpinned = "Host buffers that were to be pinned and are not"
        page.add("pageable_buffers_total", "counter", f"{unpinned}.", [({}, counters["pageable_buffers"])])
        page.add("pageable_bytes_total", "counter", f"{unpinned}, in bytes.", [({}, counters["pageable_bytes"])])
    return page.text()


def _by_phase(totals: Mapping[str, int], phases: Iterable[str]) -> list[tuple[dict[str, str], float]]:
    return [({"phase": phase}, totals[phase]) for phase in phases]


def _add_tenants(page: _Page, tenants: Sequence[Mapping[str, Any]]) -> None:
    named = [({"tenant": _label(tenant["name"])}, tenant) for tenant in tenants]
    for name, field, unit, text in _TENANT_COUNTERS:
        page.add(
            f"tenant_{name}",
            "counter",
            text,
            [(labels, tenant[field] if unit == 1 else tenant[field] / unit) for labels, tenant in named],
        )
    for field in ("running", "waiting"):
        what = "under way" if field == "running" else "in line"
        samples = [(labels, tenant[field]) for labels, tenant in named]
        page.add(f"tenant_{field}_tasks", "gauge", f"Tasks of a tenant {what}.", samples)
    page.add(
        "tenant_queue_position",
        "gauge",
        "The best place of a task of a tenant in line, from 1.",
        [(labels, tenant["position"]) for labels, tenant in named if tenant["position"]],
        min,
    )
    page.add(
        "tenant_share_ratio",
        "gauge",
        "The part of the device that a tenant had in the last whole periods that are measured.",
        [
            (labels | {"window": window}, share)
            for labels, tenant in named
            for window, share in zip(_WINDOWS, tenant["shares"], strict=True)
        ],
    )


def _label(tenant: str | None) -> str:
    return _OTHERS if tenant is None else tenant


class _Page:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(
        self,
        name: str,
        kind: str,
        text: str,
        samples: Iterable[tuple[Mapping[str, str], float]],
        joined: Callable[[list[float]], float] = sum,
    ) -> None:
        """One family; none without samples. joined: what becomes of samples with the same labels, of which the format
        allows one: somebody may have named a task as the others are called."""
        values: dict[str, list[float]] = {}
        for labels, value in samples:
            values.setdefault(_labels(labels), []).append(value)
        if values:
            self._lines += [f"# HELP pygpukit_{name} {text}", f"# TYPE pygpukit_{name} {kind}"]
            self._lines += [f"pygpukit_{name}{labels} {joined(parts)}" for labels, parts in values.items()]

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
