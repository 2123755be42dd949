"""The documented classes of dispatch: the kernel dispatcher and slicing."""

from _pygpukit_rust.dispatching import DispatchStats, KernelDispatcher, KernelLaunchRequest, KernelState, LaunchConfig
from pygpukit._core import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats

__all__ = [
    "DispatchStats",
    "KernelDispatcher",
    "KernelLaunchRequest",
    "KernelSlice",
    "KernelState",
    "LaunchConfig",
    "SliceConfig",
    "SliceInfo",
    "SliceScheduler",
    "SliceStats",
]
