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
    """What a block makes, places and channels of the result in steps of `depth` channels of the input, and its times.

    warps: of a block, as the compiler is told. step_us: of a step of a tile on every multiprocessor; wave_us: of what
    else a tile takes; fixed_us: of a launch.
    """

    places: int
    filters: int
    depth: int
    warps: int
    step_us: float
    wave_us: float = 0.0
    fixed_us: float = 0.0

    @property
    def kernel(self) -> tuple[int, int, int, int]:
        """What the kernel is compiled for."""
        return self.places, self.filters, self.depth, self.warps

    def blocks(self, places: int, filters: int) -> int:
        """That make so many places and channels."""
        return -(-places // self.places) * -(-filters // self.filters)

    def steps(self, taps: int, channels: int) -> int:
        """Of a block, for so many places of the kernel and channels of the input."""
        return taps * -(-channels // self.depth)

    def time_us(self, places: int, filters: int, taps: int, channels: int, parts: int, multiprocessors: int) -> float:
        """How long a convolution takes. places, filters, channels: of a group and a phase; parts: how many of those."""
        waves = -(-self.blocks(places, filters) * parts // multiprocessors)
        return self.fixed_us + waves * (self.wave_us + self.steps(taps, channels) * self.step_us)

    def __str__(self) -> str:
        return f"{self.places}x{self.filters}x{self.depth}"


# Without a table. Steps of the largest tile count as 1: how others compare is a guess, not measured yet.
_HALF = (Tile(128, 256, 64, 8, 1.0), Tile(128, 128, 64, 8, 5 / 8), Tile(128, 64, 64, 4, 5 / 12))
_TF32 = (Tile(128, 128, 32, 8, 1.0), Tile(128, 64, 32, 4, 2 / 3))
RULE = {bfloat16: _HALF, float16: _HALF, float32: _TF32}
# Those that a table may name, too: for few places and channels.
_SMALL_HALF, _SMALL_TF32 = Tile(64, 64, 64, 4, 0.0), Tile(64, 64, 32, 4, 0.0)
ALL = {bfloat16: (*_HALF, _SMALL_HALF), float16: (*_HALF, _SMALL_HALF), float32: (*_TF32, _SMALL_TF32)}


@plans.follows
def tiles(dtype: DataType) -> tuple[Tile, ...]:
    """Those that the device's table has times of, else those of the rule. Raises ValueError as plans.tiles()."""
    listed = plans.table(FAMILY).get(KINDS[dtype], ())
    return plans.tiles(Tile, listed, ALL[dtype], f"convolutions in {KINDS[dtype]}") or RULE[dtype]
