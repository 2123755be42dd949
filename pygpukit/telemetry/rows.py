"""Tasks, partitions and contexts as a page takes them: plain rows, with numbers in words where a reader needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit.core.links import links
from pygpukit.core.text import task_numbers
from pygpukit.telemetry.late import Lately, late

if TYPE_CHECKING:
    from pygpukit.scheduler.contexts import ContextRecord

_PPM = 1_000_000


def lately(had: Lately) -> dict[str, Any]:
    """The share of the last seconds and why it is below the promise; neither where nothing was promised."""
    return {"share": had.share, "shortfall": had.shortfall.value} if had.share is not None else {"shortfall": ""}


def task_row(task: _core.TaskRecord, scheduler: str = "", unstarted: bool = False) -> dict[str, Any]:
    """One task. scheduler: the label of its own; unstarted: that has no dispatcher threads."""
    return {
        "number": task.number,
        "id": task.id,
        "name": task.name,
        "scheduler": scheduler,
        "phase": task.phase,
        "submittedNs": task.submitted_ns,
        "startedNs": task.started_ns,
        "finishedNs": task.finished_ns,
        "paused": task.paused,
        "unstarted": unstarted and task.phase in ("Queued", "Admitted"),
        "policy": task.policy,
        "priority": task.priority,
        "sharePpm": task.share_ppm,
        "memoryBytes": task.memory_bytes,
        "gpuNs": task.gpu_ns,
        "launches": task.launches,
        "paced": task.paced,
        "limitPpm": _PPM if task.share_limit_ppm is None else task.share_limit_ppm,
        "waitedNs": task.waited_ns,
        "throttledNs": task.throttled_ns,
        **lately(late.of_task(task)),
        "detail": ", ".join(task_numbers(task)),
    }


def partition_rows(cores: Sequence[_core.SchedulerCore]) -> list[dict[str, Any]]:
    """The partitions of all schedulers: what each keeps of the device, and what its tasks were promised."""
    partitions = []
    for core in cores:
        manager = core.partitions()
        for name in manager.partition_ids():
            partition = manager.get(name)
            if partition is not None:
                keeps, promised = partition.limits.compute_share, partition.usage.compute_used
                partitions.append({"id": name, "sharePpm": round(keeps * _PPM), "usedPpm": round(promised * _PPM)})
    return partitions


def context_rows(contexts: Sequence[ContextRecord]) -> list[dict[str, Any]]:
    """Contexts of models: what each was promised, and what it has had of the device. memoryBytes 0: no limit of its
    own."""
    return [
        {
            "number": context.number,
            "name": context.name,
            "sharePpm": round(context.share * _PPM),
            "memoryBytes": context.max_vram,
            "gpuNs": context.gpu_ns,
            "createdNs": context.created_ns,
            "endedNs": context.ended_ns,
            **lately(late.of_context(context)),
        }
        for context in contexts
    ]


def link_rows() -> list[dict[str, Any]]:
    """The links between all devices. bytesPerS: of the wire each way, 0 where nobody says; moved bytes so far."""
    return [
        {
            "from": link.device,
            "to": link.peer,
            "kind": link.kind,
            "lanes": link.lanes,
            "bytesPerS": link.bytes_per_s or 0,
            "directBytes": link.direct_bytes,
            "hostBytes": link.host_bytes,
        }
        for link in links()
    ]
