"""The toolchains of this machine, best first: those that make tile kernels, the newest of them; then by version."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pygpukit.jit.toolchain import versions
from pygpukit.jit.toolchain.places import CHOSEN, SUFFIX, WATCHED, Place, known
from pygpukit.jit.toolchain.record import BUNDLED_HEADERS_SINCE, TILE_SINCE, Toolchain
from pygpukit.jit.toolchain.versions import Version

_MAJORS = (14, 13, 12)
if sys.platform == "win32":
    _NAMES: tuple[str, ...] = tuple(f"nvrtc64_{major}0_0.dll" for major in _MAJORS)
elif sys.platform == "darwin":  # NVIDIA ships nothing for macOS
    _NAMES = ()
else:
    _NAMES = tuple(f"libnvrtc.so.{major}" for major in _MAJORS)


def toolchains() -> tuple[Toolchain, ...]:
    """Every toolchain that lies in a known place, best first. Opens none."""
    return _toolchains(tuple(sys.path), tuple(os.environ.get(name, "") for name in WATCHED))


def nvrtc_candidates() -> list[str]:
    """Library files of NVRTC, best first; then plain names, for which the dynamic loader searches."""
    files = [str(one.nvrtc) for one in toolchains() if one.works]
    return files if os.environ.get(CHOSEN) else [*files, *_NAMES]


def disassembler(oldest: Version) -> Path | None:
    """The newest disassembler of this machine that is not older: it reads what older compilers made."""
    every = [(own or (0, 0), path) for path, own in _programs(known(), "nvdisasm")]
    newest = max(every, key=lambda one: one[0], default=None)
    return None if newest is None or newest[0] < oldest else newest[1]


@lru_cache(maxsize=8)
def _toolchains(_: tuple[str, ...], __: tuple[str, ...]) -> tuple[Toolchain, ...]:
    every = known()
    sets = [toolchain_of(place, nvrtc, every) for place in every for nvrtc in _libraries(place)]
    if chosen := os.environ.get(CHOSEN):
        sets = [one for one in sets if one.nvrtc.resolve().is_relative_to(Path(chosen).resolve())]
    order = sorted(sets, key=lambda one: (one.works, one.makes_tile_kernels, one.version), reverse=True)
    best: dict[Path, Toolchain] = {}
    for one in order:
        best.setdefault(one.nvrtc.resolve(), one)
    return tuple(best.values())


def toolchain_of(place: Place, nvrtc: Path, every: list[Place], version: Version | None = None) -> Toolchain:
    """The set of an NVRTC: parts of its version beside it, else elsewhere. version: where it is known."""
    lacks: dict[str, str] = {}
    own, builtins = _identified(place, nvrtc)
    version = version or own or (0, 0)
    if builtins is None:
        lacks["nvrtc"] = f"its builtins, libnvrtc-builtins of version {_text(version)}, do not lie beside {nvrtc}"
    order = [place, *(one for one in every if one is not place)]
    headers: tuple[Path, ...] = ()
    if version < BUNDLED_HEADERS_SINCE:
        headers = _headers(order, version, lacks)
    tileiras = _tileiras(order, version, lacks)
    return Toolchain(
        place.name,
        place.root,
        version,
        nvrtc,
        builtins,
        headers,
        tileiras,
        _of_version(order, "nvdisasm", version, lacks),
        lacks,
    )


def _libraries(place: Place) -> Iterator[Path]:
    for folder in place.libraries:
        for name in _NAMES:
            if (folder / name).is_file():
                yield folder / name


def _identified(place: Place, nvrtc: Path) -> tuple[Version | None, Path | None]:
    """The version of an NVRTC, and its builtins. Another one's may lie beside them."""
    major = next((n for n in _MAJORS if str(n) in nvrtc.name), 0)
    real = nvrtc.resolve()
    beside = {
        version: path
        for folder in dict.fromkeys((nvrtc.parent, real.parent))
        for path in sorted(folder.glob("*nvrtc-builtins*"))
        if (version := versions.of_builtins(path.name)) is not None and version[0] == major
    }
    version = versions.of_wheel("nvrtc", place.wheels)
    if version is None or version[0] != major:
        named = versions.of_builtins(real.name)  # libnvrtc.so.13.0.88
        version = named or (max(beside) if beside else None)
    return version, beside.get(version) if version is not None else None


def _headers(order: list[Place], version: Version, lacks: dict[str, str]) -> tuple[Path, ...]:
    """CUDA's headers of a version, and the C++ core libraries beside them, which cuda_fp16.h reads. Wheels and toolkits
    bring more or less of them: the first place that has the most."""
    others, sets = [], []
    for place in order:
        for folder in place.headers:
            if not (folder / "cuda_fp16.h").is_file():
                continue
            if (own := versions.of_headers(folder)) != version:
                others.append(f"{folder} has those of {_text(own)}")
                continue
            libraries = [one / part for one in (folder, *place.headers) for part in ("", "cccl")]
            core = max(libraries, key=_core_parts)
            sets.append((_core_parts(core), (folder / "crt" / "mma.h").is_file(), folder, core))
    if not sets:
        lacks["headers"] = "; ".join((f"no CUDA headers of version {_text(version)} were found", *others))
        return ()
    parts, _, folder, core = max(sets, key=lambda one: one[:2])
    return tuple(dict.fromkeys((folder, *((core,) if parts else ()))))


def _core_parts(folder: Path) -> int:
    """The share of the C++ core libraries that a folder has: none, what the compiler's own headers read, or all."""
    if not (folder / "nv" / "target").is_file():
        return 0
    return 2 if (folder / "cuda" / "std" / "type_traits").is_file() else 1


def _tileiras(order: list[Place], version: Version, lacks: dict[str, str]) -> Path | None:
    if version < TILE_SINCE:
        lacks["tileiras"] = f"NVRTC {_text(TILE_SINCE)} or newer is needed, and this one is {_text(version)}"
        return None
    program = _of_version(order, "tileiras", version, lacks)
    if program is None:
        return None
    root = program.parent.parent
    ptxas = next((own for path, own in _programs([one for one in order if one.root == root], "ptxas")), None)
    helpers = {"ptxas": program.with_name(f"ptxas{SUFFIX}").is_file(), "libnvvm": _has_nvvm(root)}
    if missing := [name for name, there in helpers.items() if not there]:
        lacks["tileiras"] = f"{program} needs {' and '.join(missing)}, which {root} lacks"
    elif ptxas is not None and ptxas != version:
        lacks["tileiras"] = f"{program} is of {_text(version)}, the ptxas beside it of {_text(ptxas)}"
    return None if "tileiras" in lacks else program


def _has_nvvm(root: Path) -> bool:
    folders = ("lib", "lib64", "nvvm/lib64", "nvvm/lib", "bin", "bin/x64", "nvvm/bin", "nvvm/bin/x64")
    return any(any((root / folder).glob(pattern)) for folder in folders for pattern in ("libnvvm.so*", "nvvm64_*.dll"))


def _of_version(order: list[Place], name: str, version: Version, lacks: dict[str, str]) -> Path | None:
    others = []
    for path, own in _programs(order, name):
        if own == version:
            return path
        others.append(f"{path} is of {_text(own)}")
    lacks[name] = "; ".join((f"no {name} of version {_text(version)} was found", *others))
    return None


def _programs(order: list[Place], name: str) -> Iterator[tuple[Path, Version | None]]:
    for place in order:
        for folder in place.programs:
            path = folder / f"{name}{SUFFIX}"
            if os.access(path, os.X_OK) and path.is_file():
                yield path, versions.of_program(path, place.wheels)


def _text(version: Version | None) -> str:
    return "an unknown version" if not version or version == (0, 0) else "{}.{}".format(*version)
