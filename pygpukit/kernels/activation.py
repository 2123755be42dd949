"""Activations that kernels apply to their results: their numbers, as activation.cuh has them and nothing else."""

from __future__ import annotations

from pygpukit.kernels.structure import enumeration


def number(act: str | None) -> int:
    """Of an activation by its name, 0 for None. Raises KeyError for one that activation.cuh does not have."""
    return enumeration("activation.cuh", "Activation")[act or "none"]
