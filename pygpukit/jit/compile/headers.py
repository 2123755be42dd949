"""Header sets: the package's own headers, as text in memory, and sets that lie in folders, digested once.

The package's are few: a kernel's key has the text of those that it reaches, so that one edit touches only the kernels
that read it. A set of hundreds stands in a key by one digest, which is worked out once for a version and then found in
the cache: no header is read for a kernel that is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pygpukit import _core
from pygpukit.core.cached import cached_property
from pygpukit.jit.cache.store import keep, kernel_cache
from pygpukit.jit.locate import kernel_folders

FOLDER = "kernels/include"  # of the package, and of what $PYGPUKIT_KERNELS names
_SUFFIXES = (".h", ".cuh", ".hpp")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True)
class HeaderSet:
    """Headers below a folder that kernels include, by name and version. Its files are those of the version for good: an
    edit without another version is not noticed."""

    name: str
    version: str
    folder: Path

    @cached_property
    def identity(self) -> bytes:
        """Words that tell this set from another in a cache key: name, version and a digest of every file. Reads the
        when this version is first used from this folder; later processes find the digest in the kernel cache."""
        place = [b"header set", self.name.encode(), self.version.encode(), str(self.folder.resolve()).encode()]
        key = _core.KernelCache.digest(place)
        entry = kernel_cache().get(key)
        if entry is not None:
            return entry[0]
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        contents = [part for path in files for part in (str(path.relative_to(self.folder)).encode(), path.read_bytes())]
        identity = f" {self.name} {self.version} {_core.KernelCache.digest(contents).hex()}".encode()
        keep(key, identity)
        return identity


def own() -> dict[str, Path]:
    """The package's headers, by the name that kernels include them by."""
    return _headers(tuple(kernel_folders()))


def text(path: Path) -> str:
    """The text of a kernel source or header; each is read once."""
    return _read(path)


def reached(names: Iterable[str]) -> dict[str, str]:
    """The package's headers among these, and those that they include: their text by name."""
    ours = own()
    texts: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in ours and name not in texts:
            texts[name] = text(ours[name])
            waiting += _included(texts[name])
    return texts


def included(source: str) -> list[str]:
    """Every name in an #include of a text that leaves none out by a condition, as the package's own do."""
    return _INCLUDE.findall(source)


@cache
def _included(source: str) -> list[str]:
    return included(source)


@cache
def _headers(folders: tuple[Path, ...]) -> dict[str, Path]:
    headers: dict[str, Path] = {}
    for folder in reversed([one / FOLDER for one in folders]):
        paths = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES)
        headers |= {path.relative_to(folder).as_posix(): path for path in paths}
    return headers


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
