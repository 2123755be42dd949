"""The folder that the headers lie in, and if they are there. Reads nothing but the folder's own entry."""

from __future__ import annotations

from pathlib import Path

from pygpukit.jit.locate import models_directory

VERSION = "4.2.0.0"
COMMAND = "pygpukit get cutlass"
_FAMILIES = ("cute/", "cutlass/")


def folder() -> Path:
    """The folder of this version: `include`, and the licence beside it."""
    return models_directory() / "cutlass" / VERSION


def include() -> Path | None:
    """The folder to include from; None where the headers have not been fetched."""
    path = folder() / "include"
    return path if path.is_dir() else None


def is_header(name: str) -> bool:
    """True where an #include names one of these headers: <cute/...>, <cutlass/...>."""
    return name.startswith(_FAMILIES)


def missing() -> str:
    """The sentence that says how to fetch the headers; "" where they are here."""
    return "" if include() else f"the headers of CUTLASS and CuTe are not on this machine; fetch them with: {COMMAND}"
