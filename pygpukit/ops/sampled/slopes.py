"""gradient, trapezoid and ediff1d: slopes, areas and differences of samples, as NumPy's functions. Asynchronous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.array.factory import asarray
from pygpukit.core.dtypes import bool_, float64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, reduce, shape
from pygpukit.ops.operands import check_array, check_devices, check_operand, is_array
from pygpukit.ops.scan.differences import diff
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["ediff1d", "gradient", "trapezoid"]


def gradient(f: GPUArray, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> Any:
    """Slopes along axes: differences of second order inside, one-sided of edge_order 1 or 2 at the ends.

    varargs: nothing, one distance for all axes, or for each axis a distance or the 1-D positions of its samples. One
    axis gives an array, several a tuple. Integers give float64. Raises ShapeError, TypeError, ValueError, DTypeError.
    """
    f = check_array(f, "gradient")
    axes = range(f.ndim) if axis is None else layout.integers(axis, "gradient: axis")
    own = [layout.normalize_axis(each, f.ndim, "gradient") for each in axes]
    if len(set(own)) != len(own):
        raise ShapeError(f"gradient: axis {axis} names an axis of shape {f.shape} twice")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is {edge_order}; it must be 1 or 2")
    steps = _steps(f, varargs, own)
    for k in own:
        if f.shape[k] < edge_order + 1:
            raise ShapeError(f"gradient: axis {k} of shape {f.shape} must be of {edge_order + 1} elements or more")
    if f.dtype == bool_:
        raise DTypeError("gradient: bool has no differences; convert to a number first")
    f = f if promotion.is_inexact(f.dtype) else elementwise.as_type(f, float64)
    slopes = tuple(_slopes(f, k, step, edge_order) for k, step in zip(own, steps, strict=True))
    return slopes[0] if len(slopes) == 1 else slopes


def _steps(f: GPUArray, spacings: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """A number for each axis, or the distances between its samples, 1-D."""
    if not spacings:
        return [1.0] * len(axes)
    if len(spacings) == 1 and getattr(spacings[0], "ndim", 0) == 0 and not isinstance(spacings[0], (list, tuple)):
        spacings = [spacings[0]] * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: {len(spacings)} distances for {len(axes)} axes; give one, or one for each")
    steps: list[Any] = []
    for one, k in zip(spacings, axes, strict=True):
        one = asarray(one) if isinstance(one, (list, tuple)) else check_operand(one, "gradient")
        if not is_array(one) or one.ndim == 0:
            steps.append(one)
            continue
        if one.shape != (f.shape[k],):
            raise ShapeError(f"gradient: positions of shape {one.shape} must be {(f.shape[k],)}, one for each sample")
        steps.append(diff(one if promotion.is_inexact(one.dtype) else elementwise.as_type(one, float64)))
    return steps


def _slopes(f: GPUArray, axis: int, step: Any, edge_order: int) -> GPUArray:
    out = native.empty(f.shape, f.dtype)
    x, target = shape.moveaxis(f, axis, -1), shape.moveaxis(out, axis, -1)
    before, here, behind = x[..., :-2], x[..., 1:-1], x[..., 2:]
    if not (is_array(step) and step.ndim):
        inside = elementwise.div(
            elementwise.sub(behind, before), elementwise.mul(step, 2.0) if is_array(step) else 2 * step
        )
        first = last = step
        second = next_to_last = step
    else:
        left, right = step[:-1], step[1:]
        both = left + right
        inside = (
            -right / (left * both) * before + (right - left) / (left * right) * here + left / (right * both) * behind
        )
        first, second, next_to_last, last = step[0], step[min(1, step.size - 1)], step[max(step.size - 2, 0)], step[-1]
    copying.copy_to(inside, target[..., 1:-1])
    if edge_order == 1:
        copying.copy_to((x[..., 1] - x[..., 0]) / first, target[..., 0])
        copying.copy_to((x[..., -1] - x[..., -2]) / last, target[..., -1])
        return out
    copying.copy_to(_edge(x[..., 0], x[..., 1], x[..., 2], first, second), target[..., 0])
    reverse = _edge(x[..., -1], x[..., -2], x[..., -3], last, next_to_last)
    copying.copy_to(elementwise.neg(reverse), target[..., -1])
    return out


def _edge(x0: Any, x1: Any, x2: Any, near: Any, far: Any) -> Any:
    """The slope at x0 of the parabola through three samples, the first two `near`, the others `far` from each other."""
    both = near + far
    return -(2.0 * near + far) / (near * both) * x0 + both / (near * far) * x1 - near / (far * both) * x2


def trapezoid(y: GPUArray, x: GPUArray | None = None, dx: float = 1.0, axis: int = -1) -> GPUArray:
    """The integral along axis of the lines between samples y at the positions x, or dx apart.

    x: 1-D along axis, or of a shape that broadcasts to y's. Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    y = check_array(y, "trapezoid")
    axis = layout.normalize_axis(axis, y.ndim, "trapezoid")
    step: Any = dx
    if x is not None:
        x = check_array(x, "trapezoid: x")
        check_devices("trapezoid", y, x)
        step = diff(x, axis=-1 if x.ndim == 1 else axis)
        if x.ndim == 1:
            step = step.reshape(tuple(-1 if k == axis else 1 for k in range(y.ndim)))
        layout.broadcast_shapes(y.shape[:axis] + (y.shape[axis] - 1,) + y.shape[axis + 1 :], step.shape, "trapezoid")
    rows = shape.moveaxis(y, axis, -1)
    sums = shape.moveaxis(elementwise.add(rows[..., 1:], rows[..., :-1]), -1, axis)
    areas = elementwise.div(elementwise.mul(step, sums), 2.0)
    return reduce.sum(areas, axis)


def ediff1d(ary: GPUArray, to_end: Any = None, to_begin: Any = None) -> GPUArray:
    """Differences of neighbours of the flattened array, with what is given before and behind them, in its type."""
    ary = check_array(ary, "ediff1d")
    parts = [diff(shape.ravel(ary)) if ary.size > 1 else native.empty(0, ary.dtype)]
    for values, place in ((to_begin, 0), (to_end, 2)):
        if values is None:
            continue
        part = asarray(values) if isinstance(values, (list, tuple)) else check_operand(values, "ediff1d")
        if is_array(part) and not promotion.can_store(part.dtype, ary.dtype):
            raise DTypeError(f"ediff1d: {part.dtype} does not fit {ary.dtype} under the rule same_kind; convert first")
        part = shape.ravel(part if is_array(part) else asarray(part, ary.dtype))
        parts.insert(place, elementwise.as_type(part, ary.dtype))
    return joining.concatenate(parts) if len(parts) > 1 else parts[0]
