"""dot, vdot, inner and outer, by NumPy's rules, from matmul and multiplication.

Types promote as in matmul. Asynchronous on the current stream. Raise ShapeError naming both shapes, DTypeError and
DeviceMismatchError.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, shape
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_operand, check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["dot", "inner", "outer", "vdot"]


def dot(a: Any, b: Any, out: GPUArray | None = None) -> GPUArray:
    """Of vectors their inner product (0-d), of matrices their product, with a number the multiple. out: written and
    returned.

    Of more axes: sums over the last axis of a and the last but one of b, shape a.shape[:-1] + b.shape[:-2] +
    b.shape[-1:].
    """
    if out is not None:
        product = dot(a, b)
        return elementwise.deliver(product, check_out(out, product.shape, product.dtype, "dot"))
    a, b = _operands("dot", a, b)
    if _is_number(a) or _is_number(b):
        return elementwise.mul(a, b)
    if b.ndim <= 2:
        return matmul(a, b)
    _check("dot", a, b, b.shape[-2])
    rows = shape.moveaxis(b, -2, 0)
    product = matmul(_matrix(a), rows.reshape(rows.shape[0], prod(rows.shape[1:])))
    return product.reshape(a.shape[:-1] + rows.shape[1:])


def vdot(a: GPUArray, b: GPUArray) -> GPUArray:
    """The sum of conj(a) * b over all elements, 0-d; both in C order."""
    a, b = _arrays("vdot", a, b)
    if a.size != b.size:
        raise ShapeError(
            f"vdot: shapes {a.shape} and {b.shape} have {a.size} and {b.size} elements, which must be "
            "equal in number; reshape or slice one operand"
        )
    return matmul(elementwise.conj(shape.ravel(a)), shape.ravel(b))


def inner(a: Any, b: Any) -> GPUArray:
    """Sums of products over the last axes, shape a.shape[:-1] + b.shape[:-1]; with a number the multiple."""
    a, b = _operands("inner", a, b)
    if _is_number(a) or _is_number(b):
        return elementwise.mul(a, b)
    _check("inner", a, b, b.shape[-1])
    return matmul(_matrix(a), _matrix(b).T).reshape(a.shape[:-1] + b.shape[:-1])


def outer(a: GPUArray, b: GPUArray) -> GPUArray:
    """Products of every element of a with every one of b, shape (a.size, b.size); both in C order."""
    a, b = _arrays("outer", a, b)
    return elementwise.mul(shape.ravel(a)[:, None], shape.ravel(b)[None, :])


def _operands(what: str, a: Any, b: Any) -> tuple[Any, Any]:
    return check_operand(a, what), check_operand(b, what)


def _is_number(operand: Any) -> bool:
    return getattr(operand, "ndim", 0) == 0


def _arrays(what: str, *operands: Any) -> list[Any]:
    """Operands as arrays; a Python number takes part as in a + number."""
    from pygpukit.array.factory import asarray

    return [asarray(check_operand(operand, what)) for operand in operands]


def _matrix(a: GPUArray) -> GPUArray:
    return a.reshape(prod(a.shape[:-1]), a.shape[-1])


def _check(what: str, a: GPUArray, b: GPUArray, inner_b: int) -> None:
    if a.shape[-1] != inner_b:
        raise ShapeError(
            f"{what}: shapes {a.shape} and {b.shape} do not fit: {a.shape[-1]} and {inner_b} elements are summed over "
            "and must be equal; transpose or reshape one operand"
        )
