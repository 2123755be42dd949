"""The documented cache of PTX in memory: its bounds, records, handles and counts."""

from __future__ import annotations

import pytest
from rust_cache_help import OPTIONS, memory
from rust_cache_help import clock as clock

import _pygpukit_rust as rust
from pygpukit.core.errors import InvalidSpecError, OutOfMemoryError


def test_an_entry_and_its_record(clock):
    cache = rust.KernelCache()
    key = cache.insert("source", "scale", "// PTX \u00e9", OPTIONS)
    assert key == cache.compute_key("source", "scale", OPTIONS) and cache.contains(key) and not cache.contains(key ^ 1)
    clock.seconds += 5
    first, second = cache.get(key), cache.get(key)
    assert (first.key, first.name, first.ptx) == (key, "scale", "// PTX \u00e9")
    assert (first.created_at, first.last_access, first.access_count) == (1000.0, 1005.0, 1)
    assert second.access_count == 2 and cache.get(key ^ 1) is None
    stats = cache.stats()
    assert (stats.hits, stats.misses, stats.entries, stats.ptx_size, stats.evictions) == (2, 1, 1, 9, 0)
    assert stats.hit_rate() == 2 / 3 and rust.KernelCache().stats().hit_rate() == 0.0
    assert cache.insert("source", "scale", "other", OPTIONS) == key
    replaced = cache.get(key)
    assert (len(cache), replaced.ptx, replaced.created_at, replaced.access_count) == (1, "other", 1005.0, 1)


def test_by_name_the_latest_with_the_same_options():
    cache = rust.KernelCache()
    cache.insert("one", "k", "1", OPTIONS)
    cache.insert("two", "k", "2", OPTIONS)
    cache.insert("three", "k", "3", OPTIONS.flag("-g"))
    cache.insert("four", "other", "4", OPTIONS)
    assert cache.get_by_name("k", OPTIONS).ptx == "2" and cache.get_by_name("k", OPTIONS.flag("-g")).ptx == "3"
    assert cache.get_by_name("nobody", OPTIONS) is None and cache.kernel_names() == ["k", "other"]
    cache.insert("one", "k", "1 again", OPTIONS)
    assert cache.get_by_name("k", OPTIONS).ptx == "1 again"


def test_remove_and_clear():
    cache = rust.KernelCache()
    keys = [cache.insert(source, "k", source, OPTIONS) for source in ("a", "b")]
    assert cache.remove(keys[0]).ptx == "a" and cache.remove(keys[0]) is None and cache.get(keys[0]) is None
    assert len(cache) == 1 and not cache.is_empty()
    cache.clear()
    assert cache.is_empty() and cache.get(keys[1]) is None and cache.stats().misses == 2


def test_handles_are_kept_with_their_entries():
    cache = memory(max_entries=3)
    a, b, c = (cache.insert(source, "k", "ptx", OPTIONS) for source in "abc")

    def handles(key):
        kernel = cache.get(key)
        return kernel.module_handle, kernel.function_handle, kernel.is_loaded()

    assert handles(a) == (None, None, False) and cache.stats().loaded_count == 0
    assert all(cache.set_handles(key, 1, 2**64 - 1) for key in (a, b, c)) and not cache.set_handles(a ^ 1, 1, 2)
    assert cache.set_handles(a, 3, 4) and cache.stats().loaded_count == 3
    assert (handles(a), handles(b)) == ((3, 4, True), (1, 2**64 - 1, True))
    cache.insert("a", "k", "other ptx", OPTIONS)
    assert handles(a) == (None, None, False) and cache.stats().loaded_count == 2, "they were of the PTX of before"
    cache.insert("d", "k", "ptx", OPTIONS)
    assert not cache.contains(c) and cache.stats().loaded_count == 1, "the least recently used went with its own"
    assert cache.remove(b).function_handle == 2**64 - 1 and cache.stats().loaded_count == 0
    for module, function, field in ((0, 1, "module"), (1, "f", "function"), (1, 2**64, "function")):
        with pytest.raises(InvalidSpecError) as told:
            cache.set_handles(a, module, function)
        assert told.value.field == field and not cache.get(a).is_loaded()


def test_handles_expire_with_their_entries(clock):
    cache = memory(ttl_seconds=10.0)
    key = cache.insert("a", "k", "ptx", OPTIONS)
    assert cache.set_handles(key, 1, 2)
    clock.seconds += 10.0
    assert not cache.set_handles(key, 1, 2) and cache.stats().loaded_count == 0


def test_entries_expire_in_memory(clock):
    cache = memory(ttl_seconds=10.0)
    keys = [cache.insert(source, source, "ptx", OPTIONS) for source in "abcd"]
    clock.seconds += 9.5
    cache.insert("a", "a", "ptx", OPTIONS)
    assert cache.get(keys[1]) is not None  # a use does not renew it
    clock.seconds += 0.5
    assert not cache.contains(keys[1]) and cache.contains(keys[0]) and len(cache) == 4
    assert cache.get(keys[1]) is None and cache.remove(keys[2]) is None and cache.clear_expired() == 1
    assert len(cache) == 1 and cache.stats().ttl_evictions == 3 and cache.stats().evictions == 0


@pytest.mark.parametrize("bound", [{"max_entries": 2}, {"max_ptx_size": 25}])
def test_the_least_recently_used_goes_first_in_memory(bound):
    cache = memory(**bound)
    a, b = (cache.insert(source, source, "x" * 10, OPTIONS) for source in "ab")
    assert cache.get(a) is not None and cache.contains(b)  # of which only the first is a use
    c = cache.insert("c", "c", "x" * 10, OPTIONS)
    assert [cache.contains(key) for key in (a, b, c)] == [True, False, True]
    assert cache.get(b) is None and cache.get(a).ptx == cache.get(c).ptx == "x" * 10
    assert (cache.stats().evictions, cache.stats().entries, cache.stats().ptx_size) == (1, 2, 20)


@pytest.mark.parametrize("bound", [{"max_entries": 2}, {"max_ptx_size": 25}])
def test_a_full_cache_without_eviction_refuses(bound):
    cache = memory(enable_eviction=False, **bound)
    a, b = (cache.insert(source, source, "x" * 10, OPTIONS) for source in "ab")
    with pytest.raises(OutOfMemoryError, match=next(iter(bound))):
        cache.insert("c", "c", "x" * 10, OPTIONS)
    assert cache.insert("a", "a", "y" * 10, OPTIONS) == a
    assert (cache.get(a).ptx, cache.get(b).ptx, len(cache)) == ("y" * 10, "x" * 10, 2)


def test_ptx_beyond_the_whole_bound_is_refused():
    cache = memory(max_ptx_size=10)
    key = cache.insert("a", "k", "x" * 10, OPTIONS)
    with pytest.raises(MemoryError, match="11 bytes of PTX of 'k' do not fit"):
        cache.insert("a", "k", "x" * 11, OPTIONS)
    assert cache.get(key).ptx == "x" * 10
