"""The documented cache of PTX by source, name and options: entries in the kernel cache of the core, in memory only.

jit() does not ask it: its own cache is keyed by more, the contents of headers and the compiler's version among it.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field, replace
from typing import SupportsIndex

from pygpukit import _core
from pygpukit.compat.rust.fields import parse_flag, parse_texts, parse_ttl, parse_uint64
from pygpukit.core.errors import InvalidSpecError, OutOfMemoryError
from pygpukit.scheduler import units

__all__ = ["CacheConfig", "CacheStats", "CachedKernel", "CompileOptions", "KernelCache"]

now = time.time


@dataclass(frozen=True)
class CacheConfig:
    """Bounds of a KernelCache: entries, bytes of all PTX, and seconds after its insertion that an entry stays, 0 for
    ever. Raises InvalidSpecError naming the field."""

    max_entries: int = 1024
    max_ptx_size: int = 256 << 20
    enable_eviction: bool = True
    ttl_seconds: float = 0.0

    def __post_init__(self) -> None:
        parse_uint64(self.max_entries, "max_entries", minimum=1)
        parse_uint64(self.max_ptx_size, "max_ptx_size", minimum=1)
        parse_flag(self.enable_eviction, "enable_eviction")
        parse_ttl(self.ttl_seconds)


@dataclass(frozen=True)
class CompileOptions:
    """Options that PTX is made with; flag(), define() and include() give changed copies. Raises InvalidSpecError."""

    compute_capability: str = "sm_75"
    flags: list[str] = field(default_factory=list)
    defines: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        units.parse_text(self.compute_capability, "compute_capability")
        parse_texts(self.flags, "flags")
        parse_texts([text for macro in self.defines for text in macro], "defines")

    def flag(self, flag: str) -> CompileOptions:
        """One more flag of the compiler."""
        return replace(self, flags=[*self.flags, units.parse_text(flag, "flag")])

    def define(self, name: str, value: str) -> CompileOptions:
        """One more macro."""
        macro = (units.parse_text(name, "name"), units.parse_text(value, "value"))
        return replace(self, defines=[*self.defines, macro])

    def include(self, path: str) -> CompileOptions:
        """One more folder of headers, as the flag -I. It counts by its path: what is in it is not looked at."""
        return self.flag("-I" + units.parse_text(path, "path"))


@dataclass(frozen=True)
class CachedKernel:
    """An entry as it was when asked for. Times in seconds since the epoch; access_count: gets, with this one.

    The handles are those of set_handles(), None before: the cache loads nothing itself.
    """

    key: int
    name: str
    ptx: str
    module_handle: int | None
    function_handle: int | None
    created_at: float
    last_access: float
    access_count: int

    def is_loaded(self) -> bool:
        return self.function_handle is not None


@dataclass(frozen=True)
class CacheStats:
    """Of a KernelCache. entries, ptx_size in bytes: as held now; evictions: by a bound; ttl_evictions: by age;
    loaded_count: of the entries, those with handles."""

    hits: int
    misses: int
    entries: int
    ptx_size: int
    evictions: int
    ttl_evictions: int
    loaded_count: int

    def hit_rate(self) -> float:
        """Hits of all gets, 0.0 to 1.0; 0.0 before the first."""
        return self.hits / max(1, self.hits + self.misses)


@dataclass
class _Record:
    """Fields of an entry beside its PTX, which the core holds. key_of_name: the key of its name and options."""

    key: int
    name: str
    key_of_name: int
    bytes: int
    created_at: float
    last_access: float
    access_count: int = 0
    handles: tuple[int, int] | None = None  # of the module and its function


class KernelCache:
    """PTX in memory; above a bound the least recently used goes first. Keys are 64 bits of BLAKE3 of what they name.

    An expired entry counts in len() and stats() until a get(), an insert() or clear_expired() comes upon it.
    """

    def __init__(self, config: CacheConfig | None = None) -> None:
        if not isinstance(config, CacheConfig | None):
            raise InvalidSpecError(f"config={config!r} is no CacheConfig", "config")
        self._config = config or CacheConfig()
        self._entries = _core.KernelCache(None, memory_bytes=self._config.max_ptx_size)
        self._records: dict[bytes, _Record] = {}  # by the core's key, in order of insertion
        self._lock = threading.Lock()
        self._hits = self._misses = self._evictions = self._expiries = 0

    @staticmethod
    def compute_key(source: str, name: str, options: CompileOptions) -> int:
        """The key that insert() gives."""
        return hash_parts(units.parse_text(source, "source"), units.parse_text(name, "name"), *_parts(options))

    @staticmethod
    def hash_source(source: str) -> int:
        return hash_parts(units.parse_text(source, "source"))

    def get(self, key: SupportsIndex) -> CachedKernel | None:
        """The entry, which is then the most recently used."""
        with self._lock:
            return self._get(core_key(key))

    def get_by_name(self, name: str, options: CompileOptions) -> CachedKernel | None:
        """Of those with the name and the options the one inserted last, whatever its source."""
        key = hash_parts(units.parse_text(name, "name"), *_parts(options))
        with self._lock:
            places = (place for place in reversed(self._records) if self._records[place].key_of_name == key)
            return self._get(next(places, None))

    def insert(self, source: str, name: str, ptx: str, options: CompileOptions) -> int:
        """The key. An entry of the same key is replaced.

        Raises OutOfMemoryError, and changes nothing, for more than max_ptx_size, and without enable_eviction for what
        does not fit beside the others.
        """
        key = self.compute_key(source, name, options)
        place, payload, inserted_at = core_key(key), encode(ptx), now()
        record = _Record(key, name, hash_parts(name, *_parts(options)), len(payload), inserted_at, inserted_at)
        with self._lock:
            self._clear_expired()
            self._require_room(place, record)
            self._entries.put(place, payload)
            self._records.pop(place, None)
            self._records[place] = record
            self._evict()
        return key

    def set_handles(self, key: SupportsIndex, module: int, function: int) -> bool:
        """Keep with an entry the handles that the caller's driver gave for it; False for an unknown key.

        They are for the caller alone, who unloads the module, too: here nothing is done with them, and they go with
        the entry, also when that is evicted or replaced. Raises InvalidSpecError naming the field.
        """
        handles = parse_uint64(module, "module", minimum=1), parse_uint64(function, "function", minimum=1)
        with self._lock:
            record = self._live(core_key(key))
            if record is not None:
                record.handles = handles
            return record is not None

    def remove(self, key: SupportsIndex) -> CachedKernel | None:
        """The entry that was there."""
        place = core_key(key)
        with self._lock:
            record = self._live(place)
            kernel = None if record is None else self._kernel(place, record)
            self._drop(place)
            return kernel

    def contains(self, key: SupportsIndex) -> bool:
        """True where get() would find it. It counts as no use."""
        with self._lock:
            record = self._records.get(core_key(key))
            return record is not None and not expired(record.created_at, self._config.ttl_seconds)

    def kernel_names(self) -> list[str]:
        """Each once, in order of insertion."""
        with self._lock:
            return list(dict.fromkeys(record.name for record in self._records.values()))

    def clear_expired(self) -> int:
        """Remove what has expired; return how many were removed."""
        with self._lock:
            return self._clear_expired()

    def stats(self) -> CacheStats:
        with self._lock:
            held = self._entries.stats()
            return CacheStats(
                hits=self._hits,
                misses=self._misses,
                entries=held["memory_entries"],
                ptx_size=held["memory_bytes"],
                evictions=self._evictions,
                ttl_evictions=self._expiries,
                loaded_count=sum(record.handles is not None for record in self._records.values()),
            )

    def __len__(self) -> int:
        return len(self._records)

    def is_empty(self) -> bool:
        return not self._records

    def clear(self) -> None:
        """Remove every entry; the counts stay."""
        with self._lock:
            self._entries.clear()
            self._records.clear()

    def _get(self, place: bytes | None) -> CachedKernel | None:
        record = None if place is None else self._live(place)
        if place is None or record is None:
            self._misses += 1
            return None
        self._hits += 1
        record.last_access = now()
        record.access_count += 1
        return self._kernel(place, record)

    def _kernel(self, place: bytes, record: _Record) -> CachedKernel:
        entry = self._entries.get(place)
        assert entry is not None  # _evict() keeps the records in step
        module, function = record.handles or (None, None)
        times = (record.created_at, record.last_access, record.access_count)
        return CachedKernel(record.key, record.name, decode(entry[0]), module, function, *times)

    def _live(self, place: bytes) -> _Record | None:
        record = self._records.get(place)
        if record is not None and expired(record.created_at, self._config.ttl_seconds):
            self._drop(place)
            self._expiries += 1
            return None
        return record

    def _drop(self, place: bytes) -> None:
        self._entries.remove(place)
        self._records.pop(place, None)

    def _clear_expired(self) -> int:
        before = self._expiries
        for place in list(self._records):
            self._live(place)
        return self._expiries - before

    def _require_room(self, place: bytes, record: _Record) -> None:
        room = self._config.max_ptx_size
        beside = [] if self._config.enable_eviction else [r for p, r in self._records.items() if p != place]
        used = sum(other.bytes for other in beside)
        if record.bytes + used > room:
            text = f"{record.bytes} bytes of PTX of {record.name!r} do not fit: {used} of max_ptx_size={room} are taken"
            raise OutOfMemoryError(text, record.bytes, room, room - used)
        if len(beside) == self._config.max_entries:
            text = f"{record.name!r} does not fit: max_entries={len(beside)} are taken and enable_eviction is off"
            raise OutOfMemoryError(text, record.bytes, room, room - used)

    def _evict(self) -> None:
        """For the bytes the core has made room already; its keys are in order of use."""
        held = self._entries.keys()
        for place in held[: max(0, len(held) - self._config.max_entries)]:
            self._entries.remove(place)
        for place in self._records.keys() - set(self._entries.keys()):
            del self._records[place]
            self._evictions += 1


def _parts(options: CompileOptions) -> tuple[object, ...]:
    """Flags and macros in their order: a later one may override an earlier one."""
    if not isinstance(options, CompileOptions):
        raise InvalidSpecError(f"options={options!r} are no CompileOptions", "options")
    return options.compute_capability, options.flags, options.defines


# ---- what both documented caches share ----


def hash_parts(*parts: object) -> int:
    """64 bits of the core's digest of strings, numbers and lists of them."""
    return int.from_bytes(_core.KernelCache.digest([json.dumps(parts).encode()])[:8], "little")


def core_key(key: SupportsIndex) -> bytes:
    """Where the core holds the entry of a documented key. Raises InvalidSpecError."""
    return _core.KernelCache.digest([b"documented ptx 1", parse_uint64(key, "key").to_bytes(8, "little")])


def encode(ptx: str) -> bytes:
    """Bytes of any string. Raises InvalidSpecError for anything else."""
    return units.parse_text(ptx, "ptx").encode("utf-8", "surrogatepass")


def decode(payload: bytes) -> str:
    return payload.decode("utf-8", "surrogatepass")


def expired(created_at: float, ttl_seconds: float) -> bool:
    return ttl_seconds > 0 and now() - created_at >= ttl_seconds
