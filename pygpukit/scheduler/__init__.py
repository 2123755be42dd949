"""Scheduling: submit functions with their memory, compute share and priority, and see what becomes of them."""

from pygpukit.scheduler.events import TaskEvent, TaskEvents
from pygpukit.scheduler.partitions import isolation_levels, partition_limits
from pygpukit.scheduler.scheduler import Scheduler, all_schedulers, live_cores
from pygpukit.scheduler.task import Task, TaskStats
from pygpukit.scheduler.units import GB, KB, MB, TaskPolicy, TaskState

HAS_RUST_BACKEND = True  # there is no other

__all__ = [
    "GB",
    "HAS_RUST_BACKEND",
    "KB",
    "MB",
    "Scheduler",
    "Task",
    "TaskEvent",
    "TaskEvents",
    "TaskPolicy",
    "TaskState",
    "TaskStats",
    "all_schedulers",
    "isolation_levels",
    "live_cores",
    "partition_limits",
]
