"""The process's kernel cache: its folder and limits, what a key is made of, and what changed since the unit's last one.

A key is content only: no path, no time, no name of a machine. Entries written by one user are not trusted by another:
a folder that others may write to is not used.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pygpukit import _core
from pygpukit.core.errors import InvalidSpecError
from pygpukit.jit.locate import cache_directory

if TYPE_CHECKING:
    from pygpukit.jit.cache.image import Image

SCHEMA = "pygpukit kernel 2"
DISK_BYTES = 1 << 30
_REMEMBERED_UNITS = 256

_lock = threading.Lock()
_cache: _core.KernelCache | None = None
_warned = False  # that the disk refused an entry
_earlier: OrderedDict[str, dict[str, str]] = OrderedDict()  # unit name to the parts of its latest key


def folder() -> Path:
    """Where entries lie: `kernels` in the cache folder."""
    return cache_directory() / "kernels"


def kernel_cache() -> _core.KernelCache:
    """The one cache of this process. Where its folder cannot be used it keeps to memory and says so once.

    $PYGPUKIT_CACHE_BYTES limits the folder (1 GiB; least recently used entries go first), $PYGPUKIT_CACHE_TTL_S how
    long an entry that nobody uses stays (for ever). Raises InvalidSpecError for settings that are no such numbers.
    """
    global _cache
    with _lock:
        if _cache is None:
            disk_bytes, ttl_seconds = _number("PYGPUKIT_CACHE_BYTES"), _number("PYGPUKIT_CACHE_TTL_S")
            _cache = _core.KernelCache(
                str(folder()),
                disk_bytes=DISK_BYTES if disk_bytes is None else int(disk_bytes),
                disk_ttl_seconds=ttl_seconds,
            )
            problem = _cache.problem()
            if problem:
                warnings.warn(
                    f"kernels are cached in memory only: {problem}; set PYGPUKIT_CACHE_DIR to a folder of your own",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return _cache


def keep(key: bytes, payload: bytes) -> None:
    """Store an entry. Where the disk refuses it, it is kept in memory, and a warning says so, once a process."""
    global _warned
    cache = kernel_cache()
    cache.put(key, payload)
    refusal = cache.take_refusal()
    if refusal and not _warned:
        _warned = True
        warnings.warn(
            f"kernels are kept in memory only, and compiled again by the next process: {folder()} takes no more "
            f"({refusal}); make room there, or set PYGPUKIT_CACHE_DIR to another folder",
            RuntimeWarning,
            stacklevel=2,
        )


def _number(variable: str) -> float | None:
    text = os.environ.get(variable, "")
    try:
        value = float(text) if text else None
    except ValueError:
        value = -1.0
    if value is not None and not 0 <= value < 1 << 53:
        raise InvalidSpecError(f"{variable}={text}: give a number, 0 or more, or leave it unset", variable)
    return value


def key_of(parts: Mapping[str, bytes]) -> tuple[bytes, dict[str, str]]:
    """The key made of the labelled parts, and a short digest of each part for explain()."""
    labelled = {"schema": SCHEMA.encode(), **parts}
    flat = [piece for label, part in labelled.items() for piece in (label.encode(), part)]
    return _core.KernelCache.digest(flat), {label: _short(part) for label, part in labelled.items()}


def _short(part: bytes) -> str:
    return part.decode() if len(part) <= 64 and part.isascii() else _core.KernelCache.digest([part])[:8].hex()


def note(name: str, image: Image) -> list[str]:
    """Remember the key of the unit's latest compile; the labels in which it differs from the one before."""
    with _lock:
        before = _earlier.pop(name, None)
        _earlier[name] = image.parts
        if len(_earlier) > _REMEMBERED_UNITS:
            _earlier.popitem(last=False)
    return [] if before is None else _differing(before, image.parts)


def _differing(before: Mapping[str, str], parts: Mapping[str, str]) -> list[str]:
    return [label for label, part in parts.items() if before.get(label) != part]


def remember(parts: Mapping[str, str]) -> None:
    """Keep the parts of a compile's key beside its image, so that a later process can tell what is different."""
    keep(_history_key(parts), json.dumps(dict(parts)).encode())


def reason(parts: Mapping[str, str]) -> str:
    """Why there is no image under these parts although the same source was compiled before; "" when it was not."""
    entry = kernel_cache().get(_history_key(parts))
    if entry is None:
        return ""
    try:
        before = json.loads(entry[0])
        changed = [f"{label} ({before[label]} before, {parts[label]} now)" for label in _differing(before, parts)]
    except (ValueError, KeyError, AttributeError):  # written by something else
        return ""
    if changed:
        return f"the same source was compiled before with other {', '.join(changed)}"
    return "its entry was evicted, expired or damaged"


def _history_key(parts: Mapping[str, str]) -> bytes:
    return _core.KernelCache.digest([b"latest", parts["kind"].encode(), parts["source"].encode()])
