"""A backend: the operations that are replaced together, by one name."""

from __future__ import annotations

import pygpukit as gp
from pygpukit_example.norm import RMSNORM


def softmax(x: gp.GPUArray, axis: int = -1, *, out: gp.GPUArray | None = None) -> gp.GPUArray:
    """The built-in softmax: a plugin calls it by its usual name, also while it stands in for it."""
    return gp.softmax(x, axis, out=out)


def available() -> str:
    """The reason why it cannot be used on the current device; "" where it can."""
    return "" if gp.device_count() else "there is no device"


BACKEND = gp.plugins.Backend((RMSNORM, gp.plugins.Operation("softmax", softmax, "exact")), available)
