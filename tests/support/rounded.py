"""Random arrays of every float type beside the exact values that they hold, and how far results may be off."""

from __future__ import annotations

from typing import Any

import numpy as np

import pygpukit as gp

_rng = np.random.default_rng()

# Half a unit in the last place of the result's type, and room for the sums in float32.
TOLERANCE = {"float16": 6e-4, "bfloat16": 4.5e-3, "float32": 3e-6, "float64": 1e-13}


def normal(dtype: str, *shape: int) -> tuple[gp.GPUArray, np.ndarray[Any, Any]]:
    """Fresh normal numbers: on the device in dtype, and their values in float64."""
    values = _rng.standard_normal(shape)
    array = gp.from_numpy(values).astype(dtype)
    return array, to_float64(array)


def to_float64(array: gp.GPUArray) -> np.ndarray[Any, Any]:
    """The values of an array, exactly."""
    return array.astype("float64").to_numpy()


def agree(found: gp.GPUArray, expected: np.ndarray[Any, Any], scale: float = 1.0) -> None:
    """found equals the float64 result within its type's tolerance, times scale and the results' size."""
    assert found.shape == expected.shape
    tolerance = TOLERANCE[found.dtype.name] * scale
    size = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(to_float64(found), expected, rtol=tolerance, atol=tolerance * max(float(size), 1e-30))
