"""Convolution on the tensor cores of SM 9.0 by a kernel that gathers what it multiplies: which ones, and the launch.

Its bits are those of the tile kernel, so that it is taken for its speed: it copies no image for its padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from operator import mul
from typing import TYPE_CHECKING, Any

from pygpukit.core import device
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import plans
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.conv import tile
from pygpukit.ops.nn.conv.layout import in_dense_channels
from pygpukit.ops.nn.conv.problem import Call, Problem
from pygpukit.ops.nn.conv.rounded import rounded
from pygpukit.ops.nn.conv.settings import Settings, geometry
from pygpukit.ops.nn.conv.tiles import FAMILY

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = KernelSpec(__file__, "gathered.cu", ahead=("sm_90a",), instead=True)
KINDS = {bfloat16: "gathered half", float16: "gathered half", float32: "gathered tf32"}  # the parts of a table
_CALL = SOURCE.structure("Gathered")
_THREADS = 256
_PLACES, _LINE, _START = 128, 128, 1024  # gathered.cu: kPlaces; hopper.cuh: kLine, kTileStart
BACKEND = tile.BACKEND
_SM = 90
_ACTS = (None, "relu")  # that the kernel applies


@dataclass(frozen=True)
class Block:
    """The part that a block makes, 128 places and `filters` channels of the result, and its times.

    steps: of 128 bytes of channels, that its shared memory holds; blocks: of a multiprocessor, at a time. Microseconds:
    step_us of a step of each block that a multiprocessor makes, turn_us of a step of all that it has at a time, wave_us
    of what else a block takes, fixed_us of a launch.
    """

    filters: int
    steps: int
    blocks: int
    step_us: float
    turn_us: float = 0.0
    wave_us: float = 0.0
    fixed_us: float = 0.0

    @property
    def kernel(self) -> tuple[int, int, int]:
        """The numbers that the kernel is compiled for."""
        return self.filters, self.steps, self.blocks

    @property
    def shared_bytes(self) -> int:
        return self.steps * (_PLACES + self.filters) * _LINE + _START

    def count(self, positions: int, weight: tuple[int, ...]) -> int:
        """Blocks that make so many places. weight: the shape that by_group() gives."""
        return -(-positions // _PLACES) * -(-weight[1] // self.filters) * weight[0]

    def work(
        self, positions: int, weight: tuple[int, ...], itemsize: int, multiprocessors: int
    ) -> tuple[float, float, float, float]:
        """The numbers of times that step_us, turn_us, wave_us and fixed_us pass."""
        count = self.count(positions, weight)
        each, turns = -(-count // multiprocessors), -(-count // (multiprocessors * self.blocks))
        steps = prod(weight[2:-1]) * -(-weight[-1] * itemsize // _LINE)
        return each * steps, turns * steps, each, 1

    def time_us(self, *work: Any) -> float:
        """The time of a convolution; arguments of work()."""
        passed = self.work(*work)
        return sum(map(mul, passed, (self.step_us, self.turn_us, self.wave_us, self.fixed_us)))

    def __str__(self) -> str:
        return f"{_PLACES}x{self.filters}, gathered {self.steps} steps ahead"


# Without a table: the times of an H100, in tf32 of an H200.
_HALF = (
    Block(64, 3, 3, 0.177, 0.195, 1.05, 4.9),
    Block(64, 6, 1, 0.307, 0.000, 2.01, 4.0),
    Block(128, 3, 2, 0.286, 0.155, 1.98, 5.0),
    Block(128, 6, 1, 0.400, 0.000, 3.11, 3.8),
)
_TF32 = (
    Block(64, 3, 3, 0.108, 0.758, 1.45, 1.4),
    Block(64, 6, 1, 0.401, 0.000, 2.46, 4.6),
    Block(128, 3, 2, 0.054, 0.786, 2.17, 5.7),
    Block(128, 6, 1, 0.528, 0.000, 3.74, 4.7),
)
RULE = {bfloat16: _HALF, float16: _HALF, float32: _TF32}


def refusal(p: Problem) -> str:
    """Why the kernels do not make the result with dense channels, "" where they do."""
    if p.device.capability != _SM:
        return "the kernel that gathers is for SM 9.0"
    if why := tile.unsupported(p):
        return why
    if p.settings.act not in _ACTS or p.settings.transposed:
        return "the kernel that gathers makes no transposed convolution, and no activation but relu"
    if tile.order(p)[0] != "kLast":
        return "the result's places are dense, which the tile kernel writes"
    if not blocks(p.dtype):
        return "the device's table lists no block of the kernel that gathers"
    return builder.missing(SOURCE.of(_expression(p.dtype, RULE[p.dtype][0])))


def reason(p: Problem) -> str:
    """Of a plan."""
    missing = tile.missing()
    return tile.reason(p) + (f", by the kernel that gathers, with the same bits: {missing}" if missing else "")


def tiling(p: Problem) -> Block:
    """The block that is fastest."""
    return fastest(p.dtype, p.image.shape[0] * prod(p.settings.out), p.weight)


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    in_dense_channels(call, p.settings.groups, partial(convolve, settings=p.settings, one=tiling(p)))


@plans.follows
def blocks(dtype: DataType) -> tuple[Block, ...]:
    """Those that the device's table has times of, none if it lists none, else those of the rule. Raises ValueError as
    plans.tiles()."""
    listed = plans.table(FAMILY).get(KINDS[dtype])
    if listed is None:
        return RULE[dtype]
    return plans.tiles(Block, listed, RULE[dtype], f"convolutions, {KINDS[dtype]}")


def fastest(dtype: DataType, positions: int, weight: tuple[int, ...]) -> Block:
    """The one whose time is shortest; of equals the first. weight: the shape that by_group() gives."""
    work = positions, weight, dtype.itemsize, device.current().sm_count
    return min(blocks(dtype), key=lambda one: one.time_us(*work))


def convolve(
    x: GPUArray, w: GPUArray, bias: GPUArray | None, out: GPUArray, storage: GPUArray, settings: Settings, one: Block
) -> None:
    """Fill out, a view of `storage` as (B, C, rows, columns) whose channels and places are dense. x: its channels
    are dense. w: (groups, filters, kernel rows, kernel columns, channels), dense. Channels of a group, and all steps,
    are whole 16 bytes. bias: dense."""
    groups, filters, *kernel, channels = w.shape
    image, where = geometry(x, kernel, out, settings)
    positions = out.shape[0] * settings.out[0] * settings.out[1]
    call = _CALL.pack(
        **where,
        out_place=out.shape[1],
        positions=positions,
        in_channels=channels,
        out_channels=filters,
        in_group=x.shape[1] // groups,
        out_group=out.shape[1] // groups,
        parts=-(-filters // one.filters),
        has_bias=bias is not None,
        relu=settings.act == "relu",
    )
    in_tf32 = out.dtype == float32
    w = rounded(w) if in_tf32 else w
    launch(
        SOURCE.of(_expression(out.dtype, one), shared_bytes=one.shared_bytes, overlapping=in_tf32),
        (one.count(positions, w.shape) // groups, groups, 1),
        (_THREADS, 1, 1),
        *(image, w, w if bias is None else bias, storage, call),
    )


def _expression(dtype: DataType, one: Block) -> str:
    return f"pk::convolve_gathered<{CTYPES[dtype.name]}, {', '.join(map(str, one.kernel))}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that convolve() can ask for."""
    for dtype in RULE:
        for one in RULE[dtype]:
            yield (_expression(dtype, one),)
