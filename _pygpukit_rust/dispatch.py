"""The documented classes of dispatch: the kernel dispatcher, pacing, slicing, and the caches of PTX."""

from _pygpukit_rust.caching import CacheConfig, CachedKernel, CacheStats, CompileOptions, KernelCache
from _pygpukit_rust.dispatching import DispatchStats, KernelDispatcher, KernelLaunchRequest, KernelState, LaunchConfig
from _pygpukit_rust.pacing import KernelPacingEngine, PacingConfig, PacingDecision, PacingStats, StreamPacingStats
from _pygpukit_rust.persisting import (
    ArchFingerprint,
    PersistentCache,
    PersistentCacheConfig,
    PersistentCacheStats,
    PersistentEntry,
)
from pygpukit._core import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats

__all__ = [
    "ArchFingerprint",
    "CacheConfig",
    "CacheStats",
    "CachedKernel",
    "CompileOptions",
    "DispatchStats",
    "KernelCache",
    "KernelDispatcher",
    "KernelLaunchRequest",
    "KernelPacingEngine",
    "KernelSlice",
    "KernelState",
    "LaunchConfig",
    "PacingConfig",
    "PacingDecision",
    "PacingStats",
    "PersistentCache",
    "PersistentCacheConfig",
    "PersistentCacheStats",
    "PersistentEntry",
    "SliceConfig",
    "SliceInfo",
    "SliceScheduler",
    "SliceStats",
    "StreamPacingStats",
]
