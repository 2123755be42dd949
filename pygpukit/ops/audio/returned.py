"""Functions of samples give back what they were given: of an AudioBuffer another one, of an array an array."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def like(given: Any, array: GPUArray, **fields: Any) -> Any:
    """array, or the AudioBuffer that was given with array for its samples, and other fields."""
    if is_dataclass(given) and not isinstance(given, type) and hasattr(given, "sample_rate"):
        return replace(given, data=array, **fields)
    return array


def in_place(given: Any, result: GPUArray) -> Any:
    """What was given, with the result written over its samples."""
    copying.copy_to(result, getattr(given, "data", given))
    return given
