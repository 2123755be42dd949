"""Scheduling: submit functions with their memory, compute share and priority, and see what becomes of them.

For models that stay: create_context(), a part of a device with a stream, a share and a limit of its own.
"""

from pygpukit._core import Scheduler as RustScheduler
from pygpukit._core import SchedulerStats as RustSchedulerStats
from pygpukit._core import TaskMeta as RustTaskMeta
from pygpukit._core import TaskPolicy as RustTaskPolicy
from pygpukit._core import TaskState as RustTaskState
from pygpukit._core import TaskStats as RustTaskStats
from pygpukit.scheduler.contexts import (
    SchedulerStats,
    context_records,
    context_session,
    create_context,
    destroy_context,
    get_context,
    initialize,
    is_session_active,
    list_contexts,
    live_contexts,
    reset,
    resize_context,
    session,
    stats,
)
from pygpukit.scheduler.events import (
    EVENT_KINDS,
    Event,
    Events,
    LaunchEvent,
    MemoryEvent,
    QueueEvent,
    ShareEvent,
    TaskEvent,
    TaskEvents,
    ThrottleEvent,
)
from pygpukit.scheduler.execution import CommandStats, ContextStats, ExecutionContext
from pygpukit.scheduler.futures import AsyncKernelRequest, KernelFuture, KernelResult, kernel_handle
from pygpukit.scheduler.live import adjustments, all_schedulers, live_cores
from pygpukit.scheduler.partitions import isolation_levels, partition_limits
from pygpukit.scheduler.place import task_devices
from pygpukit.scheduler.processes import WorkerRecord
from pygpukit.scheduler.replay import Replay
from pygpukit.scheduler.scheduler import Scheduler
from pygpukit.scheduler.task import Condition, Task, TaskStats
from pygpukit.scheduler.units import GB, KB, MB, TaskPolicy, TaskState

HAS_RUST_BACKEND = True  # there is no other
HAS_MULTI_LLM = True

__all__ = [
    "EVENT_KINDS",
    "GB",
    "HAS_MULTI_LLM",
    "HAS_RUST_BACKEND",
    "KB",
    "MB",
    "AsyncKernelRequest",
    "CommandStats",
    "Condition",
    "ContextStats",
    "Event",
    "Events",
    "ExecutionContext",
    "KernelFuture",
    "KernelResult",
    "LaunchEvent",
    "MemoryEvent",
    "QueueEvent",
    "Replay",
    "RustScheduler",
    "RustSchedulerStats",
    "RustTaskMeta",
    "RustTaskPolicy",
    "RustTaskState",
    "RustTaskStats",
    "Scheduler",
    "SchedulerStats",
    "ShareEvent",
    "Task",
    "TaskEvent",
    "TaskEvents",
    "TaskPolicy",
    "TaskState",
    "TaskStats",
    "ThrottleEvent",
    "WorkerRecord",
    "adjustments",
    "all_schedulers",
    "context_records",
    "context_session",
    "create_context",
    "destroy_context",
    "get_context",
    "initialize",
    "is_session_active",
    "isolation_levels",
    "kernel_handle",
    "list_contexts",
    "live_contexts",
    "live_cores",
    "partition_limits",
    "reset",
    "resize_context",
    "session",
    "stats",
    "task_devices",
]


def __dir__() -> list[str]:
    """The module's public names, without its imports."""
    return sorted(__all__)
