"""The process's kernel cache: its folder, what a key is made of, and why a compile was not a hit.

A key is content only: no path, no time, no name of a machine. Entries written by one user are not trusted by another:
a folder that others may write to is not used.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pygpukit import _core
from pygpukit.jit.locate import cache_directory

if TYPE_CHECKING:
    from pygpukit.jit.image import Image
    from pygpukit.jit.kernel import JITKernel

SCHEMA = "pygpukit kernel 1"
_REMEMBERED_UNITS = 256

_lock = threading.Lock()
_cache: _core.KernelCache | None = None
_earlier: OrderedDict[str, dict[str, str]] = OrderedDict()  # unit name to the parts of its latest key


def kernel_cache() -> _core.KernelCache:
    """The one cache of this process. Where its folder cannot be used it keeps to memory and says so once."""
    global _cache
    with _lock:
        if _cache is None:
            _cache = _core.KernelCache(str(cache_directory() / "kernels"))
            problem = _cache.problem()
            if problem:
                warnings.warn(
                    f"kernels are cached in memory only: {problem}; set PYGPUKIT_CACHE_DIR to a folder of your own",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return _cache


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
    if before is None:
        return []
    return [label for label, part in image.parts.items() if before.get(label) != part]


def explain(kernel: JITKernel | Image) -> str:
    """Why the kernel was compiled, or where it was found, and what its cache key is made of. Text of a few lines."""
    image: Image = kernel if not hasattr(kernel, "compiled") else kernel.compiled
    head = {
        "memory": "found in this process's cache",
        "disk": f"found in {cache_directory() / 'kernels'}",
        "compiled": "compiled: the cache had no entry with this key",
        "uncached": 'compiled: units that read files of their own (-I, -include, #include "...") are not cached',
    }[image.origin]
    lines = [head, *(f"  {label}: {part}" for label, part in image.parts.items())]
    if image.changed:
        lines.append(f"the unit of this name compiled before differs in: {', '.join(image.changed)}")
    return "\n".join(lines)
