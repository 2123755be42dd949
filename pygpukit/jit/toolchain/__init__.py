"""CUDA toolchains: the sets of this machine, and the one that is used. Parts of two versions never meet."""

from __future__ import annotations

from pathlib import Path

from pygpukit.jit.toolchain import find
from pygpukit.jit.toolchain.environment import environment
from pygpukit.jit.toolchain.find import nvrtc_candidates, toolchains
from pygpukit.jit.toolchain.places import known, of_library
from pygpukit.jit.toolchain.record import BUNDLED_HEADERS_SINCE, TILE_SINCE, Toolchain

__all__ = [
    "BUNDLED_HEADERS_SINCE",
    "TILE_SINCE",
    "Toolchain",
    "environment",
    "nvdisasm",
    "nvrtc_candidates",
    "taken",
    "tileiras",
    "toolchains",
]

_opened: Toolchain | None = None


def taken() -> Toolchain | None:
    """The set that is used: of the NVRTC that is open, else of the one that would be opened. None where only the
    loader may find one.
    """
    return _opened or next((one for one in toolchains() if one.works), None)


def opened(path: str, version: tuple[int, int]) -> Toolchain:
    """Note that this NVRTC was opened: the set is its own from now on."""
    global _opened
    real = Path(path).resolve()
    listed = next((one for one in toolchains() if one.nvrtc.resolve() == real and one.version == version), None)
    _opened = listed or find.toolchain_of(of_library(real), Path(path), known(), version)
    return _opened


def tileiras() -> Path | None:
    """The assembler of tile kernels of the set that is used."""
    used = taken()
    return None if used is None else used.tileiras


def nvdisasm() -> Path | None:
    """The disassembler: of the set that is used, else the newest of the machine that is not older, which reads what
    others made; None where there is none."""
    used = taken()
    if used is not None and used.nvdisasm is not None:
        return used.nvdisasm
    return find.disassembler((0, 0) if used is None else used.version)
