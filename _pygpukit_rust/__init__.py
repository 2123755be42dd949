"""The Rust classes of pygpukit under their documented import name; also `_pygpukit_rust._pygpukit_rust`."""

from __future__ import annotations

import sys
from typing import Any

from _pygpukit_rust import device, dispatch, llm, memory, scheduler, transfer
from _pygpukit_rust.caching import CacheConfig, CachedKernel, CacheStats, CompileOptions, KernelCache
from _pygpukit_rust.contexts import (
    AsyncExecStats,
    AsyncKernelRequest,
    ContextState,
    ContextStats,
    ControllerStats,
    FutureState,
    KernelFuture,
    KernelResult,
    MultiLLMController,
)
from _pygpukit_rust.device import DeviceCapabilities, KernelType
from _pygpukit_rust.dispatch import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats
from _pygpukit_rust.dispatching import DispatchStats, KernelDispatcher, LaunchConfig
from _pygpukit_rust.llm import Dtype, SafeTensorsFile, TensorInfo, Tokenizer
from _pygpukit_rust.memory import MemoryBlock, MemoryPool, PoolStats
from _pygpukit_rust.pacing import KernelPacingEngine, PacingConfig, PacingDecision, PacingStats
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
    TaskStats,
)
from _pygpukit_rust.transfer import (
    AsyncTransferEngine,
    PinnedBlock,
    PinnedMemoryManager,
    PinnedPoolConfig,
    PinnedStats,
    TransferOp,
    TransferStats,
)

__all__ = [
    "AdmissionConfig",
    "AdmissionController",
    "AdmissionDecision",
    "AdmissionStats",
    "AsyncExecStats",
    "AsyncKernelRequest",
    "AsyncTransferEngine",
    "CacheConfig",
    "CacheStats",
    "CachedKernel",
    "CompileOptions",
    "ContextState",
    "ContextStats",
    "ControllerStats",
    "DeviceCapabilities",
    "DispatchStats",
    "Dtype",
    "FutureState",
    "KernelCache",
    "KernelDispatcher",
    "KernelFuture",
    "KernelPacingEngine",
    "KernelResult",
    "KernelSlice",
    "KernelType",
    "LaunchConfig",
    "MemoryBlock",
    "MemoryPool",
    "MultiLLMController",
    "PacingConfig",
    "PacingDecision",
    "PacingStats",
    "Partition",
    "PartitionConfig",
    "PartitionLimits",
    "PartitionManager",
    "PartitionStats",
    "PartitionUsage",
    "PinnedBlock",
    "PinnedMemoryManager",
    "PinnedPoolConfig",
    "PinnedStats",
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
    "SafeTensorsFile",
    "Scheduler",
    "SchedulerStats",
    "SliceConfig",
    "SliceInfo",
    "SliceScheduler",
    "SliceStats",
    "TaskMeta",
    "TaskStats",
    "TensorInfo",
    "Tokenizer",
    "TransferOp",
    "TransferStats",
    "device",
    "dispatch",
    "llm",
    "memory",
    "scheduler",
    "transfer",
]

_pygpukit_rust = sys.modules[__name__]
sys.modules[f"{__name__}._pygpukit_rust"] = _pygpukit_rust


def __getattr__(name: str) -> Any:
    raise AttributeError(f"_pygpukit_rust has no {name!r}; it has {', '.join(__all__)}")
