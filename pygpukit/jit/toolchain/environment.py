"""The environment of a toolchain's programs: their own set comes first, and parts of others cannot reach in."""

from __future__ import annotations

import os
from pathlib import Path

from pygpukit.jit.toolchain.places import toolkit

_ROOTS = (
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
)  # what tileiras asks before it looks beside itself
_HELPERS = ("ptxas", "nvlink", "libnvvm.so*", "libnvJitLink.so*", "libnvrtc.so*", "nvvm64_*.dll", "nvJitLink_*.dll")


def environment(program: Path) -> dict[str, str]:
    """The environment that a program is started with."""
    own = toolkit("", program.parent.parent)
    variables = {**os.environ, **dict.fromkeys(_ROOTS, str(own.root))}
    variables["PATH"] = _first((program.parent,), "PATH")
    if os.name == "posix":
        variables["LD_LIBRARY_PATH"] = _first((*own.libraries, own.root / "nvvm" / "lib64"), "LD_LIBRARY_PATH")
    return variables


def _first(own: tuple[Path, ...], variable: str) -> str:
    """Own folders that there are, and those of the variable that hold no part of another toolkit."""
    kept = [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry and not _has_parts(Path(entry))]
    return os.pathsep.join((*(str(folder) for folder in own if folder.is_dir()), *kept))


def _has_parts(folder: Path) -> bool:
    return any(any(folder.glob(name)) for name in _HELPERS)
