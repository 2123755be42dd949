"""Products of half precision with an epilogue, on tensor cores: the launch of their tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product as product_of
from math import inf, pi, sqrt
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.kernels import KernelSpec, launch
from pygpukit.ops import copying
from pygpukit.ops.matmul.reading import Stack, as_it_is, readable, whole
from pygpukit.ops.matmul.stacks import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.tile import ELEMENTS, multiprocessors
from pygpukit.ops.matmul.tiles import fastest
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.fused import After

FUSED = KernelSpec(__file__, "fused_tile.cu", front_end="tile", ahead=("sm_90a",))
_LOG2_OF_E = 1.44269504088896341
# The coefficients of activation_tile.cuh, by activation: least; e0, e1, e2; c0, c1; p0 to p4.
_GELU = (1.4907964e-1, 1.5755839e-1, 8.4123256e-2, 1.9955833e-1, -9.0317695e-2)  # as math.cuh has them
_CURVES: dict[str | None, tuple[float, ...]] = {
    None: (-inf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "relu": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "silu": (0, -_LOG2_OF_E, 0, 0, 0, 1, 1, 0, 0, 0, 0),
    "gelu_tanh": (0, -2 * sqrt(2 / pi) * _LOG2_OF_E, 0, -2 * sqrt(2 / pi) * 0.044715 * _LOG2_OF_E, 0, 1, 1, 0, 0, 0, 0),
    "gelu": (0, 0, -0.5 * _LOG2_OF_E, 0, 0.375, 0, *_GELU),
}


class _Tile(NamedTuple):
    rows: int
    columns: int
    depth: int
    warps: int


# Those whose sums leave registers for what follows, and where two sums make one element; by the fewest rows that the
# fastest tile of tile.cu has.
_TILES = {
    16: (_Tile(16, 32, 128, 4), _Tile(16, 32, 128, 4)),
    64: (_Tile(64, 64, 64, 4), _Tile(64, 32, 64, 4)),
    128: (_Tile(128, 128, 64, 8), _Tile(128, 64, 32, 8)),
}


def takes(a: GPUArray, b: GPUArray, out: GPUArray, after: After) -> bool:
    """Whether all is one product, of a stack of rows with one matrix, and "swiglu" is without a residual."""
    if after.act == "swiglu" and after.residual is not None:
        return False
    return is_one_product(b, *(stack for stack in (a, out, after.residual) if stack is not None))


def product(a: GPUArray, b: GPUArray, out: GPUArray, after: After) -> None:
    """out = after(a @ b), all of one type, where takes() says so."""
    gated = after.act == "swiglu"
    rows, result = rows_of(a), rows_of(out)
    (m, n), k = result.shape, rows.shape[1]
    width = whole(n, out.itemsize)
    left = readable(rows, "rows", along_k=True)
    right = readable(matrix_of(b), "columns", along_k=gated and n != width)
    lead = _lead(result)
    target = result if lead else native.empty((m, width), out.dtype)
    other, other_lead = (left.array, width) if after.residual is None else _padded(rows_of(after.residual), width)
    bias = span(target)[0] if after.bias is None else after.bias
    rows_of_one = fastest("half", m, b.shape[-1], k, 1, out.itemsize, multiprocessors()).rows
    one = _TILES[min(rows_of_one, max(_fitting(right.transposed, gated)))][gated]
    launch(
        FUSED.of(_expression(out.dtype.name, one, right.transposed, gated)),
        (-(-m // one.rows) * -(-n // one.columns), 1, 1),
        (1, 1, 1),
        span(left.array)[0],
        span(right.array)[0],
        span(_from_column(right, n, k))[0] if gated else span(right.array)[0],
        bias,
        native.view(bias, (n,), (bias.itemsize,), bias.offset + n * bias.itemsize)
        if gated and after.bias is not None
        else bias,
        span(other)[0],
        span(target)[0],
        *(struct.pack("<i", number) for number in (m, n, k, left.lead, right.lead, lead or width, other_lead)),
        *(struct.pack("<i", given is not None) for given in (after.bias, after.residual)),
        *(struct.pack("<f", x) for x in (after.alpha, after.beta, *_CURVES["silu" if gated else after.act])),
    )
    if not lead:
        copying.copy_to(native.view(target, (m, n), target.strides, target.offset), result)


def _lead(rows: GPUArray) -> int:
    """Elements from one row to the next, 0 where the kernel cannot reach them as they lie."""
    found = as_it_is(rows)
    return 0 if found is None or found.transposed else found.lead


def _padded(rows: GPUArray, width: int) -> tuple[GPUArray, int]:
    """The rows where they lie, or a copy with `width` elements from one to the next; and these elements."""
    lead = _lead(rows)
    if lead:
        return rows, lead
    copy = native.empty((rows.shape[0], width), rows.dtype)
    copying.copy_to(rows, native.view(copy, rows.shape, copy.strides, copy.offset))
    return copy, width


def _from_column(right: Stack, column: int, k: int) -> GPUArray:
    """The operand's columns from one on."""
    array, itemsize = right.array, right.array.itemsize
    shape, along = ((column, k), right.lead) if right.transposed else ((k, column), 1)
    return native.view(array, shape, (right.lead * itemsize, itemsize), array.offset + column * along * itemsize)


def _fitting(b_transposed: bool, gated: bool) -> list[int]:
    """The keys of _TILES that there are kernels of: the largest would spill."""
    return [rows for rows in _TILES if b_transposed or not gated or rows < max(_TILES)]


def _expression(dtype: str, one: _Tile, b_transposed: bool, gated: bool) -> str:
    flags = ", ".join("true" if flag else "false" for flag in (b_transposed, gated))
    return f"pk::matmul_after<{ELEMENTS[dtype]}, {one.rows}, {one.columns}, {one.depth}, {one.warps}, {flags}>"


@FUSED.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, b_transposed, gated in product_of(ELEMENTS, (False, True), (False, True)):
        for rows in _fitting(b_transposed, gated):
            yield (_expression(dtype, _TILES[rows][gated], b_transposed, gated),)
