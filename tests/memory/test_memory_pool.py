"""MemoryPool, its Rust class, and the limit of the pool that arrays come from; on both backends."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import _pygpukit_rust as rust
import pygpukit as gp
from pygpukit.memory import MemoryPool, get_default_pool, set_default_pool, set_limit, stats, trim

pytestmark = pytest.mark.usefixtures("backend_name")
MIB = 1 << 20


@pytest.fixture
def pool() -> Iterator[MemoryPool]:
    made = MemoryPool(16 * MIB)
    yield made
    made.clear()


def test_figures(pool: MemoryPool) -> None:
    assert (pool.quota, pool.used, pool.available) == (16 * MIB, 0, 16 * MIB)
    block = pool.allocate(MIB)
    assert (pool.used, pool.available) == (MIB, 15 * MIB)
    assert (block.size, block.on_gpu, block.on_host) == (MIB, True, False)
    assert block.device_ptr
    pool.free(block)
    assert pool.used == 0
    assert (block.on_gpu, block.on_host, block.device_ptr, block.last_access) == (False, False, None, 0.0)
    assert pool.stats()["active_blocks"] == 0
    assert pool.stats()["allocation_count"] == 1


@pytest.mark.parametrize("size", MemoryPool.SIZE_CLASSES[:8])
def test_size_classes_are_not_rounded(size: int, pool: MemoryPool) -> None:
    block = pool.allocate(size)
    assert pool.used == size
    pool.free(block)


@pytest.mark.parametrize("dtype", [np.float32, "int64", gp.uint8, np.complex128])
def test_write_and_read(pool: MemoryPool, dtype: object) -> None:
    wanted = np.dtype(dtype.to_numpy_dtype() if isinstance(dtype, gp.DataType) else dtype)  # type: ignore[call-overload]
    data = np.arange(100).astype(wanted)
    block = pool.allocate(data.nbytes)
    pool.write(block, data)
    np.testing.assert_array_equal(pool.read(block, dtype), data)
    pool.write(block, b"\x01\x02")
    assert pool.read(block, np.uint8)[:2].tolist() == [1, 2]
    with pytest.raises(ValueError, match="do not fit block"):
        pool.write(block, np.zeros(data.size + 1, wanted))


def test_eviction_keeps_contents_and_address(pool: MemoryPool) -> None:
    block, data = pool.allocate(4096), np.random.default_rng(0).bytes(4096)
    pool.write(block, data)
    address, used = block.device_ptr, pool.used
    pool.evict(block)
    assert (block.on_gpu, block.on_host, block.device_ptr) == (False, True, None)
    assert block.host_data is not None
    assert block.host_data.tobytes() == data
    assert pool.used == used - 4096
    assert pool.stats()["eviction_count"] == 1
    pool.restore(block)
    assert (block.on_gpu, block.device_ptr, block.host_data) == (True, address, None)
    assert pool.read(block, np.uint8).tobytes() == data


def test_evicted_memory_stays_with_the_pool_until_somebody_needs_it(pool: MemoryPool) -> None:
    block, data = pool.allocate(8 * MIB), np.random.default_rng(0).bytes(8 * MIB)
    pool.write(block, data)
    address = block.device_ptr
    pool.evict(block)
    assert (pool.used, pool.stats()["reserved"], pool.stats()["spare"]) == (0, 8 * MIB, 8 * MIB)
    pool.free(pool.allocate(16 * MIB))  # as much as the quota: what was kept had to go
    assert (pool.stats()["reserved"], pool.stats()["spare"]) == (16 * MIB, 0)
    pool.restore(block)
    pool.evict(block)
    assert pool.stats()["spare"] == 8 * MIB
    assert (pool.trim(), pool.stats()["reserved"], pool.stats()["spare"]) == (8 * MIB, 0, 0)
    pool.restore(block)
    assert block.device_ptr == address
    assert pool.read(block, np.uint8).tobytes() == data


def test_quota_is_hard(pool: MemoryPool) -> None:
    held = pool.allocate(12 * MIB)
    with pytest.raises(gp.OutOfMemoryError) as caught:
        pool.allocate(8 * MIB)
    error = caught.value
    assert isinstance(error, MemoryError)
    assert (error.requested, error.limit) == (8 * MIB, 16 * MIB)
    assert 0 <= error.free <= 4 * MIB
    assert error.owners[0][0] >= 12 * MIB
    small = pool.allocate(MIB)
    pool.free(small)
    pool.free(held)
    pool.free(pool.allocate(16 * MIB))


def test_least_recently_used_is_evicted() -> None:
    pool = MemoryPool(8 * MIB, enable_eviction=True)
    first, second = pool.allocate(4 * MIB), pool.allocate(4 * MIB)
    pool.write(first, b"first")
    pool.write(second, b"second")
    first.touch()
    third = pool.allocate(4 * MIB)
    assert (first.on_gpu, second.on_gpu, third.on_gpu) == (True, False, True)
    assert pool.read(second, np.uint8)[:6].tobytes() == b"second"
    pool.clear()
    assert pool.used == 0


def test_blocks_of_others_and_freed_blocks_are_refused(pool: MemoryPool) -> None:
    other = MemoryPool(MIB)
    foreign = other.allocate(256)
    with pytest.raises(ValueError, match="belongs to another pool"):
        pool.free(foreign)
    other.free(foreign)
    for use in (other.free, other.touch, other.evict, other.restore):
        with pytest.raises(ValueError, match="block"):
            use(foreign)


def test_rust_pool_names_blocks_by_number() -> None:
    pool = rust.MemoryPool(quota=MIB, enable_eviction=True)
    block = pool.allocate(4096)
    assert isinstance(block, int)
    assert pool.get_block_size(block) == 4096
    assert pool.is_block_on_gpu(block)
    found = pool.get_block(block)
    assert found is not None
    assert found.is_available()
    assert not found.is_evicted()
    pool.write(block, b"abc")
    assert pool.get_host_data(block) is None
    pool.evict(block)
    host = pool.get_host_data(block)
    assert host is not None
    assert host[:3] == b"abc"
    pool.free(block)
    assert pool.get_block(block) is None
    with pytest.raises(ValueError, match=str(block)):
        pool.free(block)


def test_rust_pool_does_the_rest_of_what_is_documented() -> None:
    pool = rust.MemoryPool(quota=MIB, enable_eviction=True)
    block = pool.allocate(4096)
    address = pool.get_block(block).device_ptr
    for resident in (True, False):
        pool.set_host_data(block, b"0123" if resident else b"45")
        assert pool.is_block_on_gpu(block) is resident
        assert pool.read(block, 4) == (b"0123" if resident else b"4523")
        pool.evict(block)
    pool.restore(block)
    pool.touch(block)
    found = pool.get_block(block)
    assert (found.on_gpu, found.on_host, found.device_ptr) == (True, False, address)
    assert pool.read(block, 4) == b"4523"
    counts = pool.stats()
    assert (counts.active_blocks, counts.eviction_count, counts.quota) == (1, 1, pool.quota)
    for call in (lambda: pool.set_device_ptr(block, 1), lambda: pool.clear_host_data(block)):
        with pytest.warns(DeprecationWarning):
            call()
    assert pool.get_block(block).device_ptr == address and pool.read(block, 4) == b"4523"
    pool.clear()
    assert (pool.used, pool.cached, pool.get_block(block)) == (0, 0, None)


# ---- the pool of arrays ----


@pytest.fixture
def settled() -> None:
    """What earlier tests left is not collected while this one counts."""
    gc.collect()


@pytest.fixture
def unlimited(settled: None) -> Iterator[None]:
    yield
    set_default_pool(None)


@pytest.mark.usefixtures("unlimited")
def test_default_pool_limits_arrays() -> None:
    trim()
    reserved = stats()["reserved"]  # what other tests keep may lie in several segments
    pool = MemoryPool(reserved + 4 * MIB)
    set_default_pool(pool)
    assert get_default_pool() is pool
    assert stats()["quota"] == pool.quota
    kept = gp.zeros(2 * MIB, "uint8")
    with pytest.raises(gp.OutOfMemoryError) as caught:
        gp.zeros(reserved + 16 * MIB, "uint8")
    assert caught.value.requested == reserved + 16 * MIB
    assert caught.value.limit == pool.quota
    assert kept[5].item() == 0, "the pool stays usable"
    set_default_pool(None)
    assert get_default_pool() is None
    assert gp.zeros(16 * MIB, "uint8").nbytes == 16 * MIB


@pytest.mark.usefixtures("unlimited")
def test_set_limit() -> None:
    trim()
    reserved = stats()["reserved"]
    set_limit(reserved + MIB)
    with pytest.raises(MemoryError):
        gp.empty(reserved + 64 * MIB, "uint8")
    set_limit(None)
    gp.empty(64 * MIB, "uint8")


@pytest.mark.usefixtures("settled")
def test_arrays_return_their_memory() -> None:
    before = stats()["used"]
    x = gp.zeros((1000, 1000))
    view = x[::2, 1:]
    assert stats()["used"] - before >= 4_000_000
    del x
    assert stats()["used"] - before >= 4_000_000, "a view keeps the memory"
    del view
    assert stats()["used"] == before
    for _ in range(100):
        gp.zeros((1000, 1000))
    assert stats()["used"] == before


def test_default_pool_takes_pools_only() -> None:
    with pytest.raises(gp.InvalidSpecError, match="expected a MemoryPool"):
        set_default_pool(100)  # type: ignore[arg-type]
