"""Products of groups of rows in half precision on the tensor cores of SM 9.0: which, and the launch of their kernels.

Their bits are those of the tile kernels, so that grouped_matmul() takes them wherever they can be launched.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.kernels import GENERIC_LAMBDAS, KernelSpec, launch, lost
from pygpukit.ops import raw
from pygpukit.ops.matmul.layout.operand import ALIGNMENT
from pygpukit.ops.matmul.sm90 import common, tensor_maps
from pygpukit.ops.matmul.tile.grouped import operands

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = KernelSpec(
    __file__,
    "grouped.cu",
    shared_bytes=common.SHARED_BYTES,
    cluster=(common.CLUSTER, 1, 1),
    ahead=("sm_90a",),
    options=GENERIC_LAMBDAS,
    instead=True,
)
_CALL = SOURCE.structure("GroupsCall")
_ROWS, _COLUMNS, _BOX_LINES = 256, 256, 64  # grouped.cu: kPairRows, kColumns, kBoxLines


def takes(x: GPUArray, w: GPUArray) -> bool:
    """True if the kernels take x and w of grouped_matmul(), which the tile kernels take."""
    if is_sim() or device.current().capability != common.SM or tensor_maps.refusal() or lost.why(SOURCE):
        return False
    return _max_tiles(x.shape[0], w.shape[0], w.shape[2]) < 2**30


def _max_tiles(rows: int, groups: int, n: int) -> int:
    """Tiles that a product can have: a group's last rows may be in two of half the width more."""
    return (rows // _ROWS + groups) * (-(-n // _COLUMNS) + 1)


def product(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    """out = the rows of x, each group of them times its matrix of w. counts: contiguous int32; out: contiguous."""
    (rows, k), (groups, _, n), size = x.shape, w.shape, out.itemsize
    left, right = operands(x, w)
    transposed = not right.transposed
    aligned = n * size % ALIGNMENT == 0 and raw.address(out) % ALIGNMENT == 0
    clusters = min(_max_tiles(rows, groups, n), max(device.current().sm_count // common.CLUSTER, 1))
    launch(
        SOURCE.of(_expression(out.dtype.name, transposed)),
        (clusters * common.CLUSTER, 1, 1),
        common.THREADS,
        _CALL.pack(rows=rows, n=n, k=k, groups=groups, whole=aligned),
        *common.mapped((left, right), (_BOX_LINES, _BOX_LINES), (rows, n), (False, transposed), k),
        counts,
        out,
    )


def _expression(dtype: str, transposed: bool) -> str:
    return f"pk::grouped_product<{common.HALVES[dtype]}, {'true' if transposed else 'false'}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, transposed in product_of(common.HALVES, (False, True)):
        yield (_expression(dtype, transposed),)
