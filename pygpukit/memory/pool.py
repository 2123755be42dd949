"""MemoryPool: a pool of its own with a hard limit, and the limit of the pool that arrays come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pygpukit import _core
from pygpukit.core.errors import InvalidSpecError
from pygpukit.memory.block import MemoryBlock

if TYPE_CHECKING:
    import numpy as np

_default: MemoryPool | None = None
_NO_LIMIT = 2**64 - 1


class MemoryPool:
    """Device memory up to `quota` bytes, in blocks that are reused, evicted to the host and restored to their address.

    enable_eviction: let the least recently used blocks move to the host when the quota is reached, instead of refusing.
    Raises OutOfMemoryError (a MemoryError) from allocate() when neither helps, ValueError for blocks that are not live,
    DriverError from everything in a process that was forked after the backend was opened.
    """

    # Sizes that are taken as they are; between them sizes round up, by at most 12.5 % beyond 4 KiB.
    SIZE_CLASSES: ClassVar[list[int]] = [256 * 4**step for step in range(11)]

    def __init__(self, quota: int, enable_eviction: bool = False) -> None:
        self._core = _core.MemoryPool(quota, enable_eviction)

    @property
    def quota(self) -> int:
        """The limit in bytes."""
        return self._core.quota

    @property
    def used(self) -> int:
        """Bytes of live blocks on the device, as rounded."""
        return self._core.used

    @property
    def cached(self) -> int:
        """Bytes held for reuse."""
        return self._core.cached

    @property
    def available(self) -> int:
        """Bytes that can still be allocated under the quota."""
        return self._core.available

    def allocate(self, size: int) -> MemoryBlock:
        """A block of `size` bytes with undefined contents."""
        return MemoryBlock(self._core, self._core.allocate(size), size)

    def free(self, block: MemoryBlock) -> None:
        """Give the block's memory back to the pool."""
        self._core.free(self._own(block))

    def touch(self, block: MemoryBlock) -> None:
        """Mark the block as used now: it will be evicted last."""
        self._core.touch(self._own(block))

    def evict(self, block: MemoryBlock) -> None:
        """Move the block's contents to the host and free its device memory.

        The pool keeps at most 1 GiB of memory so freed for what it needs next; trim() gives that to the device, too.
        """
        self._core.evict(self._own(block))

    def restore(self, block: MemoryBlock) -> None:
        """Bring an evicted block back to its device address."""
        self._core.restore(self._own(block))

    def write(self, block: MemoryBlock, data: np.ndarray[Any, Any] | bytes) -> None:
        """Copy an array's bytes to the start of the block, wherever it is. Raises ValueError when they do not fit."""
        payload = data if isinstance(data, bytes) else data.tobytes()
        if len(payload) > block.size:
            raise ValueError(f"{len(payload)} bytes do not fit block {block.id} of {block.size} bytes")
        self._core.write(self._own(block), payload)

    def read(self, block: MemoryBlock, dtype: Any) -> np.ndarray[Any, Any]:
        """The block's bytes as a 1-D NumPy array of dtype (the whole elements that fit its size). Copies."""
        import numpy as np

        host_dtype = np.dtype(dtype.to_numpy_dtype() if hasattr(dtype, "to_numpy_dtype") else dtype)
        count = block.size // host_dtype.itemsize
        return np.frombuffer(self._core.read(self._own(block), count * host_dtype.itemsize), host_dtype).copy()

    def stats(self) -> dict[str, Any]:
        """Counters and sizes in bytes: quota, used, cached, available, reserved, spare, evicted, peak_used, and counts.

        evicted is on the host, in pinned memory but for pageable bytes of it, where the system pinned no more.
        reserved is all device memory that the pool holds; spare is what of it evict() left, at most 1 GiB, until it is
        needed again or trim() gives it to the device.
        """
        return _as_dict(self._core.stats())

    def clear(self) -> None:
        """Free every block and give all memory back to the device."""
        self._core.clear()

    def trim(self) -> int:
        """Give cached memory, and what evict() left, back to the device; returns bytes."""
        return self._core.trim()

    def __repr__(self) -> str:
        return f"MemoryPool(quota={self.quota})"

    def _own(self, block: MemoryBlock) -> int:
        if block.pool is not self._core:
            raise ValueError(f"block {block.id} belongs to another pool")
        return block.id


def set_default_pool(pool: MemoryPool | None) -> None:
    """Hold arrays to a pool's quota: from now on arrays of the current device may use at most pool.quota bytes in all.

    The limit is real (OutOfMemoryError beyond it). Arrays keep coming from the device's own pool, whose figures are
    stats(); the given pool's blocks are counted apart. None lifts the limit again. Raises InvalidSpecError for
    something that is not a pool.
    """
    global _default
    if pool is not None and not isinstance(pool, MemoryPool):
        raise InvalidSpecError(f"set_default_pool: expected a MemoryPool or None, got a {type(pool).__name__}", "pool")
    set_limit(None if pool is None else pool.quota)
    _default = pool


def get_default_pool() -> MemoryPool | None:
    """The pool whose quota limits arrays, None when none was set."""
    return _default


def set_limit(limit_bytes: int | None) -> None:
    """Limit all arrays of the current device together to limit_bytes; None lifts the limit."""
    _core.pool_set_limit(_core.native.current_device(), _NO_LIMIT if limit_bytes is None else limit_bytes)


def stats() -> dict[str, Any]:
    """Counters and sizes of the pool that arrays of the current device come from; keys as MemoryPool.stats()."""
    return _as_dict(_core.pool_stats(_core.native.current_device()))


def trim() -> int:
    """Give the memory that no array uses back to the device; returns bytes."""
    return _core.pool_trim(_core.native.current_device())


_FIELDS = (
    "quota", "used", "cached", "available", "allocation_count", "reuse_count", "eviction_count", "cudamalloc_count",
    "active_blocks", "free_blocks", "reserved", "spare", "evicted", "pageable", "peak_used", "restore_count",
    "segment_count", "pageable_eviction_count",
)  # fmt: skip


def _as_dict(figures: _core.PoolStats) -> dict[str, Any]:
    return {field: getattr(figures, field) for field in _FIELDS}
