"""Int8: a weight of int8 with a scale a row, for products with rows that are rounded to int8, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.core.dtypes import float32
from pygpukit.models.convert import convert
from pygpukit.nn.linear.blocks import Blocks, Part

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray


@dataclass(frozen=True)
class Int8(Blocks):
    """One part of the kind "int8": codes (out, in). scales: float32 (out,); row_scale: what all rows that are
    multiplied with it are divided by before they are rounded; None where each has its own."""

    scales: GPUArray | None = None
    row_scale: float | None = None

    @classmethod
    def of(cls, codes: GPUArray, scales: GPUArray, dtype: Any, row_scale: float | None = None) -> Int8:
        """From int8 codes (out, in) and float32 scales (out,); dtype: of rows before they are rounded."""
        return cls((Part("int8", codes),), codes.shape[1], dtype, scales, row_scale)

    @property
    def codes(self) -> GPUArray:
        """The codes, (out, in)."""
        return self.parts[0].array

    @property
    def steps(self) -> GPUArray:
        """The scales."""
        assert self.scales is not None
        return self.scales

    @property
    def arrays(self) -> list[GPUArray]:
        """The memory of codes and scales."""
        return [self.codes, self.steps]

    @property
    def stored(self) -> list[GPUArray]:
        """The memory of codes and scales, which in_memory() replaces."""
        return self.arrays

    def in_memory(self, arrays: Sequence[GPUArray]) -> Int8:
        """The same weight, whose codes and scales lie in these arrays."""
        codes, scales = arrays
        return replace(self, parts=(replace(self.parts[0], array=codes),), scales=scales)

    def __getitem__(self, rows: slice) -> Int8:
        """Some neighbouring rows, of the same memory."""
        return Int8.of(self.codes[rows], self.steps[rows], self.dtype, self.row_scale)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The values."""
        values: np.ndarray[Any, Any] = self.codes.to_numpy().astype("float32") * self.steps.to_numpy()[:, None]
        return values

    def expanded(self) -> GPUArray:
        """The values as an array of their own, for what reads no codes."""
        return factory.from_numpy(convert(self.to_numpy(), float32, self.dtype))
