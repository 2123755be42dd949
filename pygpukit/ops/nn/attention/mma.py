"""Attention of many queries by mma.sync where there are no tile kernels: by which block, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import plans
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

    def choice(self) -> dict[str, int]:
        """The name of it in a table."""
        return {"queries": self.queries, "warps": self.warps}


# Of head dimensions up to this one, the first one by default. Keys decide bits, so that they follow from the head
# dimension alone.
BLOCKS = {
    64: (Block(128, 64, 4, 2), Block(64, 64, 4, 3)),
    128: (Block(64, 64, 4, 2),),  # 128 queries by 4 warps would spill, and were 14 to 40 % slower on an H200
    256: (Block(64, 32, 4, 1),),
}
FAMILY = tiles.FAMILY


def refusal(p: Problem) -> str:
    """Why this kernel does not take this attention, "" where it does: as tile.refusal()."""
    return tile.unsupported(p) or missing()


def tiling(p: Problem) -> Block | None:
    """The tile of one block; None where no key is seen."""
    return block(_width(p)) if p.seen > 0 else None


@plans.follows
def block(width: int) -> Block:
    """The one that the device's table names under "mma", of those of a width. Raises ValueError for no such one."""
    named = plans.table(FAMILY).get("mma", {}).get(str(width))
    for one in BLOCKS[width]:
        if named in (None, one.choice()):
            return one
    known = " or ".join(str(one.choice()) for one in BLOCKS[width])
    raise ValueError(
        f"the table of plans has the block {named} of attention by mma.sync; it is {known}; {plans.REMEDY}"
    )


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
        ATTENTION.of(_expression(p.dtype, _width(p), tiling), shared_bytes=shared_bytes(_width(p), tiling)),
        (-(-p.queries // tiling.queries) * p.heads, 1, 1),
        (32 * tiling.warps, 1, 1),
        *(span(array)[0] for array in (*arrays, arrays[0] if lengths is None else lengths)),
        packed,
    )


def shared_bytes(width: int, block: Block) -> int:
    """Of dynamic shared memory: the queries, and a tile of keys and of values."""
    return (block.queries + 2 * block.keys) * width * 2


def _width(p: Problem) -> int:
    return next(width for width in BLOCKS if p.dim <= width)


def _expression(dtype: DataType | str, width: int, block: Block) -> str:
    queries, keys, warps, resident = block
    return f"pk::attention_mma<{CTYPES[str(dtype)]}, {queries}, {keys}, {width}, {warps}, {resident}>"


@ATTENTION.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, width in product(_TYPES, BLOCKS):
        for one in BLOCKS[width]:
            yield (_expression(dtype, width, one),)


@by_device
def missing() -> str:
    """Why this kernel is not to be had here, "" where it is, as far as is known."""
    return builder.missing(ATTENTION.of(next(iter(_listing()))[0]))
