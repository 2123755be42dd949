"""Matrix products by cuBLASLt, for those who ask for the fastest: which ones it takes, and the call."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul import blas
from pygpukit.ops.matmul.blas import Form
from pygpukit.ops.matmul.reading import ALIGNMENT, as_it_is

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType


def refusal(types: str | None, a: GPUArray, b: GPUArray, dtype: DataType) -> str:
    """Why cuBLASLt does not make a @ b, stacks of matrices, "" where it does. types: a key of blas.TYPES, None for
    others. dtype: what the operands are converted to first."""
    if types is None:
        return f"cuBLASLt has no products of {dtype}"
    if native.is_capturing():
        return "a call of cuBLASLt cannot be captured in a graph"
    if missing := blas.missing():
        return missing
    left, right = (_form(one) if one.dtype == dtype else None for one in (a, b))
    if _call(types, a, b, left, right, None) is None:
        return "cuBLASLt has no algorithm for it"
    return ""


def product(types: str, a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b with the same batch axes, where refusal() is ""."""
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    left, right = _form(a), _form(b)
    a, b = (one if form else copying.clone(one) for one, form in ((a, left), (b, right)))
    call = _call(types, a, b, left, right, raw.widest(raw.address(dense)))
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
    types: str, a: GPUArray, b: GPUArray, left: Form | None, right: Form | None, alignment: int | None
) -> blas.Call | None:
    """left, right: forms of the operands, None for dense copies. alignment: of the result, None for a new array."""
    *batch, m, k = a.shape
    n = b.shape[-1]
    return blas.call(
        blas.Signature(
            native.current_device(),
            types,
            prod(batch),
            m,
            n,
            k,
            left or Form(False, k, m * k, ALIGNMENT),
            right or Form(False, n, k * n, ALIGNMENT),
            Form(False, n, m * n, alignment or ALIGNMENT),
        )
    )


def _form(matrices: GPUArray) -> Form | None:
    """How the library reads the operand where it lies, None where it cannot."""
    *batch, rows, columns = matrices.shape
    if batch and not any(matrices.strides[:-2]):  # one for all
        matrices = native.view(matrices, (rows, columns), matrices.strides[-2:], matrices.offset)
    found = as_it_is(matrices, matrices.itemsize)
    if found is None or found.matrices != prod(matrices.shape[:-2]):  # some are repeated
        return None
    return Form(found.transposed, found.lead, found.step, raw.widest(raw.address(matrices)))


def _note_use(array: GPUArray) -> None:
    """The pool does not see the library's call. A copy of one byte tells it that the current stream, too, uses the
    memory, which belongs to another one."""
    native.copy(native.empty((1,), "uint8"), native.view(array, (1,), (1,), array.offset, "uint8"))
