"""Attention of many queries by mma.sync where there are no tile kernels: by which block, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.attention import tile, tiles
from pygpukit.ops.nn.attention.extras import LOG2_E
from pygpukit.ops.nn.attention.problem import Call, Problem
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DataType

ATTENTION = KernelSpec(__file__, "mma.cu", instead=True)
_CALL = ATTENTION.structure("PromptCall")
_TYPES = ("bfloat16", "float16")


class Block(NamedTuple):
    """The tile of one block. queries, keys: of a tile. warps: of a block; resident: blocks of a multiprocessor."""

    queries: int
    keys: int
    warps: int
    resident: int

    def __str__(self) -> str:
        return f"{self.queries}x{self.keys}"


# Of head dimensions up to this one. Keys decide bits, so that they follow from the head dimension alone.
BLOCKS = {64: Block(128, 64, 4, 2), 128: Block(64, 64, 4, 2), 256: Block(64, 32, 4, 1)}


def refusal(p: Problem) -> str:
    """Why this kernel does not take this attention, "" where it does: as tile.refusal()."""
    return tile.unsupported(p) or missing()


def tiling(p: Problem) -> Block | None:
    """The tile of one block; None where no key is seen."""
    return BLOCKS[_width(p)] if p.seen > 0 else None


def run(p: Problem, call: Call, tiling: Block | None) -> None:
    """Fill the result, which has elements."""
    from pygpukit.ops import copying

    Q, K, V, out, scale, offset, more = call
    if not tile.readable(out):
        dense = native.empty(out.shape, out.dtype)
        run(p, call._replace(out=dense), tiling)
        copying.copy_to(dense, out)
        return
    if tiling is None:
        copying.fill(out, 0)
        return
    lengths, heads = more.lengths, Q.shape[-3]
    arrays = [array if tile.readable(array) else tile.dense(array) for array in (Q, K, V)] + [out]
    batch, head, row = zip(*(tile.steps(array) for array in arrays), strict=True)
    packed = _CALL.pack(
        batch=batch,
        head=head,
        row=row,
        batches=p.heads // heads,
        heads=heads,
        group=p.group,
        queries=p.queries,
        keys=p.seen,
        dim=p.dim,
        offset=p.place,
        ahead=p.ahead,
        behind=p.behind,
        has_lengths=lengths is not None,
        at_end=offset is None,
        length_step=0 if lengths is None or lengths.size == 1 else lengths.strides[0] // lengths.itemsize,
        together=tiles.together(p.heads, p.group, 2 * p.seen * p.dim * K.itemsize) if p.causal else 1,
        scale=scale * LOG2_E,
    )
    launch(
        ATTENTION.of(_expression(p.dtype, _width(p)), shared_bytes=shared_bytes(_width(p))),
        (-(-p.queries // tiling.queries) * p.heads, 1, 1),
        (32 * tiling.warps, 1, 1),
        *(span(array)[0] for array in (*arrays, arrays[0] if lengths is None else lengths)),
        packed,
    )


def shared_bytes(width: int) -> int:
    """Of dynamic shared memory: the queries, and a tile of keys and of values."""
    return (BLOCKS[width].queries + 2 * BLOCKS[width].keys) * width * 2


def _width(p: Problem) -> int:
    return next(width for width in BLOCKS if p.dim <= width)


def _expression(dtype: DataType | str, width: int) -> str:
    queries, keys, warps, resident = BLOCKS[width]
    return f"pk::attention_mma<{CTYPES[str(dtype)]}, {queries}, {keys}, {width}, {warps}, {resident}>"


@ATTENTION.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, width in product(_TYPES, BLOCKS):
        yield (_expression(dtype, width),)


@by_device
def missing() -> str:
    """Why this kernel is not to be had here, "" where it is, as far as is known."""
    return builder.missing(ATTENTION.of(next(iter(_listing()))[0]))
