"""MemoryBlock: one live block of a MemoryPool. Its properties ask the pool and never raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from pygpukit import _core


class MemoryBlock:
    """A block of `size` bytes. Made by MemoryPool.allocate(); freed by MemoryPool.free()."""

    __slots__ = ("id", "pool", "size")

    def __init__(self, pool: _core.MemoryPool, block_id: int, size: int) -> None:
        self.pool = pool
        self.id = block_id
        self.size = size

    @property
    def device_ptr(self) -> int | None:
        """Device address; None while evicted and after free()."""
        block = self.pool.get_block(self.id)
        return None if block is None else block.device_ptr

    @property
    def on_gpu(self) -> bool:
        """True while the contents are on the device."""
        block = self.pool.get_block(self.id)
        return block is not None and block.on_gpu

    @property
    def on_host(self) -> bool:
        """True while the contents are evicted to the host."""
        block = self.pool.get_block(self.id)
        return block is not None and block.on_host

    @property
    def last_access(self) -> float:
        """When the block was last used, in the pool's increasing seconds; 0.0 after free()."""
        block = self.pool.get_block(self.id)
        return 0.0 if block is None else block.last_access

    @property
    def host_data(self) -> np.ndarray[Any, Any] | None:
        """A copy of an evicted block's bytes (uint8); None while on the device and after free()."""
        if not self.on_host:
            return None
        import numpy as np

        return np.frombuffer(self.pool.read(self.id, self.size), np.uint8).copy()

    def touch(self) -> None:
        """Mark the block as used now. Raises ValueError after free()."""
        self.pool.touch(self.id)

    def __repr__(self) -> str:
        place = "device" if self.on_gpu else "host" if self.on_host else "freed"
        return f"MemoryBlock(id={self.id}, size={self.size}, {place})"
