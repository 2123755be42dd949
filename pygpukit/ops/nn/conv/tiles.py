"""The tiles that the tile kernel of convolutions is compiled for, and which of them are chosen from.

All give an element the same bits, so that the choice decides speed alone: by what was measured on the device
(pygpukit/ops/plans), and else by a rule, whose times are guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.ops import plans

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DataType

FAMILY = "convolution"
# The parts of a table.
KINDS = {bfloat16: "half", float16: "half", float32: "tf32"}


@dataclass(frozen=True)
class Tile:
    """The part that a block makes, places and channels of the result in steps of `depth` channels, and its times.

    wide: places of a row of them.
    warps: of a block, as the compiler is told. step_us: of a step of a tile on every multiprocessor; wave_us: of what
    else a tile takes; fixed_us: of a launch.
    """

    places: int
    wide: int
    filters: int
    depth: int
    warps: int
    step_us: float
    wave_us: float = 0.0
    fixed_us: float = 0.0

    @property
    def kernel(self) -> tuple[int, int, int, int, int]:
        """The numbers that the kernel is compiled for."""
        return self.places, self.wide, self.filters, self.depth, self.warps

    def blocks(self, images: int, rows: int, columns: int, filters: int) -> int:
        """That make so many places and channels."""
        high = self.places // self.wide
        return images * -(-rows // high) * -(-columns // self.wide) * -(-filters // self.filters)

    def steps(self, taps: int, channels: int) -> int:
        """Of a block, for so many places of the kernel and channels of the input."""
        return taps * -(-channels // self.depth)

    def time_us(
        self,
        images: int,
        rows: int,
        columns: int,
        filters: int,
        taps: int,
        channels: int,
        parts: int,
        multiprocessors: int,
    ) -> float:
        """The time of a convolution. Places, filters, channels: of a group and a phase; parts: how many of those."""
        waves = -(-self.blocks(images, rows, columns, filters) * parts // multiprocessors)
        return self.fixed_us + waves * (self.wave_us + self.steps(taps, channels) * self.step_us)

    def __str__(self) -> str:
        return f"{self.places}x{self.filters}x{self.depth}, {self.wide} wide"


# Without a table. Microseconds of an H100.
def _tiles(depth: int, scale: float) -> tuple[Tile, ...]:
    shapes = ((128, 256, 8, 0.7), (128, 128, 8, 0.4), (128, 64, 4, 0.26), (64, 128, 4, 0.26), (64, 64, 4, 0.17))
    return tuple(
        Tile(places, wide, filters, depth, warps, scale * step, 2.0, 3.0)
        for places, filters, warps, step in shapes
        if scale == 1.0 or filters < 256
        for wide in (places, 8)
    )


_HALF, _TF32 = _tiles(64, 1.0), _tiles(32, 1.0001)
RULE = {bfloat16: _HALF, float16: _HALF, float32: _TF32}
ALL = RULE


@plans.follows
def tiles(dtype: DataType) -> tuple[Tile, ...]:
    """Those that the device's table has times of, else those of the rule. Raises ValueError as plans.tiles()."""
    listed = plans.table(FAMILY).get(KINDS[dtype], ())
    return plans.tiles(Tile, listed, ALL[dtype], f"convolutions in {KINDS[dtype]}") or RULE[dtype]
