"""The kernel cache as its user sees it: what is in it, clear it, move it to another machine, ask why it missed."""

from __future__ import annotations

import os
from pathlib import Path

from pygpukit.jit.cache import archive
from pygpukit.jit.cache.explain import explain
from pygpukit.jit.cache.store import folder, keep, kernel_cache

__all__ = ["clear", "explain", "export", "import_", "info"]

_GROUP = "entries"


def info() -> dict[str, object]:
    """folder, and the figures of this process and of the folder: hits, misses, entries, bytes, evictions."""
    return {"folder": str(folder()), "problem": kernel_cache().problem(), **kernel_cache().stats()}


def clear() -> int:
    """Remove every entry, in memory and on disk; how many there were on disk."""
    count = kernel_cache().stats()["disk_entries"]
    kernel_cache().clear()
    return count


def export(path: str | os.PathLike[str]) -> int:
    """Write every sound entry into one archive file; how many. Raises OSError when the file cannot be written."""
    cache = kernel_cache()
    sealed = (entry for key in sorted(cache.keys()) if (entry := cache.sealed(key)) is not None)
    return archive.write(Path(path), [(_GROUP, sealed)])


def import_(path: str | os.PathLike[str]) -> int:
    """Add the entries of an archive that export() wrote; how many. Entries are code: import only what you trust.

    Every entry is verified before it is stored. Raises OSError when the file cannot be read, ValueError when it is
    damaged: the entries before the damage are in the cache then.
    """
    count = 0
    for key, payload in archive.read(Path(path)):
        keep(key, payload)
        count += 1
    return count


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
