"""CUDA's other libraries, looked for where toolchains are: cuSOLVER, cuBLASLt."""

from __future__ import annotations

import sys
from pathlib import Path

from pygpukit.jit.toolchain.places import known

if sys.platform == "win32":
    _SOLVERS: tuple[str, ...] = ("cusolver64_12.dll", "cusolver64_11.dll")
    _PRODUCTS: tuple[str, ...] = ("cublasLt64_13.dll", "cublasLt64_12.dll")
elif sys.platform == "darwin":  # NVIDIA ships nothing for macOS
    _SOLVERS, _PRODUCTS = (), ()
else:
    _SOLVERS = ("libcusolver.so.12", "libcusolver.so.11")
    _PRODUCTS = ("libcublasLt.so.13", "libcublasLt.so.12")


def cusolver_candidates() -> list[str]:
    """Library files of cuSOLVER, those of pip first; then plain names, for which the dynamic loader searches."""
    return _candidates("cusolver", _SOLVERS)


def cublaslt_candidates() -> list[str]:
    """cuBLASLt, looked for as cuSOLVER is."""
    return _candidates("cublas", _PRODUCTS)


def _candidates(wheel: str, names: tuple[str, ...]) -> list[str]:
    own = [Path(entry, "nvidia", wheel, "lib") for entry in dict.fromkeys(sys.path) if entry]  # of CUDA 12
    folders = [*own, *(folder for place in known() for folder in place.libraries)]
    files = (str(folder / name) for folder in folders for name in names if (folder / name).is_file())
    return list(dict.fromkeys((*files, *names)))
