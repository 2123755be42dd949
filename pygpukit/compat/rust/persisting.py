"""The documented cache of PTX on disk: entries in a kernel cache of the core, for all processes of a user.

Each is a file that the core publishes whole, verifies on every read, and moves to quarantine when it is damaged.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import SupportsIndex

from pygpukit import _core
from pygpukit.compat.rust import caching
from pygpukit.compat.rust.caching import core_key, encode, expired, hash_parts
from pygpukit.compat.rust.fields import parse_flag, parse_texts, parse_ttl, parse_uint64
from pygpukit.core.errors import InvalidSpecError
from pygpukit.jit.locate import cache_directory
from pygpukit.scheduler import units

__all__ = [
    "ArchFingerprint",
    "PersistentCache",
    "PersistentCacheConfig",
    "PersistentCacheStats",
    "PersistentEntry",
]

_FOLDER = "ptx"  # of its own: the cache of jit() may lie beside it
_UNBOUNDED = 1 << 62


@dataclass(frozen=True)
class ArchFingerprint:
    """The architecture that PTX was made for. Sizes in bytes. Raises InvalidSpecError naming the field."""

    sm_version: int
    global_memory: int
    shared_memory_per_sm: int
    max_registers_per_block: int
    l2_cache_size: int
    driver_version: int

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, parse_uint64(getattr(self, field.name), field.name))

    def hash(self) -> int:
        """64 bits of all six figures."""
        return hash_parts("arch", *astuple(self))

    def is_compatible(self, other: ArchFingerprint) -> bool:
        """True if what was made for the other can be used here: the same architecture, and a driver that is no older,
        because a driver takes no PTX that is newer than itself."""
        return self.sm_version == other.sm_version and self.driver_version >= other.driver_version


class PersistentCacheConfig:
    """Where entries lie, and bounds: bytes of their PTX, entries, and seconds after its insertion that one stays, 0 for
    ever. auto_cleanup: insert() holds to the bounds, else only cleanup() does.

    cache_dir: $PYGPUKIT_CACHE_DIR or the platform's folder for caches, as for jit(), unless given; "~" is home.
    Raises InvalidSpecError naming the field.
    """

    def __init__(
        self,
        cache_dir: str | None = None,
        max_size: int = 512 << 20,
        max_entries: int = 1000,
        auto_cleanup: bool = True,
        ttl_seconds: float = 0.0,
    ) -> None:
        folder = cache_directory() if cache_dir is None else Path(units.parse_text(cache_dir, "cache_dir")).expanduser()
        self.cache_dir = str(folder)
        self.max_size = parse_uint64(max_size, "max_size", minimum=1)
        self.max_entries = parse_uint64(max_entries, "max_entries", minimum=1)
        self.auto_cleanup = parse_flag(auto_cleanup, "auto_cleanup")
        self.ttl_seconds = parse_ttl(ttl_seconds)


@dataclass(frozen=True)
class PersistentEntry:
    """An entry as it was when asked for. Times in seconds since the epoch. last_access and access_count: by the cache
    that was asked, since it was made; other processes' uses are not known to it."""

    name: str
    ptx: str
    source_hash: int
    options_hash: int
    created_at: float
    last_access: float
    access_count: int

    def ptx_size(self) -> int:
        """Bytes."""
        return len(encode(self.ptx))


@dataclass(frozen=True)
class PersistentCacheStats:
    """entries, total_size (bytes of PTX): what the folder holds now. The others count what this cache did.

    evictions: by a bound or by age; load_errors: damaged files; save_errors: insertions of which nothing was kept.
    """

    entries: int
    total_size: int
    hits: int
    misses: int
    evictions: int
    load_errors: int
    save_errors: int

    def hit_rate(self) -> float:
        """Hits of all gets, 0.0 to 1.0; 0.0 before the first."""
        return self.hits / max(1, self.hits + self.misses)


@dataclass(frozen=True)
class _Stored:
    """The payload of an entry."""

    name: str
    ptx: str
    source_hash: int
    options_hash: int
    created_at: float
    arch: ArchFingerprint

    @staticmethod
    def read(payload: bytes) -> _Stored | None:
        """None for what another version wrote."""
        try:
            parts = json.loads(payload)
            return _Stored(**{**parts, "arch": ArchFingerprint(**parts["arch"])})
        except (ValueError, TypeError, KeyError):
            return None

    def write(self) -> bytes:
        return json.dumps(asdict(self)).encode()


@dataclass
class _Use:
    """The use of an entry that is known without reading it."""

    bytes: int
    created_at: float
    last_access: float
    access_count: int = 0


class PersistentCache:
    """PTX in files, found again by later processes and shared with others that run; above a bound the entry goes that
    this cache saw used or inserted least recently. Keys are 64 bits of BLAKE3 of all that they stand for.

    The files lie in cache_dir/ptx and take some hundred bytes each beside the PTX. Nothing is opened before the first
    use. A damaged file is a miss.
    """

    def __init__(self, config: PersistentCacheConfig, arch: ArchFingerprint) -> None:
        if not isinstance(config, PersistentCacheConfig):
            raise InvalidSpecError(f"config={config!r} is no PersistentCacheConfig", "config")
        if not isinstance(arch, ArchFingerprint):
            raise InvalidSpecError(f"arch={arch!r} is no ArchFingerprint", "arch")
        self._config, self._arch = config, arch
        self._opened: _core.KernelCache | None = None
        self._uses: dict[bytes, _Use] = {}  # by the core's key, the latest used last
        self._lock = threading.RLock()
        self._hits = self._misses = self._evictions = self._save_errors = 0

    def initialize(self) -> None:
        """Open the folder, make it if need be, and read what is there; every other method does so if nobody did.

        Raises InvalidSpecError for a folder that cannot be made, or that other users may write to.
        """
        with self._lock:
            self._look()

    @staticmethod
    def compute_key(source_hash: int, name: str, options_hash: int, arch_hash: int) -> int:
        """The key that insert() gives, by hash_source(), hash_options() and ArchFingerprint.hash()."""
        return hash_parts(
            parse_uint64(source_hash, "source_hash"),
            units.parse_text(name, "name"),
            parse_uint64(options_hash, "options_hash"),
            parse_uint64(arch_hash, "arch_hash"),
        )

    @staticmethod
    def hash_source(source: str) -> int:
        return hash_parts("source", units.parse_text(source, "source"))

    @staticmethod
    def hash_options(options: Sequence[str]) -> int:
        """In their order: a later one may override an earlier one."""
        return hash_parts("options", parse_texts(options, "options"))

    def get(self, key: SupportsIndex) -> PersistentEntry | None:
        """The entry; None, too, for one of an architecture that is_compatible() refuses."""
        place = core_key(key)
        with self._lock:
            stored = self._usable(place)
            if stored is None:
                self._misses += 1
                return None
            self._hits += 1
            use = self._uses[place] = self._uses.pop(place)
            use.last_access = caching.now()
            use.access_count += 1
            return PersistentEntry(
                name=stored.name,
                ptx=stored.ptx,
                source_hash=stored.source_hash,
                options_hash=stored.options_hash,
                created_at=stored.created_at,
                last_access=use.last_access,
                access_count=use.access_count,
            )

    def insert(self, source: str, name: str, options: Sequence[str], ptx: str) -> int:
        """The key. An entry of the same key is replaced. What cannot be kept counts in save_errors: PTX of more than
        max_size, and what cannot be written."""
        source_hash, options_hash = self.hash_source(source), self.hash_options(options)
        key = self.compute_key(source_hash, name, options_hash, self._arch.hash())
        place, size, now = core_key(key), len(encode(ptx)), caching.now()
        stored = _Stored(name, ptx, source_hash, options_hash, now, self._arch)
        with self._lock:
            if size > self._config.max_size or not self._save(place, stored):
                self._save_errors += 1
            elif self._config.auto_cleanup:
                self.cleanup()
        return key

    def remove(self, key: SupportsIndex) -> bool:
        """Remove an entry; True if there was one."""
        place = core_key(key)
        with self._lock:
            self._uses.pop(place, None)
            return self._entries().remove(place)

    def clear(self) -> None:
        """Remove every entry, other processes' as well; the counts stay."""
        with self._lock:
            self._entries().clear()
            self._uses.clear()

    def cleanup(self) -> int:
        """Remove what is too old, then the least recently used down to the bounds. How many were removed."""
        with self._lock:
            before = self._evictions
            self._look()
            for place, use in list(self._uses.items()):
                if expired(use.created_at, self._config.ttl_seconds):
                    self._usable(place)
            while len(self._uses) > self._config.max_entries or self._bytes() > self._config.max_size:
                oldest = min(self._uses, key=lambda place: self._uses[place].last_access)
                seen = self._uses[oldest].created_at
                stored = self._read(oldest)
                if stored is not None and stored.created_at == seen:  # else another process renewed or removed it
                    self._evict(oldest)
            return self._evictions - before

    def contains(self, key: SupportsIndex) -> bool:
        """True where get() would find it. It counts as no use."""
        with self._lock:
            return self._usable(core_key(key)) is not None

    def stats(self) -> PersistentCacheStats:
        with self._lock:
            self._look()
            return PersistentCacheStats(
                entries=len(self._uses),
                total_size=self._bytes(),
                hits=self._hits,
                misses=self._misses,
                evictions=self._evictions,
                load_errors=self._entries().stats()["quarantined"],
                save_errors=self._save_errors,
            )

    def __len__(self) -> int:
        with self._lock:
            self._look()
            return len(self._uses)

    def is_empty(self) -> bool:
        return len(self) == 0

    def _entries(self) -> _core.KernelCache:
        if self._opened is None:
            folder = Path(self._config.cache_dir, _FOLDER)
            # No memory: each get reads and verifies the file. No bound of its own: cleanup() knows all of them.
            opened = _core.KernelCache(str(folder), memory_bytes=0, disk_bytes=_UNBOUNDED)
            if (problem := opened.problem()) is not None:
                raise InvalidSpecError(f"cache_dir={self._config.cache_dir!r} cannot be used: {problem}", "cache_dir")
            self._opened = opened
        return self._opened

    def _bytes(self) -> int:
        return sum(use.bytes for use in self._uses.values())

    def _look(self) -> None:
        """Learn what other processes stored and removed."""
        held = set(self._entries().keys())
        for place in self._uses.keys() - held:
            del self._uses[place]
        for place in held - self._uses.keys():
            self._read(place)

    def _read(self, place: bytes) -> _Stored | None:
        entry = self._entries().get(place)
        stored = None if entry is None else _Stored.read(entry[0])
        if stored is None:
            self._uses.pop(place, None)
            return None
        use = self._uses.get(place)
        if use is None or use.created_at != stored.created_at:
            self._uses.pop(place, None)
            self._uses[place] = _Use(len(encode(stored.ptx)), stored.created_at, stored.created_at)
        return stored

    def _usable(self, place: bytes) -> _Stored | None:
        stored = self._read(place)
        if stored is not None and expired(stored.created_at, self._config.ttl_seconds):
            self._evict(place)
            return None
        fits = stored is not None and self._arch.is_compatible(stored.arch)
        return stored if fits else None

    def _evict(self, place: bytes) -> None:
        self._uses.pop(place, None)
        self._evictions += self._entries().remove(place)

    def _save(self, place: bytes, stored: _Stored) -> bool:
        """Save the entry; True if it can be read again: put() does not tell."""
        self._entries().put(place, stored.write())
        self._uses.pop(place, None)
        kept = self._read(place)
        return kept is not None and kept.ptx == stored.ptx
