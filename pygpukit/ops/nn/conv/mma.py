"""Convolution by mma.sync where there are no tile kernels: by which block, and the launch.

The blocks are those of products: a convolution is one of places by filters. So are their times, unless the device's
table has measured them: "mma" of "convolution", by bytes of an element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.kernels import GENERIC_LAMBDAS, KernelSpec, activation, builder, launch
from pygpukit.ops import plans
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.mma import aligned
from pygpukit.ops.matmul.mma.block import Block
from pygpukit.ops.nn.conv import tile
from pygpukit.ops.nn.conv.layout import in_dense_channels
from pygpukit.ops.nn.conv.problem import Call, Problem
from pygpukit.ops.nn.conv.settings import Settings, geometry
from pygpukit.ops.nn.conv.tiles import FAMILY

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = KernelSpec(__file__, "mma.cu", options=GENERIC_LAMBDAS, instead=True)
_CALL = SOURCE.structure("MmaConvolution")
_TYPES = {"bfloat16": 2, "float16": 2, "float32": 4}  # their bytes
_PADDING, _SEEN = 8, 8  # mma.cu: floats from the end of a row of sums to the next; bytes of Seen
BACKEND = aligned.BACKEND


def refusal(p: Problem) -> str:
    """Why the kernels do not take it, "" where they do."""
    if p.uncounted or p.settings.transposed:
        return p.uncounted or "these kernels make no transposed convolution"
    return tile.unsupported(p) or missing()


def reason(p: Problem) -> str:
    """Of a plan."""
    return f"{does(p)}: {tile.missing()}"


def does(p: Problem) -> str:
    """The computation in words."""
    return f"{p.on_tensor_cores}, summed in float32, by mma.sync"


def tiling(p: Problem) -> Block:
    """The block that is fastest."""
    return _fastest(p.dtype.itemsize, p.image.shape[0] * prod(p.settings.out), p.weight)


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    in_dense_channels(call, p.settings.groups, partial(convolve, settings=p.settings, block=tiling(p)))


@plans.follows
def blocks(itemsize: int) -> tuple[Block, ...]:
    """Those of products that the device's shared memory holds with a tile's sums; the smallest one last."""
    room = device.current().shared_bytes
    every = [one for one in _listed(itemsize) if _shared_bytes(one, itemsize) + one.rows * _SEEN <= room]
    own = {block.numbers(): block for block in _measured(itemsize)}
    if unknown := own.keys() - {one.numbers() for one in _listed(itemsize)}:
        raise ValueError(f"the table of plans has the block {min(unknown)} of convolutions by mma.sync; {plans.REMEDY}")
    return tuple(own.get(one.numbers(), one) for one in every)


def _measured(itemsize: int) -> Iterator[Block]:
    """The blocks that the device's table has times of."""
    entries = plans.table(FAMILY).get("mma", {}).get(str(itemsize), [])
    try:
        yield from (Block(**fields) for fields in entries)
    except TypeError as error:
        raise ValueError(f"the table of plans lists what is no block of mma.sync ({error}); {plans.REMEDY}") from None


@plans.follows
def _fastest(itemsize: int, positions: int, weight: tuple[int, ...]) -> Block:
    groups, filters, *kernel, channels = weight
    sms = device.current().sm_count
    return min(
        blocks(itemsize),
        key=lambda one: one.time_us(
            positions, filters, prod(kernel) * -(-channels // one.depth) * one.depth, groups, sms
        ),
    )


def convolve(
    x: GPUArray, w: GPUArray, bias: GPUArray | None, out: GPUArray, storage: GPUArray, settings: Settings, block: Block
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
        has_bias=bias is not None,
        activation=activation.number(settings.act),
        group=aligned.GROUP,
        unused=0,
    )
    launch(
        SOURCE.of(_expression(out.dtype.name, block), shared_bytes=_shared_bytes(block, out.itemsize)),
        (block.tiles(positions, filters), groups, 1),
        (block.threads(), 1, 1),
        *(image, w, w if bias is None else bias, storage, call),
    )


def _shared_bytes(block: Block, itemsize: int) -> int:
    """Of dynamic shared memory: stages of both operands, and later the sums."""
    return max(aligned.shared_bytes(block, itemsize), block.rows * (block.columns + _PADDING) * 4)


def _expression(dtype: str, block: Block) -> str:
    return f"pk::mma_convolve<{CTYPES[dtype]}, {block.numbers()}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, itemsize in _TYPES.items():
        for block in _listed(itemsize):
            yield (_expression(dtype, block),)


def _listed(itemsize: int) -> Iterator[Block]:
    """Those of products. What a tile of 128 x 128 in tf32 keeps beside its sums asks for twice as many warps."""
    for one in aligned.listed(itemsize):
        many = itemsize == 4 and one.rows == one.columns == 128
        yield replace(one, across=2 * one.across, blocks=1) if many else one


@by_device
def missing() -> str:
    """Why these kernels are not to be had here, "" where they are, as far as is known."""
    return builder.missing(SOURCE.of(next(iter(_listing()))[0]))
