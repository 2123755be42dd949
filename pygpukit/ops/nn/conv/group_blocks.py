"""Blocks of the kernel for many small groups: chosen by the times of an H200. It decides speed alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd, lcm
from operator import mul

from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.ops.matmul.layout.operand import ALIGNMENT
from pygpukit.ops.nn.conv.settings import Settings

WARPS, PLACES, QUAD = 4, 32, 4  # small_groups.cu: kWarps, kPlaces; quads.cuh: kQuad
TILES = (1, 2, 4)  # of 8 filters
_LINE = 64  # bytes of channels that a block reads at a place: of more there are fewer blocks at a time
_MAX_PLACES, _SHARES, _ROUNDS = 512, (1, 2, 4), (1, 2, 4)  # that are chosen from
_SHARED = 98304  # bytes of shared memory, at most: every device has them
_HELD = 227 * 1024  # bytes of a multiprocessor
_AT_ONCE = 3  # blocks that keep a multiprocessor busy
# Microseconds of what Work.passed() counts.
_HALF_US = (0.0086, 0.0638, 0.0, 0.152, 0.145, 0.533, 2.06, 5.0)
_TF32_US = (0.0212, 0.0723, 0.0117, 0.173, 0.112, 1.63, 1.08, 6.5)


@dataclass(frozen=True)
class Block:
    """The part that a block makes: `own` groups, of which so many warps share a place's, in tiles of rows and columns,
    `rounds` tiles in turn."""

    own: int
    shares: int
    rows: int
    columns: int
    rounds: int = 1

    def __str__(self) -> str:
        return f"{self.own} groups of {self.rows}x{self.columns}"


@dataclass(frozen=True)
class Work:
    """A convolution, as far as it decides what a block makes. The shape of the weight: (groups, filters, kernel rows,
    columns, channels)."""

    itemsize: int
    images: int
    weight: tuple[int, ...]
    settings: Settings

    @property
    def steps(self) -> int:
        _, _, rows, columns, channels = self.weight
        return -(-rows * columns * channels // QUAD // 4)

    @property
    def tiles(self) -> int:
        """Eights of filters that a warp makes at a time."""
        return max(n for n in TILES if n == 1 or 4 * n < self.weight[1])

    @property
    def parts(self) -> int:
        return -(-self.weight[1] // (8 * self.tiles))

    def seen(self, block: Block) -> tuple[int, int]:
        """Rows and columns of the image that a tile sees."""
        one = self.settings
        rows, columns = (
            (extent - 1) * stride + (taps - 1) * apart + 1
            for extent, stride, taps, apart in zip(
                (block.rows, block.columns), one.stride, self.weight[2:4], one.dilation, strict=True
            )
        )
        return rows, columns

    def per(self, block: Block) -> int:
        """Groups of a warp."""
        return -(-block.own // block.shares // self.whole) * self.whole

    def fold(self, block: Block) -> int:
        return -(-self.seen(block)[1] // self.settings.stride[1])

    def pitches(self, block: Block) -> tuple[int, int]:
        """Bytes from one place to the next, of the image and of results: neighbours lie in other banks."""
        _, filters, _, _, channels = self.weight
        apart = max(ALIGNMENT, gcd(min(channels, 16), 16) * self.itemsize)
        image = -(-block.own * channels * self.itemsize // apart)
        return (image + (image % 2 == 0)) * apart, self.per(block) * filters * self.itemsize + ALIGNMENT

    def shared_bytes(self, block: Block) -> int:
        image, result = self.pitches(block)
        filters = block.own * self.parts * self.steps * self.tiles * 32 * QUAD * self.itemsize
        places = self.seen(block)[0] * self.fold(block) * self.settings.stride[1]
        return ALIGNMENT + 16 * self.steps + filters + WARPS * PLACES * result + places * image

    def turns(self, block: Block) -> int:
        rows, columns = self.settings.out
        return self.images * -(-rows // block.rows) * -(-columns // block.columns)

    def blocks(self, block: Block) -> int:
        return -(-self.turns(block) // block.rounds) * -(-self.weight[0] // block.own)

    def passed(self, block: Block) -> tuple[float, ...]:
        """On a multiprocessor: quads of weights in 32s, pieces copied in 128s, steps of 32 places, results of those and
        of 8 filters, visits of places, each slower where fewer than _AT_ONCE blocks run at a time; tiles and blocks one
        after the other; 1."""
        rows, columns = self.seen(block)
        pieces = block.own * self.weight[-1] * self.itemsize // ALIGNMENT
        blocks = -(-self.blocks(block) // device.current().sm_count)
        held = max(1, min(16, _HELD // (self.shared_bytes(block) + 1024)))
        turns, late, slower = blocks * block.rounds, -(-blocks // held), max(1.0, _AT_ONCE / min(held, blocks))
        visits = -(-block.rows * block.columns // (PLACES * WARPS // block.shares)) * turns
        units = visits * self.per(block) * self.parts
        return (
            slower * blocks * block.own * self.parts * self.tiles * self.steps,
            slower * turns * rows * columns * pieces / 128,
            slower * units * self.steps,
            slower * units * self.tiles,
            slower * visits,
            late * block.rounds,
            late,
            1,
        )

    def time_us(self, block: Block) -> float:
        """About how long it takes."""
        return sum(map(mul, self.passed(block), _HALF_US if self.itemsize == 2 else _TF32_US))

    @property
    def whole(self) -> int:
        """Groups whose channels are whole 16 bytes, in and out."""
        _, filters, _, _, channels = self.weight
        return lcm(*(ALIGNMENT // gcd(ALIGNMENT, count * self.itemsize) for count in (channels, filters)))

    def candidates(self) -> Iterator[Block]:
        """Blocks that fit, of the groups that a line of memory holds."""
        groups, filters, _, _, channels = self.weight
        own = max(_LINE // (max(channels, filters) * self.itemsize) // self.whole, 1) * self.whole
        own = groups if groups < 2 * own else own
        for high, wide in product(*map(_parts, self.settings.out)):
            if high * wide > _MAX_PLACES:
                continue
            for shares, rounds in product(_SHARES, _ROUNDS):
                block = Block(own, shares, high, wide, rounds)
                if (shares - 1) * self.per(block) < own and self.shared_bytes(block) <= _SHARED:
                    yield block


def _parts(extent: int) -> set[int]:
    """Extents of tiles that cut it into equal parts."""
    counts = {*range(1, 9), *(-(-extent // places) for places in (32, 64, 128, 256, _MAX_PLACES))}
    return {-(-extent // count) for count in counts}


@by_device
def chosen(work: Work) -> Block | None:
    """The block whose time is least; None where none fits."""
    return min(work.candidates(), key=work.time_us, default=None)
