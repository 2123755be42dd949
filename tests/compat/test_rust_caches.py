"""The documented caches of PTX together: options and keys, bad arguments, threads, and both beside a model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rust_cache_help import H200, OPTIONS, Clock, memory, stored
from rust_cache_help import clock as clock

import _pygpukit_rust as rust
from _pygpukit_rust import caching
from _pygpukit_rust.dispatch import ArchFingerprint, PersistentCache, PersistentCacheConfig
from pygpukit.core.errors import InvalidSpecError

# ---- options and keys ----


def test_options_are_built_by_copies():
    built = OPTIONS.flag("-O3").define("N", "4").include("/headers")
    assert (built.compute_capability, built.flags, built.defines) == ("sm_90", ["-O3", "-I/headers"], [("N", "4")])
    assert (OPTIONS.flags, OPTIONS.defines) == ([], []) and rust.CompileOptions().compute_capability == "sm_75"


def test_every_part_decides_the_key():
    options = [OPTIONS, rust.CompileOptions(), OPTIONS.flag("-g"), OPTIONS.define("g", ""), OPTIONS.include("g")]
    keys = [rust.KernelCache.compute_key("s", "n", each) for each in options]
    keys += [rust.KernelCache.compute_key(*texts, OPTIONS) for texts in (("t", "n"), ("s", "m"), ("sn", ""))]
    keys += [rust.KernelCache.hash_source(source) for source in ("s", "t")]
    keys += [PersistentCache.compute_key(*parts) for parts in ((1, "n", 2, 3), (2, "n", 2, 3), (1, "n", 3, 2))]
    keys += [PersistentCache.hash_source("s"), PersistentCache.hash_options(["s"]), PersistentCache.hash_options([])]
    assert len(set(keys)) == len(keys) and all(0 <= key < 1 << 64 for key in keys)
    assert rust.KernelCache.compute_key("s", "n", rust.CompileOptions("sm_90")) == keys[0]
    assert PersistentCache.hash_options(["a", "b"]) != PersistentCache.hash_options(["b", "a"])


# ---- what holds for both ----


def test_threads_share_a_cache(tmp_path):
    caches = memory(max_entries=5), stored(tmp_path, max_entries=5)

    def work(name):
        for number in range(10):
            source = f"{name} {number % 3}"
            caches[0].get(caches[0].insert(source, "k", source, OPTIONS))
            caches[1].get(caches[1].insert(source, "k", [], source))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, "abcd"))
    for cache in caches:
        stats = cache.stats()
        assert (len(cache), stats.entries, stats.hits + stats.misses) == (5, 5, 40)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_an_expired_entry_goes_before_any_other(tmp_path, clock, kind):
    bounds = {"max_entries": 2, "ttl_seconds": 10.0}
    cache = memory(**bounds) if kind == "memory" else stored(tmp_path, **bounds)

    def insert(source):
        return cache.insert(source, source, *([source, OPTIONS] if kind == "memory" else [[], source]))

    a = insert("a")
    clock.seconds += 5
    b = insert("b")
    clock.seconds += 4
    assert cache.get(a) is not None  # used later than the other, and older
    clock.seconds += 1
    c = insert("c")
    assert [cache.contains(key) for key in (a, b, c)] == [False, True, True]


# ---- arguments ----


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("max_entries", lambda: rust.CacheConfig(max_entries=0)),
        ("max_ptx_size", lambda: rust.CacheConfig(max_ptx_size=1 << 64)),
        ("enable_eviction", lambda: rust.CacheConfig(enable_eviction=1)),
        ("ttl_seconds", lambda: rust.CacheConfig(ttl_seconds=-1.0)),
        ("config", lambda: rust.KernelCache(4)),
        ("compute_capability", lambda: rust.CompileOptions(90)),
        ("flags", lambda: rust.CompileOptions(flags="-g")),
        ("defines", lambda: rust.CompileOptions(defines=[("N", 4)])),
        ("flag", lambda: OPTIONS.flag(3)),
        ("name", lambda: OPTIONS.define(1, "1")),
        ("value", lambda: OPTIONS.define("N", 1)),
        ("path", lambda: OPTIONS.include(Path())),
        ("source", lambda: rust.KernelCache.hash_source(b"")),
        ("ptx", lambda: rust.KernelCache().insert("s", "n", b"", OPTIONS)),
        ("options", lambda: rust.KernelCache().get_by_name("n", [])),
        ("key", lambda: rust.KernelCache().get(-1)),
        ("key", lambda: rust.KernelCache().contains("k")),
        ("sm_version", lambda: ArchFingerprint(True, 1, 1, 1, 1, 1)),
        ("driver_version", lambda: ArchFingerprint(90, 1, 1, 1, 1, -1)),
        ("cache_dir", lambda: PersistentCacheConfig(3)),
        ("max_size", lambda: PersistentCacheConfig(max_size=1.5)),
        ("auto_cleanup", lambda: PersistentCacheConfig(auto_cleanup=None)),
        ("ttl_seconds", lambda: PersistentCacheConfig(ttl_seconds="1")),
        ("config", lambda: PersistentCache(None, H200)),
        ("arch", lambda: PersistentCache(PersistentCacheConfig(), 90)),
        ("options", lambda: PersistentCache.hash_options("-g")),
        ("source_hash", lambda: PersistentCache.compute_key(-1, "n", 0, 0)),
        ("arch_hash", lambda: PersistentCache.compute_key(0, "n", 0, None)),
    ],
)
def test_bad_arguments_are_named(field, call):
    with pytest.raises(InvalidSpecError, match=f"^{field}=") as caught:
        call()
    assert caught.value.field == field


# ---- against a model ----

SOURCE = st.sampled_from("abcdef")
STEPS = st.lists(
    st.tuples(st.sampled_from(["insert", "get", "remove", "contains", "tick"]), SOURCE, st.integers(0, 12)),
    max_size=30,
)


def run_model(cache, clock, keys, insert, ttl, most_bytes, steps):
    """A dict in order of use, beside the cache: the same answers, and the same content at the end."""
    model: dict[str, tuple[str, float]] = {}
    for step, source, number in steps:
        alive = source in model and clock.seconds - model[source][1] < ttl
        if step == "tick":
            clock.seconds += number
        elif step == "insert":
            model = {name: entry for name, entry in model.items() if clock.seconds - entry[1] < ttl and name != source}
            model[source] = ("x" * number, clock.seconds)
            assert insert(source, "x" * number) == keys[source]
            while len(model) > 3 or sum(len(ptx) for ptx, _ in model.values()) > most_bytes:
                del model[next(iter(model))]
        elif step == "get":
            found = cache.get(keys[source])
            assert (found.ptx if found else None) == (model[source][0] if alive else None)
            if alive:
                model[source] = model.pop(source)
        elif step == "remove":
            if alive:
                assert cache.remove(keys[source])
                del model[source]
            else:
                cache.remove(keys[source])  # on disk an expired one may still lie there
                model.pop(source, None)
        else:
            assert cache.contains(keys[source]) == alive
    alive = {name: ptx for name, (ptx, created) in model.items() if clock.seconds - created < ttl}
    entries = {name: cache.get(key) for name, key in keys.items()}
    assert {name: entry.ptx for name, entry in entries.items() if entry} == alive


@given(STEPS)
@settings(max_examples=100)
def test_memory_against_a_model(steps):
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caching, "now", clock)
        cache = memory(max_entries=3, max_ptx_size=24, ttl_seconds=20.0)
        keys = {source: cache.compute_key(source, "k", OPTIONS) for source in "abcdef"}
        run_model(cache, clock, keys, lambda s, ptx: cache.insert(s, "k", ptx, OPTIONS), 20.0, 24, steps)


@given(STEPS)
@settings(max_examples=25)
def test_disk_against_a_model(tmp_path_factory, steps):
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caching, "now", clock)
        cache = stored(tmp_path_factory.mktemp("cache"), max_entries=3, max_size=24, ttl_seconds=20.0)
        source_keys = ((source, cache.hash_source(source)) for source in "abcdef")
        keys = {s: cache.compute_key(number, "k", cache.hash_options([]), H200.hash()) for s, number in source_keys}
        run_model(cache, clock, keys, lambda s, ptx: cache.insert(s, "k", [], ptx), 20.0, 24, steps)
