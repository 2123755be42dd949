"""The memory pool's Rust classes."""

from pygpukit._core import MemoryBlock, MemoryPool, PoolStats

__all__ = ["MemoryBlock", "MemoryPool", "PoolStats"]
