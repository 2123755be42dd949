"""The Rust classes of pygpukit under their documented import name; also `_pygpukit_rust._pygpukit_rust`."""

from __future__ import annotations

import sys
from typing import Any

from _pygpukit_rust import dispatch, memory, scheduler
from _pygpukit_rust.dispatch import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats
from _pygpukit_rust.memory import MemoryBlock, MemoryPool, PoolStats
from _pygpukit_rust.scheduler import (
    AdmissionConfig,
    AdmissionController,
    AdmissionDecision,
    AdmissionStats,
    Partition,
    PartitionConfig,
    PartitionLimits,
    PartitionManager,
    PartitionStats,
    PartitionUsage,
    QosClass,
    QosEvaluation,
    QosPolicy,
    QosPolicyEvaluator,
    QosStats,
    QosTaskMeta,
    RejectReason,
    RejectReasonDetails,
    ResourceRequirements,
    Scheduler,
    SchedulerStats,
    TaskMeta,
)

__all__ = [
    "AdmissionConfig",
    "AdmissionController",
    "AdmissionDecision",
    "AdmissionStats",
    "KernelSlice",
    "MemoryBlock",
    "MemoryPool",
    "Partition",
    "PartitionConfig",
    "PartitionLimits",
    "PartitionManager",
    "PartitionStats",
    "PartitionUsage",
    "PoolStats",
    "QosClass",
    "QosEvaluation",
    "QosPolicy",
    "QosPolicyEvaluator",
    "QosStats",
    "QosTaskMeta",
    "RejectReason",
    "RejectReasonDetails",
    "ResourceRequirements",
    "Scheduler",
    "SchedulerStats",
    "SliceConfig",
    "SliceInfo",
    "SliceScheduler",
    "SliceStats",
    "TaskMeta",
    "dispatch",
    "memory",
    "scheduler",
]

_pygpukit_rust = sys.modules[__name__]
sys.modules[f"{__name__}._pygpukit_rust"] = _pygpukit_rust


def __getattr__(name: str) -> Any:
    raise AttributeError(f"_pygpukit_rust has no {name!r}; it has {', '.join(__all__)}")
