"""Which compiler the open backend has: NVRTC, or on the simulation a C++ compiler of the machine."""

from __future__ import annotations

from pygpukit.core.backend import backend
from pygpukit.jit.compile import simulator
from pygpukit.jit.compile.nvrtc import open_nvrtc


def nvrtc_status() -> str:
    """One sentence: which compiler will be used, or what to install."""
    try:
        if backend() == "sim":
            return simulator.compiler_identity()
        path, (major, minor) = open_nvrtc()
    except Exception as error:
        return str(error)
    return f"NVRTC {major}.{minor} ({path})"


def is_nvrtc_available() -> bool:
    """True when jit() can compile: NVRTC opens, or on the simulation a C++ compiler is there. Never raises."""
    try:
        if backend() == "sim":
            return bool(simulator.find_compiler())
        return bool(open_nvrtc())
    except Exception:
        return False
