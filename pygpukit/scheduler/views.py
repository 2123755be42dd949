"""Views: what a scheduler shows of itself, at one moment and since then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from pygpukit import _core
from pygpukit.scheduler import chrome, events, metrics, shares, slicer
from pygpukit.scheduler.desk import Desk
from pygpukit.scheduler.events import EVENT_KINDS, Events, TaskEvents
from pygpukit.scheduler.processes import WorkerRecord

_RECORD_FIELDS = (
    "number",
    "id",
    "name",
    "phase",
    "reason",
    "paused",
    "detail",
    "field",
    "error",
    "memory_bytes",
    "share_ppm",
    "memory_limit",
    "share_limit_ppm",
    "partition",
    "device",
    "devices",
    "policy",
    "priority",
    "deadline_ns",
    "submitted_ns",
    "started_ns",
    "finished_ns",
    "launches",
    "slices",
    "gpu_ns",
    "paced",
)


class SchedulerViews:
    """The part of a Scheduler that reads."""

    core: _core.SchedulerCore
    total_memory: int
    sched_tick_ms: float
    window_ms: float
    workers: int
    order: str
    admission: str
    placement: str
    device_count: int
    _desk: Desk

    @property
    def partitions(self) -> _core.PartitionManager:
        """The partitions of this scheduler: get(), stats(), set_default(), delete_partition() and the rest."""
        return self.core.partitions()

    def worker_processes(self) -> list[WorkerRecord]:
        """State of the worker processes of partitions of isolation "process", as far as tasks have needed them."""
        return self._desk.processes.records()

    def snapshot(self) -> dict[str, Any]:
        """Everything at one moment, as plain values: t_ns (the event ring's clock), next_sequence (of the next event),
        totals (counts by phase, bytes, parts per million), tasks (the records' fields), partitions by id, workers (as
        worker_processes() tells), reservations (by device: bytes and parts per million, tasks that hold something,
        running, waiting for it and for it among others) and devices: what the running tasks get of each.

        Of a task there: gpu_ns (device time between events), share_10ms, share_100ms and share_1s (fractions of the
        device in the last whole periods that are measured), waited_ns (for a turn), throttled_ns (held by its limit),
        launches, slices (that long ones were cut into). Of a device: now_ns, in_flight_ns (an estimate of what it has
        yet to do) and the last throttles.
        """
        devices = shares.devices(self.core)
        t_ns, next_sequence, totals, records, reservations = self.core.snapshot()
        return {
            "t_ns": t_ns,
            "next_sequence": next_sequence,
            "totals": totals,
            "tasks": [{field: getattr(record, field) for field in _RECORD_FIELDS} for record in records],
            "partitions": self._partition_figures(),
            "workers": [record._asdict() for record in self.worker_processes()],
            "reservations": reservations,
            "devices": devices,
            "kernels": slicer.report(),
        }

    @overload
    def events(self, since: int = 1, max_events: int = 65536) -> TaskEvents: ...

    @overload
    def events(self, since: int = 1, max_events: int = 65536, *, kinds: Iterable[str]) -> Events: ...

    def events(
        self, since: int = 1, max_events: int = 65536, *, kinds: Iterable[str] | None = None
    ) -> TaskEvents | Events:
        """Events of this scheduler's tasks from a sequence number on, in order of it, as far as the ring has them.

        kinds: of EVENT_KINDS; without it, transitions. "task": transitions; "queue": moves in line; "throttle":
        stretches in which a limit held a task back; "share": what a task got over 10 ms, 100 ms and 1 s; "memory":
        blocks, of whomever, that went to host memory, came back or were freed there; "launch": kernels and their SM
        occupancy.
        Go on with next_sequence of the last answer, or of snapshot(): what is missing then is counted in `lost`.
        Raises InvalidSpecError for an unknown kind.
        """
        if kinds is None:
            return events.transitions(self.core, max(1, since), max_events)
        return events.read(self.core, max(1, since), max_events, kinds)

    def chrome_trace(self) -> str:
        """All that events() tells as Trace Event JSON, for chrome://tracing and Perfetto."""
        return chrome.chrome_trace(self.events(kinds=EVENT_KINDS).events, _core.now_ns())

    def prometheus(self) -> str:
        """Counters and gauges of this moment in Prometheus' text format; the bytes evicted and restored, and the host
        buffers that could not be pinned, are the process's."""
        partitions = self._partition_figures()
        tenants, depths = self.core.tenants(), self.core.depths()
        traffic, counters = _core.pool_traffic(), _core.counters()
        reserved = self.core.reservations()
        return metrics.prometheus(self.core.stats(), partitions, tenants, depths, traffic, counters, reserved)

    def _partition_figures(self) -> dict[str, dict[str, float]]:
        partitions = {name: self.partitions.get(name) for name in self.partitions.partition_ids()}
        return {
            name: {
                "memory_used_bytes": partition.usage.memory_used,
                "memory_quota_bytes": partition.limits.memory_quota,
                "unfinished_tasks": partition.usage.unfinished_tasks,
                "kernels_total": partition.usage.total_kernels,
                "pending_kernels": partition.usage.pending_kernels,
                "transfers_total": partition.usage.total_transfers,
                "pending_transfers": partition.usage.pending_transfers,
                "compute_seconds_total": partition.usage.compute_time_ms / 1e3,
                "device": partition.limits.device,
                "sms": partition.sms,
                "sm_share": partition.sm_share,
                "sm_switching": partition.sm_switching,
                "sm_switch_ns": partition.sm_switch_ns,
            }
            for name, partition in partitions.items()
            if partition is not None
        }

    def global_stats(self) -> dict[str, Any]:
        """Counts of tasks by phase, bytes and parts per million reserved, and the settings of this scheduler."""
        stats = self.core.stats()
        return {
            **stats,
            "task_count": stats["submitted"],
            "completed_count": stats["succeeded"],
            "total_memory": self.total_memory,
            "sched_tick_ms": self.sched_tick_ms,
            "window_ms": self.window_ms,
            "workers": self.workers,
            "order": self.order,
            "admission": self.admission,
            "placement": self.placement,
            "device_count": self.device_count,
        }

    @property
    def task_count(self) -> int:
        """Tasks submitted so far."""
        return self.core.stats()["submitted"]

    @property
    def completed_count(self) -> int:
        """Tasks that have succeeded so far."""
        return self.core.stats()["succeeded"]

    @property
    def reserved_memory(self) -> int:
        """Bytes reserved by tasks that are admitted or run."""
        return self.core.stats()["reserved_memory"]

    @property
    def available_memory(self) -> int:
        """Bytes that can still be reserved."""
        return self.core.stats()["available_memory"]

    def __repr__(self) -> str:
        stats = self.core.stats()
        counts = ", ".join(f"{stats[phase]} {phase}" for phase in ("queued", "admitted", "running", "succeeded"))
        named = (
            ("order", self.order, "turns"),
            ("admission", self.admission, "in-order"),
            ("placement", self.placement, "spread"),
        )
        policies = "".join(f"; {field} {name}" for field, name, default in named if name != default)
        return f"Scheduler({counts}; {stats['reserved_memory']} of {self.total_memory} bytes reserved{policies})"
