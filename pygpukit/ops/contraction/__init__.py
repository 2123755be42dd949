"""einsum: sums of products by labels of axes, made of matrix products, element-wise products and sums.

Asynchronous on the current stream, and the same bits on every run: the order of contractions depends on shapes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as folded
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import as_dtype, bfloat16, float16, float32
from pygpukit.ops import copying, elementwise, reduce, shape
from pygpukit.ops.contraction import paths
from pygpukit.ops.contraction.subscripts import Labels, Product, parse
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_out
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

__all__ = ["einsum", "einsum_path"]


@prepared
def einsum(*operands: Any, out: GPUArray | None = None, dtype: DTypeLike | None = None, optimize: Any = True) -> Any:
    """Sums of products of arrays over the labels that the result lacks: einsum("bij,bjk->bik", a, b).

    operands: subscripts and arrays as numpy.einsum takes them: an ellipsis, repeated labels (diagonals), extents of 1
    that broadcast, a result that is left out, lists of labels behind each array. optimize: True, "optimal" and "greedy"
    contract two operands at a time, in the order of the fewest operations, which is found among all up to nine
    operands; False from left to right; a path of einsum_path() in its order. Types promote; dtype converts the operands
    first. Integers wrap; float16 and bfloat16 are summed in float32 and rounded after each contraction. Without
    products and sums the result is a view. Raises ValueError, ShapeError, DTypeError and DeviceMismatchError before
    anything is launched.
    """
    product = parse(operands, "einsum")
    path = _path(product, optimize, "einsum")
    accumulated = folded(promotion.promote, (operand.dtype for operand in product.operands)) if dtype is None else None
    accumulated = as_dtype(dtype) if accumulated is None else accumulated
    extents = tuple(product.extents[label] for label in product.result)
    if out is not None:
        check_out(out, extents, accumulated, "einsum")
    parts = [
        _plain(elementwise.as_type(operand, accumulated), term, product.extents)
        for operand, term in zip(product.operands, product.terms, strict=True)
    ]
    for positions in path:
        taken = [parts[k] for k in positions]
        parts = [part for k, part in enumerate(parts) if k not in positions]
        for number, part in enumerate(taken[1:], 1):
            others = [labels for _, labels in (*taken[number + 1 :], *parts)]
            taken[0] = _contracted(taken[0], part, frozenset().union(product.result, *others))
        parts.append(taken[0])
    result, labels = _summed(*parts[0], frozenset(product.result))
    result = shape.transpose(result, [labels.index(label) for label in product.result if label in labels])
    missing = [k for k, label in enumerate(product.result) if label not in labels]
    result = shape.expand_dims(result, tuple(missing)) if missing else result
    return elementwise.deliver(result, out)


def einsum_path(*operands: Any, optimize: Any = True) -> tuple[list[Any], str]:
    """(path, report): the order in which einsum() contracts these operands, for its optimize=, and a table of its cost.

    The path begins with "einsum_path", as NumPy's; launches nothing. Arguments and errors as einsum().
    """
    product = parse(operands, "einsum_path")
    path = _path(product, optimize, "einsum_path")
    return ["einsum_path", *path], paths.report(product, path)


def _path(product: Product, optimize: Any, what: str) -> paths.Path:
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return _checked([tuple(step) for step in optimize[1:]], len(product.terms), what)
    if isinstance(optimize, (list, tuple)) and optimize:
        optimize = optimize[
            0
        ]  # ("greedy", elements that an intermediate result may have), of which the second is for the host's memory
    if optimize in (True, "optimal", "greedy"):
        return paths.best(product)
    if optimize is False or optimize is None:
        return [tuple(range(len(product.terms)))]
    raise ValueError(f"{what}: optimize={optimize!r} is unknown; use True, False, 'optimal', 'greedy' or a path")


def _checked(path: paths.Path, count: int, what: str) -> paths.Path:
    left = count
    for step in path:
        if not step or len(set(step)) != len(step) or any(not 0 <= k < left for k in step):
            raise ValueError(f"{what}: step {step} of the path {path} does not fit {left} operands that are left")
        left -= len(step) - 1
    if left != 1:
        raise ValueError(f"{what}: the path {path} leaves {left} operands; it must contract all to one")
    return path


Part = tuple["GPUArray", Labels]


def _plain(array: GPUArray, term: Labels, extents: dict[str, int]) -> Part:
    """A view in which every label is on one axis, and an axis that is repeated to a label's extent is left out."""
    steps: dict[str, int] = {}
    for label, extent, step in zip(term, array.shape, array.strides, strict=True):
        if extent == extents[label]:
            steps[label] = steps.get(label, 0) + step
    labels = tuple(steps)
    return native.view(array, [extents[k] for k in labels], list(steps.values()), array.offset), labels


def _summed(array: GPUArray, labels: Labels, needed: frozenset[str]) -> Part:
    """The sum over the labels that nothing needs."""
    axes = tuple(axis for axis, label in enumerate(labels) if label not in needed)
    if not axes:
        return array, labels
    return reduce.sum(array, axes, array.dtype), tuple(label for label in labels if label in needed)


def _contracted(a: Part, b: Part, needed: frozenset[str]) -> Part:
    """The product of two operands, summed over the labels that only they have."""
    (left, left_labels), (right, right_labels) = (
        _summed(*a, needed | frozenset(b[1])),
        _summed(*b, needed | frozenset(a[1])),
    )
    both = [label for label in left_labels if label in right_labels]
    batch = [label for label in both if label in needed]
    summed = [label for label in both if label not in needed]
    rows = [label for label in left_labels if label not in both]
    columns = [label for label in right_labels if label not in both]
    labels = (*batch, *rows, *columns)
    if not summed or not (rows or columns):
        return _multiplied((left, left_labels), (right, right_labels), (*labels, *summed), len(summed)), labels
    first = _ordered(left, left_labels, (*batch, *rows, *summed))
    second = _ordered(right, right_labels, (*batch, *summed, *columns))
    head = first.shape[: len(batch)]
    extents = first.shape[len(batch) : len(batch) + len(rows)], second.shape[len(batch) + len(summed) :]
    inner = prod(first.shape[len(batch) + len(rows) :])
    stack = matmul(
        shape.reshape(first, (*head, prod(extents[0]), inner)), shape.reshape(second, (*head, inner, prod(extents[1])))
    )
    return shape.reshape(stack, (*head, *extents[0], *extents[1])), labels


def _multiplied(a: Part, b: Part, labels: Labels, summed: int) -> GPUArray:
    """The element-wise product with axes of these labels, the last of which are summed over."""
    views = []
    for array, own in (a, b):
        wide = _ordered(array, own, tuple(label for label in labels if label in own))
        if summed and array.dtype in (float16, bfloat16):
            wide = copying.astype(wide, float32)  # products are not rounded before they are summed
        missing = tuple(k for k, label in enumerate(labels) if label not in own)
        views.append(shape.expand_dims(wide, missing) if missing else wide)
    product = elementwise.mul(*views)
    if summed:
        product = reduce.sum(product, tuple(range(len(labels) - summed, len(labels))), product.dtype)
    return elementwise.as_type(product, a[0].dtype)


def _ordered(array: GPUArray, labels: Labels, order: Sequence[str]) -> GPUArray:
    return shape.transpose(array, [labels.index(label) for label in order])
