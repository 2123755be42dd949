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
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# grouped_hopper.cu: kGroupsShared, kPair.
SOURCE = KernelSpec(
    __file__, "grouped_hopper.cu", shared_bytes=232448, cluster=(2, 1, 1), ahead=("sm_90a",), options=GENERIC_LAMBDAS
)
_CALL = SOURCE.structure("GroupsCall")
_THREADS, _PAIR = (384, 1, 1), 2
_ROWS, _COLUMNS, _BOX = 256, 256, 64  # grouped_hopper.cu: kPairRows, kColumns, kBoxLines
_SM = 90
_ELEMENTS = {"bfloat16": "pk::bfloat16_t", "float16": "pk::half_t"}


def takes(x: GPUArray, w: GPUArray) -> bool:
    """Whether the kernels take x and w of grouped_matmul(), which the tile kernels take."""
    if is_sim() or architecture() != _SM or tensor_maps.refusal():
        return False
    return _most(x.shape[0], w.shape[0], w.shape[2]) < 2**30


def _most(rows: int, groups: int, n: int) -> int:
    """Tiles that a product can have: a group's last rows may be in two of half the width more."""
    return (rows // _ROWS + groups) * (-(-n // _COLUMNS) + 1)


def product(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    """out = the rows of x, each group of them times its matrix of w. counts: contiguous int32; out: contiguous."""
    (rows, k), (groups, _, n), size = x.shape, w.shape, out.itemsize
    left, right = operands(x, w)
    turned = not right.transposed
    extents = (n, k) if turned else (k, n)
    whole = n * size % ALIGNMENT == 0 and raw.address(out) % ALIGNMENT == 0
    pairs = min(_most(rows, groups, n), max(multiprocessors() // _PAIR, 1))
    launch(
        SOURCE.of(_expression(out.dtype.name, turned)),
        (pairs * _PAIR, 1, 1),
        _THREADS,
        _CALL.pack(rows=rows, n=n, k=k, groups=groups, whole=whole),
        span(left.array)[0],
        tensor_maps.tail(size, _BOX, k, rows, left.lead, 1, 0),
        span(right.array)[0],
        tensor_maps.tail(size, _BOX, *extents, right.lead, groups, right.step),
        counts,
        out,
    )


def _expression(dtype: str, turned: bool) -> str:
    return f"pk::grouped_product<{_ELEMENTS[dtype]}, {'true' if turned else 'false'}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, turned in product_of(_ELEMENTS, (False, True)):
        yield (_expression(dtype, turned),)
