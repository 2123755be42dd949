"""The folder with the headers that a program's host text includes."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from hashlib import blake2b
from pathlib import Path

from pygpukit._core import native
from pygpukit.jit.locate import cache_directory

PRELUDE = "pk_program.h"  # what every host text includes first
_PREFIX = "program/include/"
_SHARED = "sim/include/"


# Of the simulated device's: types and their arithmetic, which are the same on the host.
_SHARED_NAMES = (
    "pk_sim_runtime.h", "pk_sim_vectors.h", "pk_sim_half.h", "pk_sim_small_float.h", "cuda_fp16.h", "cuda_bf16.h",
    "cuda_fp8.h", "cuComplex.h", "math_constants.h",
)  # fmt: skip


@cache
def files() -> dict[str, str]:
    """The headers by name: the host's own, and those of the simulated device that serve it, too."""
    texts = native.sources()
    shared = {name: texts[_SHARED + name] for name in _SHARED_NAMES if _SHARED + name in texts}
    return shared | {name.removeprefix(_PREFIX): text for name, text in texts.items() if name.startswith(_PREFIX)}


@cache
def digest() -> str:
    """Of all headers: it names their folder, and is in the key of every program."""
    hasher = blake2b(digest_size=16)
    for name, text in sorted(files().items()):
        hasher.update(f"{name}\0{text}\0".encode())
    return hasher.hexdigest()


def folder() -> Path:
    """Where the headers lie, whole: `programs/headers` in the cache folder, by content."""
    target = cache_directory() / "programs" / "headers" / digest()
    if any(not _holds(target / name, text) for name, text in files().items()):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = Path(tempfile.mkdtemp(prefix="making-", dir=target.parent))
        for name, text in files().items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_text(text, encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        try:
            aside.rename(target)
        except OSError:  # another process was quicker
            shutil.rmtree(aside, ignore_errors=True)
    return target


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
