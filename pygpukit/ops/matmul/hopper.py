"""Products on the tensor cores of SM 9.0 by kernels of their own: which ones, and the launch.

Their bits are those of the tile kernels, so that plans take whichever of the two is faster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import GPUError
from pygpukit.kernels import KernelSpec, launch
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul import tensor_maps
from pygpukit.ops.matmul.fp8_tile import Scale
from pygpukit.ops.matmul.reading import ALIGNMENT, as_it_is, readable
from pygpukit.ops.matmul.tile import architecture, multiprocessors
from pygpukit.ops.matmul.tiles import MEASURED, fastest, of_pairs
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

NAME = "hopper"
# hopper.cu: kHopperShared, kPair.
SOURCE = KernelSpec(__file__, "hopper.cu", shared_bytes=232448, cluster=(2, 1, 1), ahead=("sm_90a",))
_CALL = SOURCE.structure("HopperCall")
_THREADS, _PAIR = (384, 1, 1), 2
_ROWS, _COLUMNS = 256, 256  # that a pair of blocks makes
_SM = 90
_VARIABLE = "PYGPUKIT_MATMUL"
_UNSCALED, _BY_LINE, _BY_BLOCK = 0, 1, 2  # hopper.cu: Scaling
_ELEMENTS = {"float8_e4m3": "pk::e4m3_t", "float8_e5m2": "pk::e5m2_t", "float32": "float"}
_ELEMENTS |= {"bfloat16": "pk::bfloat16_t", "float16": "pk::half_t"}
_RESULTS = ("float32", "bfloat16", "float16")  # of 8-bit floats
# What is computed, by the families of plan.py.
_FAMILIES = {
    "half": "{} summed in float32",
    "tf32": "{} rounded to tf32, summed in float32",
    "fp8": "{}, every 128 of k summed anew and added in float32",
}
# How much longer the tile kernels of half precision take than their times tell, by 30 products on an H100: for right
# operands along k; for results whose rows are no whole 16 bytes.
_ALONG_K, _ODD = 1.1, 2.0
_NO_SCALE = Scale(None, 1, (0, 0))


def planned(
    what: str, named: Any, kind: str | None, dtype: DataType, shape: tuple[int, int, int, int], refusal: str = ""
) -> tuple[str, str] | None:
    """("hopper", reason) where these kernels are asked for, by backend= or by PYGPUKIT_MATMUL, and take the product.

    None where they are not asked for, or by the environment alone and do not take it, or it is empty. kind: a key of
    plan.py's families. shape: products, m, n, k. refusal: why its scales are not taken. Raises ValueError for another
    name, GPUError where the product is not taken.
    """
    if named not in (None, NAME):
        raise ValueError(f"{what}: backend={named!r}; it is {NAME!r}, or None for the plan's choice")
    if named is None and (is_sim() or _of_environment() is None):
        return None
    if not prod(shape):
        return None
    if why := _refusal(kind, dtype, shape) or refusal:
        if named is None:
            return None
        raise GPUError(f"{what}: backend={NAME!r}: {why}; leave backend out for the plan's choice")
    return NAME, f"{_done(kind or '', dtype)}, as {f'backend={NAME!r}' if named else f'{_VARIABLE}={NAME}'} asks"


def is_faster(kind: str, a: GPUArray, b: GPUArray) -> bool:
    """Whether these kernels make a @ b, which the tile kernels take, in less time; their bits are the same. kind: a key
    of plan.py's families."""
    if kind == "half" and not (_along_k(a, "rows") and _along_k(b, "columns")):
        return False  # they would be copied
    *batch, m, k = a.shape
    return _is_faster(kind, a.dtype, (prod(batch), m, b.shape[-1], k))


def reason(kind: str, dtype: DataType) -> str:
    """Of a plan that takes these kernels because is_faster() says so."""
    return f"{_done(kind, dtype)}; faster than the tile kernels by {MEASURED.name}, with the same bits"


@lru_cache(maxsize=4096)
def _is_faster(kind: str, dtype: DataType, shape: tuple[int, int, int, int]) -> bool:
    one = of_pairs(kind)
    if is_sim() or one is None or _refusal(kind, dtype, shape):
        return False
    products, m, n, k = shape
    size, sms = dtype.itemsize, multiprocessors()
    odd = kind == "half" and n * size % ALIGNMENT != 0
    other = fastest(kind, m, n, k, products, size, sms, odd).time_us(m, n, k, products, size, sms)
    if kind == "half":
        other *= _ODD if odd else _ALONG_K
    return one.time_us(m, n, k, products, size, sms // _PAIR) < other


def _along_k(matrices: GPUArray, summed: str) -> bool:
    """They lie along k, or are copied anyway."""
    found = as_it_is(matrices)
    return found is None or found.transposed == (summed == "columns")


def _done(kind: str, dtype: DataType) -> str:
    return f"{_FAMILIES[kind].format(dtype)}, by kernels for the tensor cores of SM 9.0"


def product(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b, stacks of matrices with the same batch axes: float16, bfloat16, or float32 rounded to tf32."""
    _launch(a, b, _NO_SCALE, _NO_SCALE, out, _UNSCALED)


def scaled(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    """out = (left a) @ (right b), of 8-bit floats of one type, where fp8_tile.refusal() is ""."""
    _launch(a, b, left, right, out, _BY_BLOCK if left.by_block or right.by_block else _BY_LINE)


def _launch(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray, scaling: int) -> None:
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    stacks = readable(a, "rows", along_k=True), readable(b, "columns", along_k=True)
    maps = (
        tensor_maps.tail(stack.array.itemsize, k, lines, stack.lead, stack.matrices, stack.step)
        for stack, lines in zip(stacks, (m, n), strict=True)
    )
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    scales, products = (left, right), prod(out.shape[:-2])
    pairs = products * -(-m // _ROWS) * -(-n // _COLUMNS)
    call = _CALL.pack(
        row=n,
        matrix=m * n,
        scale_line=[one.steps[0] for one in scales],
        scale_depth=[one.steps[1] for one in scales],
        m=m,
        n=n,
        k=k,
        products=products,
        matrices=[stack.matrices for stack in stacks],
        repeat=[stack.repeat for stack in stacks],
        line_shift=[one.lines.bit_length() - 1 for one in scales],  # of 1 or 128
        has_scale=[one.values is not None for one in scales],
        factor=left.number * right.number,
        whole=n * out.itemsize % ALIGNMENT == 0 and raw.address(dense) % ALIGNMENT == 0,
    )
    launch(
        SOURCE.of(_expression(a.dtype.name, out.dtype.name, scaling)),
        (min(pairs, max(multiprocessors() // _PAIR, 1)) * _PAIR, 1, 1),
        _THREADS,
        call,
        *chain.from_iterable((span(stack.array)[0], one) for stack, one in zip(stacks, maps, strict=True)),
        *(dense if one.values is None else span(one.values)[0] for one in scales),
        dense,
    )
    if dense is not out:
        copying.copy_to(dense, out)


def _expression(element: str, result: str, scaling: int) -> str:
    return f"pk::hopper_product<{_ELEMENTS[element]}, {_ELEMENTS[result]}, {scaling}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for name in ("float32", "bfloat16", "float16"):
        yield (_expression(name, name, _UNSCALED),)
    for element, result, scaling in product_of(("float8_e4m3", "float8_e5m2"), _RESULTS, (_BY_LINE, _BY_BLOCK)):
        yield (_expression(element, result, scaling),)


def _refusal(kind: str | None, dtype: DataType, shape: tuple[int, int, int, int]) -> str:
    if kind not in _FAMILIES:
        return f"these kernels multiply 8-bit floats, float16, bfloat16, and float32 with tf32=True, not {dtype}"
    if not is_sim() and architecture() != _SM:
        return f"its instructions are those of SM 9.0; this device is SM {architecture() / 10:.1f}"
    products, m, n, _ = shape
    if max(shape) >= 2**31 - 2 * _ROWS or products * -(-m // _ROWS) * -(-n // _COLUMNS) >= 2**31:
        return f"extents of {shape} are more than these kernels count"
    return "" if is_sim() else tensor_maps.refusal()


@cache
def _of_environment() -> str | None:
    """What PYGPUKIT_MATMUL names, None for nothing. Read once. Raises ValueError for another name."""
    found = os.environ.get(_VARIABLE) or None
    if found not in (None, NAME):
        raise ValueError(f"{_VARIABLE}={found}; it is {NAME}, or unset for the plan's choice")
    return found
