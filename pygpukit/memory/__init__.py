"""Memory: pools of one's own, the pool that arrays come from, pinned host memory, and asynchronous copies."""

from pygpukit._core import MemoryBlock as RustMemoryBlock
from pygpukit._core import MemoryPool as RustMemoryPool
from pygpukit._core import PoolStats as RustPoolStats
from pygpukit.memory.block import MemoryBlock
from pygpukit.memory.collect import Freed, FreedOwner, gc
from pygpukit.memory.pinned import is_pinned, pinned_empty, pinned_stats, pinned_trim
from pygpukit.memory.pool import MemoryPool, get_default_pool, set_default_pool, set_limit, stats, trim
from pygpukit.memory.transfer import Transfer
from pygpukit.memory.transfer_engine import TransferEngine

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
    "Transfer",
    "TransferEngine",
    "gc",
    "get_default_pool",
    "is_pinned",
    "pinned_empty",
    "pinned_stats",
    "pinned_trim",
    "set_default_pool",
    "set_limit",
    "stats",
    "trim",
]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
