"""Products of groups of rows in half precision on the tensor cores of SM 9.0: which, and the launch of their kernels.

Their bits are those of the tile kernels, so that grouped_matmul() takes them wherever they can be launched.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit.core.backend import is_sim
from pygpukit.kernels import GENERIC_LAMBDAS, KernelSpec, launch
from pygpukit.ops import raw
from pygpukit.ops.matmul import tensor_maps
from pygpukit.ops.matmul.grouped_tile import operands
from pygpukit.ops.matmul.reading import ALIGNMENT
from pygpukit.ops.matmul.tile import architecture, multiprocessors
from pygpukit.ops.matmul.tiles import Tile, of_pairs
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# grouped_hopper.cu: kGroupsShared, kPair.
SOURCE = KernelSpec(
    __file__, "grouped_hopper.cu", shared_bytes=232448, cluster=(2, 1, 1), ahead=("sm_90a",), options=GENERIC_LAMBDAS
)
_CALL = SOURCE.structure("GroupsCall")
_THREADS, _PAIR = (384, 1, 1), 2
_ROWS, _OWN, _CHUNK = 256, 128, 64  # grouped_hopper.cu: kPairRows, kOwnRows; hopper.cuh: kChunk
_SM = 90
_ELEMENTS = {"bfloat16": "pk::bfloat16_t", "float16": "pk::half_t"}


def takes(x: GPUArray, w: GPUArray) -> bool:
    """Whether the kernels take x and w of grouped_matmul(), which the tile kernels take."""
    if is_sim() or architecture() != _SM or tensor_maps.refusal():
        return False
    (rows, _), (groups, _, n) = x.shape, w.shape
    narrowest = min(one.columns for one in of_pairs("half"))
    return (rows // _ROWS + groups) * -(-n // narrowest) < 2**31 - 2 * multiprocessors()


def tiling(rows: int, groups: int, n: int, k: int) -> Tile:
    """What a pair of blocks makes: that whose measured times are shortest, were all groups of the same size."""
    pairs = max(multiprocessors() // _PAIR, 1)
    return min(of_pairs("half"), key=lambda one: _time_us(one, -(-rows // groups), groups, n, k, pairs))


def _time_us(one: Tile, count: int, groups: int, n: int, k: int, pairs: int) -> float:
    """How long groups of `count` rows take, without what all tilings take alike."""
    high, across = (count + _OWN - 1) // _ROWS, -(-n // one.columns)
    low = -(-across // _PAIR) if count > high * _ROWS else 0  # of 128 rows and twice as many columns
    return -(-groups * (high * across + low) // pairs) * (one.wave_us + -(-k // one.depth) * one.step_us)


def product(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    """out = the rows of x, each group of them times its matrix of w. counts: contiguous int32; out: contiguous."""
    (rows, k), (groups, _, n), size = x.shape, w.shape, out.itemsize
    left, right = operands(x, w)
    one, turned = tiling(rows, groups, n, k), not right.transposed
    extents, box = ((n, k), _CHUNK // _PAIR) if turned else ((k, n), one.columns // _PAIR)
    whole = n * size % ALIGNMENT == 0 and raw.address(out) % ALIGNMENT == 0
    tiles = (rows // _ROWS + groups) * -(-n // one.columns)  # at most
    launch(
        SOURCE.of(_expression(out.dtype.name, one.columns, turned)),
        (min(tiles, max(multiprocessors() // _PAIR, 1)) * _PAIR, 1, 1),
        _THREADS,
        _CALL.pack(rows=rows, n=n, k=k, groups=groups, whole=whole),
        span(left.array)[0],
        tensor_maps.tail(size, _OWN // _PAIR, k, rows, left.lead, 1, 0),
        span(right.array)[0],
        tensor_maps.tail(size, box, *extents, right.lead, groups, right.step),
        counts,
        out,
    )


def _expression(dtype: str, columns: int, turned: bool) -> str:
    return f"pk::grouped_product<{_ELEMENTS[dtype]}, {columns}, {'true' if turned else 'false'}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, one, turned in product_of(_ELEMENTS, of_pairs("half"), (False, True)):
        yield (_expression(dtype, one.columns, turned),)
