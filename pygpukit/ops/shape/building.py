"""Arrays made from numbers and from the axes of others: eye, diag, linspace, meshgrid, as NumPy's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory, layout
from pygpukit.array.promotion import COMPLEX
from pygpukit.core.dtypes import as_dtype, float64
from pygpukit.core.errors import DTypeError, OutOfMemoryError, ShapeError
from pygpukit.ops import copying, shape
from pygpukit.ops.indexing import triangles
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

__all__ = [
    "diag", "diag_indices", "eye", "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid", "tri",
    "tril_indices", "triu_indices",
]  # fmt: skip


def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: DTypeLike = "float32") -> GPUArray:
    """Zeros with ones on the k-th diagonal, (n_rows, n_cols); square when n_cols is left out. Errors as zeros()."""
    array = factory.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype)
    line = shape.diagonal(array, k)
    if line.size:
        copying.fill(line, 1)
    return array


def identity(n: int, dtype: DTypeLike = "float32") -> GPUArray:
    """The square matrix with ones on its diagonal, as eye(n)."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = "float32") -> GPUArray:
    """Ones on and below the k-th diagonal, zeros above, (N, M); square when M is left out. Errors as zeros()."""
    return triangles.tril(factory.ones((N, N if M is None else M), dtype), k)


def diag(array: GPUArray, k: int = 0) -> GPUArray:
    """The k-th diagonal of a 2-D array, a view; or a new 2-D array of zeros with a 1-D array on its k-th diagonal."""
    array = check_array(array, "diag")
    check_devices("diag", array)
    if array.ndim == 2:
        return shape.diagonal(array, k)
    if array.ndim != 1:
        raise ShapeError(f"diag: shape {array.shape} is neither 1-D nor 2-D")
    extent = array.size + abs(k)
    out = factory.zeros((extent, extent), array.dtype)
    if array.size:
        copying.copy_to(array, shape.diagonal(out, k))
    return out


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """num evenly spaced numbers from start to stop, with stop unless endpoint is False.

    start, stop: numbers, or lists and arrays of the host, whose values then lie along a new axis. retstep: (values,
    their distance). dtype: float64 (complex128) when left out; integers are rounded down. The values are made on the
    host and copied once. Raises ShapeError for a negative num, OutOfMemoryError.
    """
    import numpy as np

    num = layout.integer(num, "linspace: num")
    if num < 0:
        raise ShapeError(f"linspace: the number of values must not be negative, it is {num}")
    try:
        values, step = np.linspace(start, stop, num, endpoint, retstep=True, axis=axis)
    except MemoryError as error:
        raise OutOfMemoryError(f"linspace: {num} values do not fit the host, where they are made: {error}") from None
    result_dtype = as_dtype(dtype) if dtype is not None else None
    if result_dtype is not None and np.iscomplexobj(values) and result_dtype not in COMPLEX:
        raise DTypeError(f"linspace: complex bounds do not fit {result_dtype}")
    if result_dtype is not None and result_dtype.name.lstrip("u").startswith("int"):
        values = np.floor(values)
    array = factory.from_numpy(values)
    array = array if result_dtype is None or result_dtype in (float64, array.dtype) else array.astype(result_dtype)
    return (array, step) if retstep else array


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """base to the powers of linspace(start, stop, num), made on the host as they are. Errors as linspace()."""
    import numpy as np

    return _spaced("logspace", np.logspace, start, stop, num, dtype, endpoint=endpoint, base=base, axis=axis)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
) -> Any:
    """num numbers from start to stop, each the same multiple of the one before, made on the host.

    Errors as linspace(), and ValueError for a zero at an end.
    """
    import numpy as np

    return _spaced("geomspace", np.geomspace, start, stop, num, dtype, endpoint=endpoint, axis=axis)


def _spaced(what: str, function: Any, start: Any, stop: Any, num: int, dtype: Any, **more: Any) -> GPUArray:
    num = layout.integer(num, f"{what}: num")
    if num < 0:
        raise ShapeError(f"{what}: the number of values must not be negative, it is {num}")
    array = factory.from_numpy(function(start, stop, num, **more))
    return array if dtype is None else array.astype(as_dtype(dtype))


def indices(dimensions: Sequence[int], dtype: DTypeLike = "int64", sparse: bool = False) -> Any:
    """The index along each axis of every place of a shape, (number of axes, *shape).

    sparse: a tuple of arrays that broadcast to the shape instead.
    """
    extents = layout.integers(dimensions, "indices: an extent")
    lines = [factory.arange(extent, dtype=dtype) for extent in extents]
    grids = meshgrid(*lines, indexing="ij", sparse=True)
    if sparse:
        return grids
    out = factory.empty((len(extents), *extents), dtype)
    for place, grid in zip(out, grids, strict=True):
        copying.copy_to(grid, place)
    return out


def diag_indices(n: int, ndim: int = 2) -> tuple[GPUArray, ...]:
    """Index arrays of the main diagonal of an array of so many axes of length n."""
    return (factory.arange(layout.integer(n, "diag_indices: n"), dtype="int64"),) * ndim


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[GPUArray, GPUArray]:
    """Index arrays of an (n, m) matrix on and below the k-th diagonal; square when m is left out. Made on the host."""
    import numpy as np

    rows, columns = np.tril_indices(n, k, m)
    return factory.from_numpy(rows), factory.from_numpy(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[GPUArray, GPUArray]:
    """Index arrays of an (n, m) matrix on and above the k-th diagonal; square when m is left out. Made on the host."""
    import numpy as np

    rows, columns = np.triu_indices(n, k, m)
    return factory.from_numpy(rows), factory.from_numpy(columns)


def meshgrid(*arrays: GPUArray, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[GPUArray, ...]:
    """1-D (or 0-d) arrays as coordinates of a grid: each repeated along the axes of the others.

    indexing: "xy" puts the first array along the second axis, "ij" along the first. sparse: the repeated axes have one
    element. copy: False gives views that cannot be written.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing {indexing!r} is unknown; use 'xy' or 'ij'")
    ndim = len(arrays)
    axes = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        axes[:2] = [1, 0]
    lines = []
    for axis, array in zip(axes, arrays, strict=True):
        if check_array(array, "meshgrid").ndim > 1:
            raise ShapeError(f"meshgrid: coordinates are 1-D, one array has shape {array.shape}")
        lines.append(shape.reshape(array, tuple(array.size if k == axis else 1 for k in range(ndim))))
    grids = tuple(lines) if sparse else shape.broadcast_arrays(*lines)
    return tuple(copying.clone(array) for array in grids) if copy else grids
