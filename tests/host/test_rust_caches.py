"""The documented caches of PTX: in memory and on disk, each on the real cache, with its bounds, records and counts."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import _pygpukit_rust as rust
from _pygpukit_rust import caching
from _pygpukit_rust.dispatch import ArchFingerprint, PersistentCache, PersistentCacheConfig, PersistentCacheStats
from pygpukit import _core
from pygpukit.core.errors import InvalidSpecError, OutOfMemoryError

OPTIONS = rust.CompileOptions("sm_90")
H200 = ArchFingerprint(90, 150 << 30, 228 << 10, 65536, 50 << 20, 12080)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(caching, "now", clock)
    return clock


def memory(**bounds):
    return rust.KernelCache(rust.CacheConfig(**bounds))


def stored(folder, arch=H200, **bounds):
    return PersistentCache(PersistentCacheConfig(str(folder), **bounds), arch)


def files(folder):
    return [file for file in Path(folder, "ptx").glob("??/*") if len(file.name) == 64]


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


# ---- in memory ----


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


# ---- on disk ----


def test_architectures():
    assert H200.hash() == ArchFingerprint(90, 150 << 30, 228 << 10, 65536, 50 << 20, 12080).hash()
    figures = (90, 150 << 30, 228 << 10, 65536, 50 << 20, 12080)
    others = [ArchFingerprint(*figures[:i], figures[i] + 1, *figures[i + 1 :]) for i in range(6)]
    assert len({H200.hash(), *(other.hash() for other in others)}) == 7
    assert H200.is_compatible(H200) and not H200.is_compatible(others[0])
    newer = others[5]
    assert newer.is_compatible(H200) and not H200.is_compatible(newer)


def test_an_entry_lasts(tmp_path, clock):
    first = stored(tmp_path)
    assert not Path(tmp_path, "ptx").exists()
    first.initialize()
    assert first.is_empty() and Path(tmp_path, "ptx").is_dir()
    key = first.insert("source", "scale", ["-O3"], "// PTX \ud800")
    clock.seconds += 5
    second = stored(tmp_path)
    hashes = PersistentCache.hash_source("source"), PersistentCache.hash_options(["-O3"])
    assert key == PersistentCache.compute_key(hashes[0], "scale", hashes[1], H200.hash()) and second.contains(key)
    entry = second.get(key)
    assert (entry.name, entry.ptx, entry.ptx_size()) == ("scale", "// PTX \ud800", 10)
    assert (entry.source_hash, entry.options_hash) == hashes
    assert (entry.created_at, entry.last_access, entry.access_count) == (1000.0, 1005.0, 1)
    assert second.get(key).access_count == 2 and second.get(key ^ 1) is None and len(second) == len(first) == 1
    assert second.stats() == PersistentCacheStats(1, 10, 2, 1, 0, 0, 0) and second.stats().hit_rate() == 2 / 3
    first.insert("source", "scale", ["-O3"], "other")
    assert second.get(key).ptx == "other" and second.stats().total_size == 5
    second.insert("source", "scale", ["-O3"], "longer")  # at the same reading of the clock
    assert second.stats().total_size == 6 and second.get(key).access_count == 1


def test_another_process_finds_it(tmp_path):
    code = (
        "import sys; from _pygpukit_rust.dispatch import *; "
        f"cache = PersistentCache(PersistentCacheConfig(sys.argv[1]), ArchFingerprint{tuple(vars(H200).values())}); "
        "cache.insert('source', 'k', [], 'ptx of the child')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    cache = stored(tmp_path)
    key = PersistentCache.compute_key(cache.hash_source("source"), "k", cache.hash_options([]), H200.hash())
    assert cache.get(key).ptx == "ptx of the child" and len(cache) == 1


CHILD = f"""
import sys
from _pygpukit_rust.dispatch import *
cache = PersistentCache(PersistentCacheConfig(sys.argv[1]), ArchFingerprint{tuple(vars(H200).values())})
for number in range(40):  # half of them are the other's, too
    source = f"{{number}} of {{sys.argv[2] if number % 2 else 'both'}}"
    key = cache.insert(source, "k", [], source * 20)
    assert cache.get(key).ptx == source * 20
assert cache.stats().save_errors == cache.stats().load_errors == 0
"""


def test_two_processes_at_a_time_lose_nothing(tmp_path):
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    children = [subprocess.Popen([*command, name]) for name in ("first", "second")]
    assert [child.wait() for child in children] == [0, 0]
    cache = stored(tmp_path)
    assert len(cache) == 60 and cache.stats().load_errors == 0
    for number in range(40):
        for name in ("first", "second"):
            source = f"{number} of {name if number % 2 else 'both'}"
            key = cache.compute_key(cache.hash_source(source), "k", cache.hash_options([]), H200.hash())
            assert cache.get(key).ptx == source * 20


@pytest.mark.parametrize("damage", ["flipped", "cut", "swapped"])
def test_a_damaged_file_is_a_miss(tmp_path, damage):
    cache = stored(tmp_path)
    good = cache.insert("good", "k", [], "good ptx")
    (kept,) = files(tmp_path)
    key = cache.insert("bad", "k", [], "bad ptx")
    (file,) = set(files(tmp_path)) - {kept}
    data = file.read_bytes()
    file.write_bytes({"flipped": data.replace(b"bad", b"bed"), "cut": data[:-1], "swapped": kept.read_bytes()}[damage])
    later = stored(tmp_path)
    for each in (cache, later):
        assert not each.contains(key) and each.get(key) is None and each.get(good).ptx == "good ptx"
        assert len(each) == 1
    assert cache.stats().load_errors == 1 and cache.stats().misses == 1  # by then it lay in quarantine
    assert cache.insert("bad", "k", [], "bad ptx") == key and later.get(key).ptx == "bad ptx"


def test_reading_the_folder_counts_damage(tmp_path):
    cache = stored(tmp_path)
    cache.insert("a", "k", [], "ptx")
    files(tmp_path)[0].write_bytes(b"")
    cache = stored(tmp_path)
    cache.initialize()
    assert (cache.stats().load_errors, cache.stats().misses, cache.is_empty()) == (1, 0, True)


def test_an_entry_of_another_architecture_is_not_given(tmp_path):
    cache = stored(tmp_path)
    key = cache.insert("a", "k", [], "ptx")
    older = stored(tmp_path, ArchFingerprint(80, 150 << 30, 228 << 10, 65536, 50 << 20, 12080))
    newer = stored(tmp_path, ArchFingerprint(90, 150 << 30, 228 << 10, 65536, 50 << 20, 13000))
    assert older.get(key) is None and not older.contains(key) and newer.get(key).ptx == "ptx"
    assert older.insert("a", "k", [], "older ptx") != key and cache.get(key).ptx == "ptx"


def test_remove_and_clear_on_disk(tmp_path):
    cache, other = stored(tmp_path), stored(tmp_path)
    keys = [cache.insert(source, "k", [], source) for source in ("a", "b")]
    assert len(other) == 2 and cache.remove(keys[0]) and not cache.remove(keys[0]) and len(other) == 1
    assert other.get(keys[0]) is None
    other.clear()
    assert cache.is_empty() and cache.get(keys[1]) is None and files(tmp_path) == []


def test_what_lies_beside_it_stays(tmp_path):
    kernels = _core.KernelCache(str(tmp_path / "kernels"))  # as jit() has it
    kernels.put(bytes(32), b"a kernel")
    cache = stored(tmp_path)
    cache.insert("a", "k", [], "ptx")
    _core.KernelCache(str(tmp_path / "ptx")).put(bytes(32), b"{}")  # of another version
    assert len(cache) == 1 and cache.stats().load_errors == 0
    cache.clear()
    assert files(tmp_path) == [] and kernels.get(bytes(32), stored=True) == (b"a kernel", "disk")


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


def test_entries_expire_on_disk(tmp_path, clock):
    cache = stored(tmp_path, ttl_seconds=10.0, auto_cleanup=False)
    keys = [cache.insert(source, source, [], "ptx") for source in "abc"]
    clock.seconds += 9.5
    stored(tmp_path).insert("a", "a", [], "ptx")  # renewed by another
    assert cache.get(keys[1]) is not None  # a use does not renew it
    clock.seconds += 0.5
    assert len(cache) == 3 and cache.get(keys[1]) is None and len(files(tmp_path)) == 2
    assert cache.cleanup() == 1 and cache.get(keys[0]) is not None and len(cache) == 1
    assert cache.stats().evictions == 2


@pytest.mark.parametrize("bound", [{"max_entries": 2}, {"max_size": 25}])
def test_the_least_recently_used_goes_first_on_disk(tmp_path, clock, bound):
    cache = stored(tmp_path, **bound)
    a, b = (cache.insert(source, source, [], "x" * 10) for source in "ab")
    assert cache.get(a) is not None and cache.contains(b)  # of which only the first is a use
    c = cache.insert("c", "c", [], "x" * 10)
    assert [cache.contains(key) for key in (a, b, c)] == [True, False, True] and len(files(tmp_path)) == 2
    assert (cache.stats().evictions, cache.stats().entries, cache.stats().total_size) == (1, 2, 20)


def test_what_another_renewed_is_not_the_oldest(tmp_path, clock):
    cache, other = stored(tmp_path, max_entries=2), stored(tmp_path, auto_cleanup=False)
    keys = []
    for source in "ab":
        clock.seconds += 1
        keys.append(cache.insert(source, source, [], "x"))
    clock.seconds += 1
    other.insert("a", "a", [], "x")
    clock.seconds += 1
    keys.append(cache.insert("c", "c", [], "x"))
    assert [cache.contains(key) for key in keys] == [True, False, True]


def test_without_auto_cleanup_bounds_wait(tmp_path, clock):
    cache = stored(tmp_path, max_entries=2, auto_cleanup=False)
    keys = []
    for source in "abcd":
        clock.seconds += 1
        keys.append(cache.insert(source, source, [], "x"))
    assert len(cache) == 4
    later = stored(tmp_path, max_entries=2)
    assert later.cleanup() == 2 and later.cleanup() == 0
    assert [later.contains(key) for key in keys] == [False, False, True, True]


def test_what_cannot_be_kept_is_counted(tmp_path):
    cache = stored(tmp_path, max_size=10)
    key = cache.insert("a", "k", [], "x" * 11)
    assert cache.get(key) is None and cache.stats().save_errors == 1
    cache.initialize()
    Path(tmp_path, "ptx").rename(tmp_path / "moved")
    Path(tmp_path, "ptx").touch()  # no folder any more
    key = cache.insert("b", "k", [], "x")
    assert cache.get(key) is None and cache.stats().save_errors == 2


def test_a_folder_that_cannot_be_used_is_refused(tmp_path):
    Path(tmp_path, "file").touch()
    cache = stored(tmp_path / "file")
    with pytest.raises(InvalidSpecError, match=r"cache_dir=.*cannot be used") as caught:
        cache.initialize()
    assert caught.value.field == "cache_dir"
    Path(tmp_path, "open").mkdir(mode=0o777)
    Path(tmp_path, "open").chmod(0o777)
    with pytest.raises(InvalidSpecError, match="written by every user"):
        stored(tmp_path / "open").get(1)


def test_the_folder_of_the_package_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path))
    config = PersistentCacheConfig()
    assert config.cache_dir == str(tmp_path)
    assert (config.max_size, config.max_entries, config.auto_cleanup, config.ttl_seconds) == (512 << 20, 1000, True, 0)
    assert PersistentCacheConfig("~/x").cache_dir == str(Path.home() / "x")


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
