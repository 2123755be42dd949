"""Built-in kernels compiled ahead of time, for machines with a driver but no NVRTC ("pre-compiled mode").

A bundle is one archive of cache entries, a group for each architecture, made by `tools/compile_kernels.py --bundle` on
any machine with NVRTC; no GPU is needed there. A wheel holds the one that was made before it was built, if any;
$PYGPUKIT_BUNDLE names another. An entry belongs to the text of its source and of the headers that it reaches, and to
the version of CUTLASS where it includes that: those of another are not found, and an edit leaves the others as they
are.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

from pygpukit import _core
from pygpukit.jit.cache import archive
from pygpukit.jit.cache.image import Image, from_bytes
from pygpukit.jit.cutlass import place as cutlass
from pygpukit.kernels import registry, sources
from pygpukit.kernels.registry import Unit
from pygpukit.kernels.spec import KernelSpec

PACKAGED = Path(__file__).parent / "kernels.bundle"
_SCHEMA = b"bundle 3"


def file() -> Path:
    """Where the bundle is looked for: $PYGPUKIT_BUNDLE, else in the package."""
    named = os.environ.get("PYGPUKIT_BUNDLE")
    return Path(named) if named else PACKAGED


def write(path: Path, images: Iterable[tuple[str, Unit, Image]]) -> int:
    """Make a bundle of compiled units, given by architecture one after the other, without their PTX; how many."""
    groups = groupby(images, key=lambda item: item[0])
    return archive.write(path, ((arch, map(_sealed, items)) for arch, items in groups), zipfile.ZIP_LZMA)


def find(arch: str, spec: KernelSpec) -> Image | None:
    """The bundled image that holds a kernel, or None. Raises ValueError for a damaged bundle."""
    unit = next((unit for unit in registry.units(spec.source) if spec.expression in unit.expressions), None)
    if unit is None or not file().is_file():
        return None
    key = _key(arch, unit)
    payload = _group(file(), arch).get(key)
    return None if payload is None else from_bytes(payload, key, "disk", {})


def missing(path: Path, architectures: Iterable[str], units: Iterable[Unit]) -> list[str]:
    """The kernels that a bundle lacks, or has for other texts: "sm_80: ops/elementwise/elementwise.cu (40 kernels)"."""
    asked = list(units)
    return [
        f"{arch}: {unit}"
        for arch in architectures
        for unit in asked
        if unit.is_ahead(arch) and _key(arch, unit) not in _group(path, arch)
    ]


@cache
def _group(path: Path, arch: str) -> dict[bytes, bytes]:
    return dict(archive.read(path, arch))


def _sealed(item: tuple[str, Unit, Image]) -> bytes:
    arch, unit, image = item
    key, entries = _key(arch, unit), _core.KernelCache(None)
    entries.put(key, replace(image, ptx="").to_bytes())
    sealed = entries.sealed(key)
    assert sealed is not None, "an image is larger than the cache's memory"
    return sealed


def _key(arch: str, unit: Unit) -> bytes:
    spec = unit.spec
    lists = ["\0".join(items).encode() for items in (unit.expressions, spec.options)]
    sets = [one.identity for one in spec.headers]
    return _core.KernelCache.digest(
        [_SCHEMA, arch.encode(), unit.source.encode(), _digest(unit.source), *lists, spec.front_end.encode(), *sets]
    )


def _digest(source: str) -> bytes:
    """Of a source and the package's headers that it reaches, and of CUTLASS's version where they include its headers:
    those are not there when a kernel is looked for."""
    from pygpukit.jit.compile import headers

    texts = sources.texts(source)
    named = (name for text in texts.values() for name in headers.included(text))
    version = [cutlass.VERSION] if any(map(cutlass.is_header, named)) else []
    return _core.KernelCache.digest(
        [part.encode() for part in (*(part for item in sorted(texts.items()) for part in item), *version)]
    )
