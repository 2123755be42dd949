"""Where the headers lie, and whether they are there. Reads nothing but the folder's own entry."""

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
    found = folder() / "include"
    return found if found.is_dir() else None


def is_header(name: str) -> bool:
    """Whether an #include names one of these headers: <cute/...>, <cutlass/...>."""
    return name.startswith(_FAMILIES)


def missing() -> str:
    """What to say where the headers have not been fetched; "" where they have."""
    return "" if include() else f"the headers of CUTLASS and CuTe are not on this machine; fetch them with: {COMMAND}"
