"""Activations that kernels apply to their results: their names and numbers, as activation.cuh has them."""

from __future__ import annotations

from pygpukit.kernels.structure import enumeration

GATED = "swiglu"  # joins two results, where the others take one


def number(act: str | None) -> int:
    """Of an activation by its name, 0 for None. Raises KeyError for one that activation.cuh does not have."""
    return _numbers()[act or "none"]


def names() -> tuple[str, ...]:
    """Activations of one result, in the header's order."""
    return tuple(name for name in _numbers() if name not in ("none", GATED))


def _numbers() -> dict[str, int]:
    return enumeration("activation.cuh", "Activation")
