"""Device memory: a long run of allocations that ends at zero, out of memory, eviction and restore."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _quiet_pool() -> None:
    gc.collect()
    native.synchronize()
    _core.pool_trim(0)


def test_sixteen_gigabytes_of_allocations_end_at_zero() -> None:
    """Up to 16 GiB live, 64 GiB in all, sizes from bytes to gigabytes; the contents show that no two blocks overlap."""
    rng = random.Random(16)
    before = _core.pool_stats(0)
    head = _core.ring_head()
    live: list[tuple[object, int]] = []
    held = total = number = 0
    while total < 64 * GIB:
        count = min(int(2 ** rng.uniform(2, 29)), GIB) // 4 + 1
        while live and held + 4 * count > 16 * GIB:
            array, mark = live.pop(rng.randrange(len(live)))
            held -= array.nbytes  # type: ignore[attr-defined]
            if rng.random() < 0.05:
                edges = native.view(array, (2,), (array.nbytes - 4,), 0)  # type: ignore[arg-type, attr-defined]
                assert edges.contiguous().to_numpy().tolist() == [mark, mark]
                del edges
            del array
        number += 1
        array = gp.empty(count, dtype="int32")
        native.fill(array, number.to_bytes(4, "little"))
        live.append((array, number))
        held += array.nbytes
        total += array.nbytes
    assert _core.pool_stats(0).used >= held
    live.clear()
    del array
    gc.collect()
    native.synchronize()

    after = _core.pool_stats(0)
    assert (after.used, after.active_blocks) == (before.used, before.active_blocks)
    _core.pool_trim(0)
    assert _core.pool_stats(0).reserved == before.reserved
    balance = 0
    data, _, lost = _core.ring_read(head)
    assert lost == 0
    for i in range(0, len(data), 64):
        kind, nbytes = int.from_bytes(data[i + 16 : i + 18], "little"), int.from_bytes(data[i + 40 : i + 48], "little")
        balance += nbytes if kind == 1 else -nbytes if kind == 2 else 0
    assert balance == 0


def test_the_device_gets_its_memory_back() -> None:
    native.synchronize()
    free_before, _ = native.memory_info()
    array = gp.empty(4 * GIB, dtype="uint8")
    assert native.memory_info()[0] <= free_before - 4 * GIB
    del array
    _core.pool_trim(0)
    assert native.memory_info()[0] >= free_before - (64 << 20)


def test_over_the_limit_names_the_numbers_and_the_owners() -> None:
    limit = _core.pool_stats(0).quota
    keep = gp.empty(64 << 20, dtype="uint8")
    keep.name = "the big one"
    native.pin(keep)  # or it would be evicted to make room
    try:
        _core.pool_set_limit(0, _core.pool_stats(0).used + (32 << 20))
        with pytest.raises(gp.core.errors.OutOfMemoryError) as caught:
            gp.empty(GIB, dtype="uint8")
        error = caught.value
        assert error.requested >= GIB
        assert error.limit == _core.pool_stats(0).quota
        assert error.free < GIB
        assert "the big one" in str(error.owners)
        assert gp.zeros(1000).to_numpy().sum() == 0  # still usable
    finally:
        native.unpin(keep)
        _core.pool_set_limit(0, limit)
    assert gp.zeros(GIB, dtype="uint8").nbytes == GIB


def test_more_than_the_card_has_is_refused_and_the_pool_lives() -> None:
    _, total = native.memory_info()
    with pytest.raises(gp.core.errors.OutOfMemoryError):
        gp.empty(2 * total, dtype="uint8")
    assert gp.ones(10).to_numpy().sum() == 10


def test_an_evicted_array_comes_back_at_its_address() -> None:
    host = np.random.default_rng(0).random(8 << 20, dtype=np.float32)
    array = gp.from_numpy(host)
    address = array.device_ptr
    native.synchronize()
    _core.pool_evict(0, array.block)
    assert not array.resident
    np.testing.assert_array_equal(gp.add(array, array).to_numpy(), host + host)  # the launch brings it back
    assert array.resident and array.device_ptr == address
