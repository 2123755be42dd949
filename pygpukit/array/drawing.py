"""Figures: matplotlib draws what is on the host, so whoever draws an array asks for a copy there, and gets it."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import STORAGE_ONLY, bfloat16

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray


def is_drawing() -> bool:
    """True where matplotlib is what asks NumPy for an array, directly or through functions of NumPy's."""
    frame: FrameType | None = sys._getframe(2)  # who called __array__
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != "numpy":
            return package in ("matplotlib", "mpl_toolkits")
        frame = frame.f_back
    return False


def values(array: GPUArray, dtype: Any) -> np.ndarray[Any, Any]:
    """The array's values on the host, those of types that NumPy lacks as float32."""
    if array.dtype == bfloat16 or array.dtype in STORAGE_ONLY:
        array = array.astype("float32")
    host = array.to_numpy()
    return host if dtype is None else host.astype(dtype)
