"""The documented cache of PTX on disk: its files, other processes, damage, bounds and counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rust_cache_help import H200, files, stored
from rust_cache_help import clock as clock

from _pygpukit_rust.dispatch import ArchFingerprint, PersistentCache, PersistentCacheConfig, PersistentCacheStats
from pygpukit import _core
from pygpukit.core.errors import InvalidSpecError


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
