"""The documented classes of dispatch: the kernel dispatcher, pacing, slicing, and the caches of PTX."""

from pygpukit._core import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats
from pygpukit.compat.rust.caching import CacheConfig, CachedKernel, CacheStats, CompileOptions, KernelCache
from pygpukit.compat.rust.dispatching import (
    DispatchStats,
    KernelDispatcher,
    KernelLaunchRequest,
    KernelState,
    LaunchConfig,
)
from pygpukit.compat.rust.pacing import KernelPacingEngine, PacingConfig, PacingDecision, PacingStats, StreamPacingStats
from pygpukit.compat.rust.persisting import (
    ArchFingerprint,
    PersistentCache,
    PersistentCacheConfig,
    PersistentCacheStats,
    PersistentEntry,
)

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
