"""The Rust classes of pygpukit under their documented import name; also `_pygpukit_rust._pygpukit_rust`."""

from __future__ import annotations

import sys
from typing import Any

from _pygpukit_rust import dispatch, memory
from _pygpukit_rust.dispatch import KernelSlice, SliceConfig, SliceInfo, SliceScheduler, SliceStats
from _pygpukit_rust.memory import MemoryBlock, MemoryPool, PoolStats

__all__ = [
    "KernelSlice",
    "MemoryBlock",
    "MemoryPool",
    "PoolStats",
    "SliceConfig",
    "SliceInfo",
    "SliceScheduler",
    "SliceStats",
    "dispatch",
    "memory",
]

_pygpukit_rust = sys.modules[__name__]
sys.modules[f"{__name__}._pygpukit_rust"] = _pygpukit_rust


def __getattr__(name: str) -> Any:
    raise AttributeError(f"_pygpukit_rust has no {name!r}; it has {', '.join(__all__)}")
