"""delta: local derivatives of features along time, by Savitzky-Golay filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import layout
from pygpukit.core.errors import ShapeError
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.framing import frames
from pygpukit.ops.audio.inputs import floats
from pygpukit.ops.fft.tables import TABLES
from pygpukit.ops.indexing import padding
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.shape import atleast_1d, moveaxis
from pygpukit.ops.shape.joining import concatenate

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

__all__ = ["delta"]

_PADS = {"mirror": "reflect", "nearest": "edge", "constant": "constant", "wrap": "wrap"}


@keywords("data order width", features="data")
def delta(
    data: GPUArray,
    *,
    width: int = 9,
    order: int = 1,
    axis: int = -1,
    mode: str = "interp",
    polyorder: int | None = None,
    delta: float = 1.0,
    cval: float = 0.0,
) -> GPUArray:
    """The order-th derivative along an axis, as librosa.feature.delta() (Savitzky and Golay 1964).

    To each stretch of width elements (odd, 3 or more) a polynomial of degree polyorder (order by default) is fitted;
    delta is the distance of elements. mode: "interp" fits the first and last stretch at the edges and needs width
    elements; "mirror", "nearest", "constant" (cval) and "wrap" continue the array. Result: data's shape; float32 or
    float64. Raises ValueError, ShapeError, DTypeError.
    """
    data = atleast_1d(floats(data, "delta: data"))
    axis = layout.normalize_axis(axis, data.ndim, "delta")
    if int(width) != width or width < 3 or width % 2 != 1:
        raise ValueError(f"delta: width is {width} and must be an odd integer of 3 or more")
    if int(order) != order or order < 1:
        raise ValueError(f"delta: order is {order} and must be an integer of 1 or more")
    degree = order if polyorder is None else polyorder
    if degree >= width:
        raise ValueError(f"delta: a polynomial of degree {degree} needs a width above it, not {width}")
    rows = moveaxis(data, axis, -1)
    kind = data.dtype.to_numpy_dtype()

    def weights(part: str) -> GPUArray:
        how = (width, order, degree, delta, part)
        return TABLES.get(("delta", data.dtype, how), lambda: _weights(*how).astype(kind))

    if mode == "interp":
        if width > rows.shape[-1]:
            raise ShapeError(
                f"delta: axis {axis} has {rows.shape[-1]} elements, width is {width}; mode 'interp' needs as many"
            )
        inside = _product(frames(rows, width, 1, "delta"), weights("inside"))[..., 0]
        begin, end = _product(rows[..., :width], weights("begin")), _product(rows[..., -width:], weights("end"))
        return moveaxis(concatenate([begin, inside, end], -1), -1, axis)
    if mode not in _PADS:
        raise ValueError(f"delta: mode {mode!r} is unknown; use 'interp', {', '.join(map(repr, _PADS))}")
    around: Any = [(0, 0)] * (rows.ndim - 1) + [(width // 2, width // 2)]
    wide = padding.pad(rows, around, _PADS[mode], constant_values=cval)
    return moveaxis(_product(frames(wide, width, 1, "delta"), weights("inside"))[..., 0], -1, axis)


def _product(rows: GPUArray, weights: GPUArray) -> GPUArray:
    """rows (..., width) times weights (width, n)."""
    return matmul(rows, weights) if rows.ndim > 1 else matmul(rows.reshape(1, -1), weights)[0]


def _weights(width: int, order: int, degree: int, distance: float, part: str) -> np.ndarray[Any, Any]:
    """(width, n): from a stretch to the derivative at its middle, at the places before or those behind it."""
    import numpy as np

    half = width // 2
    places = {"inside": np.zeros(1), "begin": np.arange(-half, 0), "end": np.arange(1, half + 1)}[part]
    fitted = np.linalg.pinv(np.arange(-half, half + 1.0)[:, None] ** np.arange(degree + 1))
    powers = np.arange(degree + 1)
    falling = np.array([np.prod(np.arange(k - order + 1, k + 1)) if k >= order else 0.0 for k in powers])
    derived = falling * places[:, None].astype(float) ** np.maximum(powers - order, 0)
    return np.ascontiguousarray((derived @ fitted).T / distance**order)
