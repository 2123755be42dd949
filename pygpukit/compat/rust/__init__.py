"""The Rust classes of pygpukit under their documented import name; also `pygpukit.compat.rust._pygpukit_rust`."""

from __future__ import annotations

from typing import Any

from pygpukit.compat.rust import device, dispatch, llm, memory, scheduler, transfer
from pygpukit.compat.rust.caching import CacheConfig, CachedKernel, CacheStats, CompileOptions, KernelCache
from pygpukit.compat.rust.contexts import (
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
from pygpukit.compat.rust.device import DeviceCapabilities, KernelType
from pygpukit.compat.rust.dispatch import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats
from pygpukit.compat.rust.dispatching import DispatchStats, KernelDispatcher, LaunchConfig
from pygpukit.compat.rust.llm import Dtype, SafeTensorsFile, TensorInfo, Tokenizer
from pygpukit.compat.rust.memory import MemoryBlock, MemoryPool, PoolStats
from pygpukit.compat.rust.pacing import KernelPacingEngine, PacingConfig, PacingDecision, PacingStats
from pygpukit.compat.rust.scheduler import (
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
from pygpukit.compat.rust.transfer import (
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


def __getattr__(name: str) -> Any:
    raise AttributeError(f"_pygpukit_rust has no {name!r}; it has {', '.join(__all__)}")
