"""Where parts of CUDA toolkits may lie: wheels, toolkits that variables name, those on PATH, the loader's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_VARIABLES = ("CUDA_PATH", "CUDA_HOME", "CUDA_ROOT")
CHOSEN = "PYGPUKIT_TOOLKIT"  # names the one toolkit whose NVRTC is used
# What a process finds depends on these, and on sys.path.
WATCHED = (CHOSEN, *_VARIABLES, "PATH", "LD_LIBRARY_PATH")
_PROGRAMS = ("nvcc", "tileiras", "ptxas")
_LOCAL = "/usr/local"
if sys.platform == "win32":
    SUFFIX = ".exe"
    _LIBRARIES: tuple[str, ...] = ("bin/x64", "bin/x86_64", "bin")
else:
    SUFFIX = ""
    _LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib/x86_64-linux-gnu")
_HEADERS = ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include")


class Place(NamedTuple):
    """One folder of parts. name: how it was found. root: what CUDA_HOME would name. folders: that parts lie in."""

    name: str
    root: Path
    libraries: tuple[Path, ...]
    programs: tuple[Path, ...]
    headers: tuple[Path, ...]
    wheels: Path | None = None  # the folder that wheels are installed in


def known() -> list[Place]:
    """Every place that there is, those of pip first; each once."""
    places: dict[Path, Place] = {}
    for place in (*_wheels(), *_toolkits()):
        places.setdefault(place.root.resolve(), place)
    return list(places.values())


def toolkit(name: str, root: Path) -> Place:
    """The place that a toolkit's folder is."""
    libraries, headers = (tuple(root / part for part in every) for every in (_LIBRARIES, _HEADERS))
    return Place(name, root, libraries, (root / "bin",), headers)


def of_library(path: Path) -> Place:
    """The place that a library belongs to which was found by other means."""
    return toolkit("the loader", _root_of(path.resolve().parent))


def _wheels() -> Iterator[Place]:
    for entry in dict.fromkeys(sys.path):
        nvidia = Path(entry, "nvidia")
        if not entry or not nvidia.is_dir():
            continue
        for root in sorted(nvidia.glob("cu[0-9]*"), reverse=True):
            yield toolkit(f"pip, {entry}", root)._replace(wheels=Path(entry))
        if (root := nvidia / "cuda_nvrtc").is_dir():  # CUDA 12: a folder for each wheel
            headers = tuple(nvidia / name / "include" for name in ("cuda_runtime", "cuda_cccl", "cuda_nvcc"))
            libraries = tuple(nvidia / name / part for name in ("cuda_nvrtc", "cuda_nvcc/nvvm") for part in _LIBRARIES)
            programs = tuple(nvidia / name / "bin" for name in ("cuda_nvcc", "cuda_nvdisasm"))
            yield Place(f"pip, {entry}", root, libraries, programs, headers, Path(entry))


def _toolkits() -> Iterator[Place]:
    for variable in (CHOSEN, *_VARIABLES):
        if named := os.environ.get(variable):
            yield toolkit(variable, Path(named))
    for entry in _folders("PATH"):
        if any((entry / f"{program}{SUFFIX}").is_file() for program in _PROGRAMS):
            real = next(entry / f"{one}{SUFFIX}" for one in _PROGRAMS if (entry / f"{one}{SUFFIX}").is_file())
            yield toolkit("PATH", real.resolve().parent.parent)
    if os.name == "posix":
        for root in (Path(_LOCAL, "cuda"), *sorted(Path(_LOCAL).glob("cuda-*"), reverse=True)):
            if root.is_dir():
                yield toolkit(str(root), root)
        for entry in _folders("LD_LIBRARY_PATH"):
            if any(entry.glob("libnvrtc.so*")):
                yield toolkit("LD_LIBRARY_PATH", _root_of(entry))


def _folders(variable: str) -> Iterator[Path]:
    for entry in dict.fromkeys(os.environ.get(variable, "").split(os.pathsep)):
        if entry and Path(entry).is_dir():
            yield Path(entry)


def _root_of(libraries: Path) -> Path:
    """Of a folder of libraries: /x of /x/lib64 and of /x/targets/x86_64-linux/lib."""
    for part in _LIBRARIES:
        if libraries.match(f"*/{part}"):
            return libraries.parents[len(Path(part).parts) - 1]
    return libraries
