"""AxisError. It is NumPy's, too, so that this module is loaded when the error is asked for or raised."""

from __future__ import annotations

from typing import Any

import numpy as np

from pygpukit.core.errors import ShapeError

_NumPys: Any = getattr(np, "exceptions", np).AxisError  # NumPy before 1.25 has it at the top


class AxisError(ShapeError, _NumPys):  # type: ignore[misc]  # which of its two homes, only NumPy knows
    """An axis is out of range. A ShapeError, an IndexError and NumPy's AxisError. Fields: axis, ndim."""

    def __init__(self, message: str, axis: int | None = None, ndim: int | None = None) -> None:
        Exception.__init__(self, message)
        self._msg, self.axis, self.ndim = message, axis, ndim

    def __str__(self) -> str:
        return str(self._msg)
