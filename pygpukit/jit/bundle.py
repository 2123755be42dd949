"""Built-in kernels compiled ahead of time, for machines with a driver but no NVRTC ("pre-compiled mode").

A bundle is a folder of cache entries made by `tools/compile_kernels.py --bundle FOLDER` on any machine with NVRTC; no
GPU is needed there. It is read from $PYGPUKIT_BUNDLE, else from `bundle` in the cache folder. A bundle belongs to one
version of the kernels' text: another version's entries are simply not found.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from pygpukit import _core
from pygpukit._core import native
from pygpukit.jit.image import Image, from_bytes
from pygpukit.jit.locate import cache_directory

# (source key, name expressions, compiler options), as builtin.catalogue() yields them.
Unit = tuple[str, tuple[str, ...], tuple[str, ...]]

_SCHEMA = b"bundle 1"


def folder() -> Path:
    """Where the bundle is looked for."""
    named = os.environ.get("PYGPUKIT_BUNDLE")
    return Path(named) if named else cache_directory() / "bundle"


def put(target: Path, arch: str, unit: Unit, image: Image) -> None:
    """Add one compiled unit to the bundle in `target`. Raises OSError when the folder cannot be used."""
    entries = _core.KernelCache(str(target))
    if problem := entries.problem():
        raise OSError(f"the bundle cannot be written: {problem}")
    entries.put(_key(arch, unit), image.to_bytes())


def find(arch: str, units: Iterable[Unit], expression: str) -> Image | None:
    """The bundled image that holds an instantiation, or None."""
    unit = next((unit for unit in units if expression in unit[1]), None)
    if unit is None or not folder().is_dir():
        return None
    key = _key(arch, unit)
    entry = _entries(str(folder())).get(key)
    return None if entry is None else from_bytes(entry[0], key, "disk", {})


@cache
def _entries(directory: str) -> _core.KernelCache:
    return _core.KernelCache(directory)


def _key(arch: str, unit: Unit) -> bytes:
    source, expressions, options = unit
    return _core.KernelCache.digest(
        [_SCHEMA, arch.encode(), source.encode(), _texts(), *_encoded(expressions, options)]
    )


def _encoded(*lists: Sequence[str]) -> list[bytes]:
    return ["\0".join(items).encode() for items in lists]


@cache
def _texts() -> bytes:
    """Digest of every packaged kernel source and header."""
    kernels = sorted(item for item in native.sources().items() if item[0].startswith("kernels/"))
    return _core.KernelCache.digest([part.encode() for item in kernels for part in item])
