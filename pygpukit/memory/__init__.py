"""Memory pools: pools of one's own, and the limit and figures of the pool that arrays come from."""

from pygpukit._core import MemoryBlock as RustMemoryBlock
from pygpukit._core import MemoryPool as RustMemoryPool
from pygpukit._core import PoolStats as RustPoolStats
from pygpukit.memory.block import MemoryBlock
from pygpukit.memory.collect import Freed, FreedOwner, gc
from pygpukit.memory.pool import MemoryPool, get_default_pool, set_default_pool, set_limit, stats, trim

HAS_RUST_BACKEND = True  # there is no other

__all__ = [
    "HAS_RUST_BACKEND",
    "Freed",
    "FreedOwner",
    "MemoryBlock",
    "MemoryPool",
    "RustMemoryBlock",
    "RustMemoryPool",
    "RustPoolStats",
    "gc",
    "get_default_pool",
    "set_default_pool",
    "set_limit",
    "stats",
    "trim",
]
