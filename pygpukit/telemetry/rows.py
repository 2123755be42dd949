"""Tasks, partitions and contexts as a page takes them: plain rows, with numbers in words where a reader needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit.core.text import task_numbers

if TYPE_CHECKING:
    from pygpukit.scheduler import ExecutionContext

_PPM = 1_000_000


def task_row(task: _core.TaskRecord, scheduler: str = "") -> dict[str, Any]:
    """One task. scheduler: the label of its own."""
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
        "policy": task.policy,
        "priority": task.priority,
        "sharePpm": task.share_ppm,
        "memoryBytes": task.memory_bytes,
        "gpuNs": task.gpu_ns,
        "launches": task.launches,
        "paced": task.paced,
        "detail": ", ".join(task_numbers(task)),
    }


def partition_rows(cores: Sequence[_core.SchedulerCore]) -> list[dict[str, Any]]:
    """The partitions of all schedulers: what each keeps of the device, and what its tasks were promised."""
    found = []
    for core in cores:
        manager = core.partitions()
        for name in manager.partition_ids():
            partition = manager.get(name)
            if partition is not None:
                keeps, promised = partition.limits.compute_share, partition.usage.compute_used
                found.append({"id": name, "sharePpm": round(keeps * _PPM), "usedPpm": round(promised * _PPM)})
    return found


def context_rows(contexts: Sequence[ExecutionContext]) -> list[dict[str, Any]]:
    """Contexts of models: what each was promised, and what it has had of the device. memoryBytes 0: no limit of its
    own."""
    found = []
    for context in contexts:
        _, _, gpu_ns, _ = context.core.work()
        found.append(
            {
                "number": context.core.number,
                "name": context.llm_id,
                "sharePpm": round(context.share * _PPM),
                "memoryBytes": context.max_vram,
                "gpuNs": gpu_ns,
            }
        )
    return found
