"""Matrix products by cuBLASLt, for those who ask for the fastest: which ones it takes, and the call."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul.cublaslt import library
from pygpukit.ops.matmul.cublaslt.library import Form
from pygpukit.ops.matmul.epilogue import fused
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, in_place

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem


BACKEND = "cublaslt"
finishes = in_another_launch
# Multiply-adds from which on copies that align operands are cheaper than cuBLAS's way to read what is not aligned:
# between two products that were measured on an H100, 333 x 777 x 129 and 4093 x 4099 x 4101.
_COPIES_PAY = 2**33


def refusal(p: Problem, backend: str) -> str:
    """Why the library does not make a product that need not be invariant, "" where it does. backend: of the invariant
    plan."""
    copied = prod(p.extents) >= _COPIES_PAY and (p.a.in_place() is None or p.b.in_place() is None)
    if backend in ("tile", "hopper") and (p.family == "int8" or copied):
        return "faster than cuBLAS where both were measured"
    if p.epilogue and p.result not in fused.FINISHED:
        return f"nothing finishes products of {p.result} that cuBLASLt makes"
    types = _types(p)
    if types is None:
        return f"cuBLASLt has no products of {p.dtype}"
    if native.is_capturing():
        return "a call of cuBLASLt cannot be captured in a graph"
    if missing := library.missing():
        return missing
    left, right = (_form_of(x.shape, x.strides, x.itemsize, raw.widest(x.address)) for x in (p.a, p.b))
    return "" if _call(types, p.a.shape, p.b.shape[-1], left, right, None) else "cuBLASLt has no algorithm for it"


def reason(p: Problem) -> str:
    """The computation in words."""
    rounded = " rounded to tf32" if p.family == "tf32" else ""
    return f"{p.dtype}{rounded} by cuBLASLt, where a row's bits may depend on the other rows"


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b, where refusal() is ""."""
    types = _types(p)
    assert types is not None
    product(types, a, b, out)


def _types(p: Problem) -> str | None:
    """The key of library.TYPES, None where there is none."""
    name = p.family if p.family in ("int8", "tf32") else p.dtype.name if p.dtype == p.result else None
    return name if name in library.TYPES and (name != "int8" or p.family == "int8") else None


def product(types: str, a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b with the same batch axes, where refusal() is ""."""
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    left, right = _form(a), _form(b)
    a, b = (operand if form else copying.clone(operand) for operand, form in ((a, left), (b, right)))
    call = _call(types, a.shape, b.shape[-1], left, right, raw.widest(raw.address(dense)))
    if call is None:  # there is one for a result that is aligned
        aligned = native.empty(out.shape, out.dtype)
        product(types, a, b, aligned)
        copying.copy_to(aligned, out)
        return
    space = native.empty((max(call.workspace, 1),), "uint8")
    stream = native.current_stream()
    arrays = (a, b, dense, space)
    for array in arrays:
        native.pin(array)
        if array.block and array.stream_id != stream.id:
            _note_use(array)
    try:
        call(a.device_ptr, b.device_ptr, dense.device_ptr, space.device_ptr, stream.handle)
    finally:
        for array in arrays:
            native.unpin(array)
    if dense is not out:
        copying.copy_to(dense, out)


def _call(
    types: str, shape: tuple[int, ...], n: int, left: Form | None, right: Form | None, alignment: int | None
) -> library.Call | None:
    """shape: of a. left, right: forms of the operands, None for dense copies. alignment: of the result, None for a new
    array."""
    return call_of(native.current_device(), types, shape, n, left, right, alignment or ALIGNMENT)


@lru_cache(maxsize=4096)
def call_of(
    device: int, types: str, shape: tuple[int, ...], n: int, left: Form | None, right: Form | None, alignment: int
) -> library.Call | None:
    """shape: of a. n: columns of b. The same call each time."""
    *batch, m, k = shape
    left, right = left or Form(False, k, m * k, ALIGNMENT), right or Form(False, n, k * n, ALIGNMENT)
    out = Form(False, n, m * n, alignment)
    return library.call(library.Signature(device, types, prod(batch), m, n, k, left, right, out))


def _form(matrices: GPUArray) -> Form | None:
    """The form in which the library reads the operand in place, None where it cannot."""
    return _form_of(matrices.shape, matrices.strides, matrices.itemsize, raw.widest(raw.address(matrices)))


@lru_cache(maxsize=4096)
def _form_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, alignment: int) -> Form | None:
    if alignment < itemsize:
        return None
    if not any(strides[:-2]):  # one matrix for all
        shape, strides = shape[-2:], strides[-2:]
    readable = in_place(shape, strides, itemsize, itemsize)
    if readable is None or readable[3] != prod(shape[:-2]):  # some are repeated
        return None
    transposed, lead, step, *_ = readable
    return Form(transposed, lead, step, alignment)


def _note_use(array: GPUArray) -> None:
    """The pool does not see the library's call. A copy of one byte tells it that the current stream, too, uses the
    memory, which belongs to another one."""
    native.copy(native.empty((1,), "uint8"), native.view(array, (1,), (1,), array.offset, "uint8"))
