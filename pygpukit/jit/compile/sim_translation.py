"""The code that turns CUDA C++ into what the host compiler reads, as a part of an image's key: sources with inline PTX,
textures or kernel tables are another text once it changes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pygpukit import _core

_JIT = Path(__file__).resolve().parents[1]
_PARTS = ("compile/sim*.py", "ptx/*.py", "source/*.py")


@cache
def digest() -> str:
    """Of the text of every module that takes part."""
    return of(_JIT)


def of(folder: Path) -> str:
    """The digest of a copy of this package's `jit` folder."""
    files = sorted(path for part in _PARTS for path in folder.glob(part))
    contents = [piece for path in files for piece in (path.relative_to(folder).as_posix().encode(), path.read_bytes())]
    return _core.KernelCache.digest(contents).hex()
