"""Problem: what the plan of a convolution follows from, and nothing else; Call: the arrays that one is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from pygpukit.core import device
from pygpukit.core.cached import cached_property
from pygpukit.core.device import Facts
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, Operand

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.nn.conv.settings import Settings

MIN_CHANNELS = 16  # of a group, in and out, that are worth a tile


class Call(NamedTuple):
    """The arrays of a convolution. name: of the function, as launches are recorded. input, out: (B, C, rows, columns).
    weight: as users give it, with rows. bias: dense. storage: that of out."""

    name: str
    input: GPUArray
    weight: GPUArray
    bias: GPUArray | None
    out: GPUArray
    storage: GPUArray


@dataclass(frozen=True)
class Problem:
    """A convolution or a transposed one.

    dtype: of all arrays. tf32: float32 may be rounded to it. image: (B, C, rows, columns). weight: the shape (groups,
    filters of a group, kernel rows, kernel columns, channels of a group). last: the result's channels are dense.
    """

    dtype: DataType
    tf32: bool
    image: Operand
    weight: tuple[int, ...]
    settings: Settings
    last: bool
    device: Facts = field(default_factory=lambda: device.current())

    @classmethod
    def of(cls, input: GPUArray, weight: GPUArray, settings: Settings, last: bool, tf32: bool) -> Problem:
        """The problem of an input and a weight, both with rows."""
        first, second, *kernel = weight.shape
        of_group = first // settings.groups
        filters, channels = (second, of_group) if settings.transposed else (of_group, second)
        shape = (settings.groups, filters, *kernel, channels)
        return cls(input.dtype, tf32, Operand.of(input), shape, settings, last)

    @cached_property
    def out(self) -> tuple[int, ...]:
        """The shape of the result: (B, C, rows, columns)."""
        return (self.image.shape[0], self.weight[0] * self.weight[1], *self.settings.out)

    @cached_property
    def lines(self) -> bool:
        """The result's channels are whole 16 bytes of dense places each."""
        return not self.last and prod(self.settings.out) * self.dtype.itemsize % ALIGNMENT == 0

    @cached_property
    def narrow_groups(self) -> bool:
        """A group has fewer channels, in or out, than are worth a tile."""
        return min(self.weight[1], self.weight[-1]) < MIN_CHANNELS

    @cached_property
    def uncounted(self) -> str:
        """Why tensor cores do not make the result whatever kernels there are, "" where they may."""
        if self.dtype in (bfloat16, float16) or (self.dtype == float32 and self.tf32):
            return ""
        return f"{self.dtype} is computed as it is, on CUDA cores"

    @cached_property
    def on_tensor_cores(self) -> str:
        """The text that a plan's reason begins with where tensor cores make the result."""
        return f"{self.dtype}{' rounded to tf32' if self.dtype == float32 else ''} on tensor cores"
