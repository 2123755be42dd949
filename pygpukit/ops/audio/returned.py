"""Functions of samples give back what they were given: of an AudioBuffer another one, of an array an array."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def like(original: Any, array: GPUArray, **fields: Any) -> Any:
    """array, or the AudioBuffer that was given with array for its samples, and other fields."""
    if is_dataclass(original) and not isinstance(original, type) and hasattr(original, "sample_rate"):
        return replace(original, data=array, **fields)
    return array


def in_place(original: Any, result: GPUArray) -> Any:
    """The original, with the result written over its samples."""
    copying.copy_to(result, getattr(original, "data", original))
    return original
