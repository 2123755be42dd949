"""Which kernel makes a convolution, and why: a choice that follows from types, channels and device alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.kernels import lost
from pygpukit.ops.nn.conv import few_channels, gathered, group_blocks, tile
from pygpukit.ops.nn.conv.tiles import Tile

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.nn.conv.settings import Settings

__all__ = ["ConvPlan"]

_LEAST = 16  # channels of a group, in and out, that are worth a tile
_MANY = 16  # in tf32, twice as many in half precision: those of several groups that are not
_COUNTABLE = 2**31 - 1  # elements of an array
_MOST = 65535  # a grid's second and third extent


@dataclass(frozen=True)
class ConvPlan:
    """How a convolution is computed.

    backend: "tile" (tensor cores), "few" (tensor cores, for groups of few channels), "plain" (CUDA cores) or "numpy"
    (the simulated device). It decides the result's bits. reason: why, in one sentence. tile: of a tile kernel, or
    block of the one that gathers or of the one for many small groups; it decides speed alone.
    """

    backend: str
    reason: str
    tile: Tile | gathered.Block | group_blocks.Block | None = None

    def __str__(self) -> str:
        return f"{self.backend}{f' {self.tile}' if self.tile else ''}: {self.reason}"


@by_device
def backend(
    dtype: DataType, tf32: bool, input: tuple[int, ...], weight: tuple[int, ...], settings: Settings
) -> tuple[str, str]:
    """(backend, reason). tf32: allowed. input: shape (B, C, rows, columns). weight: that of by_group()."""
    if is_sim():
        return "numpy", "the simulated device computes with NumPy"
    if dtype not in (bfloat16, float16) and not (dtype == float32 and tf32):
        return "plain", f"{dtype} is computed as it is, on CUDA cores"
    groups, filters, channels = weight[0], weight[1], weight[-1]
    kind = f"{dtype}{' rounded to tf32' if dtype == float32 else ''}"
    less = min(channels, filters) < _LEAST
    most = _MANY if dtype == float32 else 2 * _MANY  # a tile would be zeros for the most part
    several = groups > 1 and max(channels, filters) <= most and channels % 4 == filters % 4 == 0
    if (less or several) and few_channels.takes(dtype, input[0], weight, settings):
        return "few", f"{kind} on tensor cores, {channels} to {filters} channels of a group, summed in float32"
    if less:
        return "plain", f"{channels} to {filters} channels of a group: fewer than {_LEAST} waste tensor cores"
    if settings.act not in tile.ACTS:
        return "plain", f"{settings.act} is applied on CUDA cores"
    if settings.transposed and settings.dilation != (1, 1):
        return "plain", "a transposed convolution with dilation has no phases that are convolutions"
    out = input[0] * groups * filters * prod(settings.out)
    margins = tile.margins(settings, weight[2:-1], input[2:])
    padded = prod(input[:2]) * prod(sum(extents) for extents in zip(input[2:], *margins, strict=True))
    if 2 * max(padded, prod(weight), out) > _COUNTABLE:  # twice: channels are filled up
        return "plain", "an array has more elements than a tile kernel counts"
    if max(groups, tile.phases(settings)) > _MOST:
        return "plain", "there are more groups or phases than a grid takes"
    reason = f"{kind} on tensor cores, summed in float32"
    if missing := tile.missing():
        if gathered.takes(settings, dtype):
            return "tile", f"{reason}, by the kernel that gathers, with the same bits: {missing}"
        lost.tell("convolutions run without tensor cores, many times slower and with other bits", missing)
        return "plain", missing
    return "tile", reason
