"""The Rust classes of dispatch: slicing."""

from pygpukit._core import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats

__all__ = ["KernelSlice", "SliceConfig", "SliceInfo", "SliceScheduler", "SliceStats"]
