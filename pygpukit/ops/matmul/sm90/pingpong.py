"""Products of half precision on SM 9.0 by single blocks, whose groups of warps take turns: which tile, and the launch.

Their bits are those of cluster.cu and of the tile kernels, so that plans take whichever is fastest.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, launch, lost
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, readable
from pygpukit.ops.matmul.sm90 import cluster, common
from pygpukit.ops.matmul.tile.tiling import Tile

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

SOURCE = KernelSpec(__file__, "pingpong.cu", shared_bytes=common.SHARED_BYTES, ahead=("sm_90a",), instead=True)
_CALL = SOURCE.structure("TurnsCall")
_SIZE = 2  # bytes of a number
BACKEND, reason, does, finishes = cluster.BACKEND, cluster.reason, cluster.does, cluster.finishes


@by_device
def tiles() -> tuple[Tile, ...]:
    """The tiles of a block, with measured times: the table. general: compiled for a that lies along m, too."""
    return tuple(Tile(**fields) for fields in times.table()["turns"])


@by_device
def fastest(shape: tuple[int, int, int, int], transposed: bool, along_k: bool) -> tuple[Tile, float] | None:
    """The tile whose measured times are shortest, and its time in microseconds. None where rows of the operands are no
    whole 128 bytes: blocks read them alone, and parts of memory's pieces twice. shape: products, m, n, k. transposed:
    a lies along m. along_k: b lies along k."""
    products, m, n, k = shape
    if k % common.CHUNK or (not along_k and n % common.CHUNK):
        return None
    times = (
        (candidate.time_us(m, n, k, products, _SIZE, device.current().sm_count), candidate)
        for candidate in tiles()
        if candidate.general >= transposed
    )
    time, tile = min(times, key=lambda pair: pair[0])
    return tile, time


def refusal(p: Problem) -> str:
    """Why plans do not take these kernels for a product, "" where they may."""
    return cluster.refusal(p) or unsupported(p)


def unsupported(p: Problem) -> str:
    """Why these kernels cannot make a product, "" where they can."""
    if p.family != "half":
        return "they multiply float16 and bfloat16"
    if why := cluster.unsupported(p) or lost.why(SOURCE):
        return why
    return "" if _fastest(p) else "rows of the operands are no whole 128 bytes"


def time_us(p: Problem) -> float:
    """The time of the fastest tile by the measured times."""
    choice = _fastest(p)
    assert choice is not None
    return choice[1]


def tiling(p: Problem) -> Tile:
    """The tile of a block."""
    choice = _fastest(p)
    assert choice is not None
    return choice[0]


def _fastest(p: Problem) -> tuple[Tile, float] | None:
    return fastest(p.folded.extents, p.a_transposed, p.b_along_k)


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = epilogue(a @ b): with something after it by pairs of blocks, whose bits are the same."""
    if epilogue is not None:
        cluster.run(p, a, b, out, epilogue)
        return
    if out.ndim > 2 and is_one_product(b, a, out):
        a, b, out = rows_of(a), matrix_of(b), rows_of(out)
    product(a, b, out, tiling(p))


def product(a: GPUArray, b: GPUArray, out: GPUArray, tile: Tile) -> None:
    """out = a @ b by tiles of one kind: stacks of matrices of bfloat16 or float16 with the same batch axes, in extents
    that cluster.py takes. A row's bits depend on k, the type and the columns alone."""
    m, n, k, products = out.shape[-2], out.shape[-1], a.shape[-1], prod(out.shape[:-2])
    stacks = readable(a, "rows"), readable(b, "columns")
    transposed = stacks[0].transposed, not stacks[1].transposed
    tma_boxes = (common.CHUNK if transposed[0] else tile.rows, common.CHUNK if transposed[1] else tile.columns)
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    call = _CALL.pack(
        row=n,
        matrix=m * n,
        m=m,
        n=n,
        k=k,
        products=products,
        matrices=[stack.matrices for stack in stacks],
        repeat=[stack.repeat for stack in stacks],
        whole=n * _SIZE % ALIGNMENT == 0 and raw.address(dense) % ALIGNMENT == 0,
    )
    blocks = products * -(-m // tile.rows) * -(-n // tile.columns)
    spec = SOURCE.of(_expression(a.dtype.name, tile, transposed))
    operands = common.mapped(stacks, tma_boxes, (m, n), transposed, k)
    launch(spec, (min(blocks, device.current().sm_count), 1, 1), common.THREADS, call, *operands, dense)
    if dense is not out:
        copying.copy_to(dense, out)


def _expression(element: str, tile: Tile, transposed: tuple[bool, bool]) -> str:
    flags = ", ".join("true" if side else "false" for side in transposed)
    return f"pk::hopper_turns<{common.HALVES[element]}, {tile.rows}, {tile.columns}, {flags}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for element, tile, b_transposed in product_of(common.HALVES, tiles(), (False, True)):
        for a_transposed in (False, True)[: 1 + tile.general]:
            yield (_expression(element, tile, (a_transposed, b_transposed)),)
