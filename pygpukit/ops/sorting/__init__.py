"""Sorting and searching: sort, argsort, topk, searchsorted. The order is NumPy's: NaN last, -0.0 equal to 0.0.

Sorting is a stable radix sort by 8-bit digits: elements keep their bits, and counting is in integers, so the same input
gives the same bits on every run. descending=True reverses the order of values (NaN first) but not of equal elements.
Asynchronous on the current stream. Rows are sorted: another axis than the last, or a strided array, is copied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, int64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, host, indexing
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices, check_operand, is_array
from pygpukit.ops.prepared import prepared
from pygpukit.ops.sorting import selecting

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = ["argsort", "searchsorted", "sort", "topk"]

SOURCE = kernels.KernelSpec(__file__, "sort.cu")
SEARCH = kernels.KernelSpec(__file__, "search.cu")
_SORT, _SEARCH = SOURCE.structure("SortLayout"), SEARCH.structure("SearchLayout")
_DIGITS = 256
_MAX_THREADS = 512  # sort.cu: kMaxThreads
_HELD_BYTES = 64  # sort.cu: items()
_COUNTED = 1 << 16  # elements that a block of count_digits counts
_BLOCK = 256
# DataType name -> C++ type; false and true are ordered as 0 and 1.
_CTYPES = CTYPES | {"bool": CTYPES["uint8"]}


@prepared
def sort(
    a: GPUArray, axis: int | None = -1, kind: str | None = None, *, descending: bool = False, stable: bool | None = True
) -> GPUArray:
    """A sorted copy along axis, 1-D and of all elements for axis None; any dtype that computes, complex as NumPy.

    kind ("quicksort", "mergesort", "heapsort", "stable") and stable change nothing: sorting is always stable. Raises
    ShapeError, DTypeError (storage types), DeviceMismatchError.
    """
    check_kind(kind, "sort")
    return _sorted(a, axis, descending, "sort")[0]


@prepared
def argsort(
    a: GPUArray, axis: int | None = -1, kind: str | None = None, *, descending: bool = False, stable: bool | None = True
) -> GPUArray:
    """int64 indices that sort the array along axis; equal elements stay in order. Arguments and errors as sort()."""
    check_kind(kind, "argsort")
    return _sorted(a, axis, descending, "argsort", indexed=True)[1]


def check_kind(kind: str | None, what: str) -> None:
    """Raises ValueError for what is no name of an algorithm in NumPy."""
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"{what}: kind is {kind!r}; it must be 'quicksort', 'mergesort', 'heapsort' or 'stable'")


@prepared
def topk(x: GPUArray, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[GPUArray, GPUArray]:
    """(values, indices) of the k largest or smallest elements along axis, the best first, equal ones by position.

    NaN counts as larger than any number. sorted=False leaves the order open; it is the same now. Up to k = 64 long rows
    are not sorted. Raises ShapeError for a k below 0 or above the axis' length; else as sort().
    """
    x = check_ordered(x, "topk")
    axis = layout.normalize_axis(axis, x.ndim, "topk")
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"topk: k = {k} is not between 0 and {x.shape[axis]}, the length of axis {axis} of {x.shape}")
    if not host.computes() and x.size and selecting.suits(x.shape[axis], k):
        selected = selecting.select(_as_rows(x, axis), k, largest, ctype(x.dtype))
        return _along(selected[0], axis), _along(selected[1], axis)
    first = (slice(None),) * axis + (slice(0, k),)
    values, indices = _sorted(x, axis, largest, "topk", indexed=True)
    return copying.contiguous(values[first]), copying.contiguous(indices[first])


@prepared
def searchsorted(a: GPUArray, v: Operand, side: str = "left", sorter: GPUArray | None = None) -> GPUArray:
    """int64 positions at which the values v keep the ascending 1-D array a sorted; shape of v.

    side: "left" before equal elements, "right" behind them. sorter: indices that sort a. Types promote as in
    arithmetic. Raises ShapeError unless a is 1-D, ValueError for another side, DTypeError, DeviceMismatchError.
    """
    a, v = check_array(a, "searchsorted: a"), check_operand(v, "searchsorted: v")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is {side!r}; use 'left' or 'right'")
    if a.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted array has shape {a.shape}; it must have one dimension")
    check_devices("searchsorted", a, *(x for x in (v, sorter) if is_array(x)))
    if is_array(v):
        values, dtype = v, promotion.promote(a.dtype, v.dtype)
    else:
        number: Any = v
        dtype = promotion.with_scalar(a.dtype, number)
        values = pointwise.scalar_array(number, dtype)
    if sorter is not None:
        a = _taken(a, sorter)
    a, values = (copying.contiguous(x if x.dtype == dtype else copying.astype(x, dtype)) for x in (a, values))
    out = native.empty(values.shape, int64)
    if not out.size:
        return out
    if host.computes():

        def compute() -> None:
            import numpy as np

            host.memory(out)[...] = np.searchsorted(host.values(a), host.values(values), side)  # type: ignore[call-overload]

        native.host_launch("searchsorted", compute, [a, values, out])
    else:
        grid = (-(-out.size // _BLOCK), 1, 1)
        fields = _SEARCH.pack(length=a.size, count=out.size, right=side == "right")
        kernels.launch(SEARCH.of(f"pk::search_sorted<{ctype(dtype)}>"), grid, (_BLOCK, 1, 1), a, values, out, fields)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that sorting can ask for."""
    for name in dict.fromkeys(_CTYPES.values()):
        passes = (f"pk::sort_pass<{name}, {indexed}>" for indexed in ("false", "true"))
        yield (f"pk::sort_rows<{name}>", f"pk::count_digits<{name}>", *passes)


@SEARCH.lists
def searching() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that searching and unique() can ask for."""
    for name in dict.fromkeys(_CTYPES.values()):
        yield (f"pk::search_sorted<{name}>", f"pk::mark_heads<{name}>")
    yield ("pk::invert_order",)


def ctype(dtype: DataType) -> str:
    """The C++ type that elements are ordered as."""
    return _CTYPES[dtype.name]


def check_ordered(a: Any, what: str) -> GPUArray:
    """a, an array of a type that has an order, on the current device. Raises DTypeError and DeviceMismatchError."""
    a = check_array(a, what)
    check_devices(what, a)
    if a.dtype.name not in _CTYPES:
        raise DTypeError(f"{what}: {a.dtype} is a storage type without an order; convert to a type that computes first")
    return a


def _sorted(
    a: GPUArray, axis: int | None, descending: bool, what: str, indexed: bool = False
) -> tuple[GPUArray, GPUArray]:
    """(values, indices) in order; only one of the two is asked for unless indexed. Indices are not valid without."""
    a = check_ordered(a, what)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = layout.normalize_axis(axis, a.ndim, what)
    rows = _as_rows(a, axis)
    values = native.empty(rows.shape, a.dtype)
    indices = native.empty(rows.shape if indexed or _in_block(rows) else 1, int64)
    if rows.size:
        if host.computes():
            _on_host(rows, values, indices if indexed else None, descending, what)
        elif _in_block(rows):
            _sort_rows(rows, values, indices, descending)
        else:
            _sort_passes(rows, values, indices, descending, indexed)
    return _along(values, axis), _along(indices, axis) if indexed else indices


def _as_rows(a: GPUArray, axis: int) -> GPUArray:
    """The array with this axis last, C-contiguous."""
    order = [*range(axis), *range(axis + 1, a.ndim), axis]
    return copying.contiguous(a.transpose(order) if axis != a.ndim - 1 else a)


def _along(rows: GPUArray, axis: int) -> GPUArray:
    """An array of _as_rows() with its last axis back in its place, C-contiguous."""
    last = rows.ndim - 1
    return rows if axis == last else copying.contiguous(rows.transpose([*range(axis), last, *range(axis, last)]))


def _on_host(rows: GPUArray, values: GPUArray, indices: GPUArray | None, descending: bool, what: str) -> None:
    import numpy as np

    def compute() -> None:
        x = host.values(rows)
        order = stable_order(x, descending)
        host.memory(values)[...] = np.take_along_axis(host.memory(rows), order, -1)
        if indices is not None:
            host.memory(indices)[...] = order

    native.host_launch(what, compute, [rows, values, *([] if indices is None else [indices])])


def stable_order(x: np.ndarray[Any, Any], descending: bool = False) -> np.ndarray[Any, Any]:
    """Indices that sort host rows stably; descending reverses values, not equal elements."""
    import numpy as np

    if not descending:
        return np.argsort(x, -1, kind="stable")
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]


def _items(itemsize: int, indexed: bool) -> int:
    """sort.cu: items()."""
    return min(16, _HELD_BYTES // max(itemsize, 8 if indexed else 4))


def _in_block(rows: GPUArray) -> bool:
    """True when a row fits the shared memory of a block."""
    return rows.shape[-1] <= _MAX_THREADS * _items(rows.itemsize, indexed=False)


def _passes(dtype: DataType) -> int:
    """order.cuh: Digits::kPasses."""
    return dtype.itemsize + (dtype in promotion.COMPLEX)


def _sort_rows(rows: GPUArray, values: GPUArray, indices: GPUArray, descending: bool) -> None:
    length = rows.shape[-1]
    count = rows.size // length
    items = _items(rows.itemsize, indexed=False)
    together = min(_DIGITS, _MAX_THREADS * items // length, count)
    held = together * length
    threads = 32 if held <= 128 else 128 if held <= min(1024, 128 * items) else _MAX_THREADS
    fields = _SORT.pack(rows=count, length=length, pieces=together, number=0, flip=_flip(descending))
    kernel = f"pk::sort_rows<{ctype(rows.dtype)}>"
    _launch(kernel, -(-count // together), threads, rows, values, indices, fields)


def _sort_passes(rows: GPUArray, values: GPUArray, indices: GPUArray, descending: bool, indexed: bool) -> None:
    length = rows.shape[-1]
    count = rows.size // length
    tiles = -(-length // (_MAX_THREADS * _items(rows.itemsize, indexed)))
    passes = _passes(rows.dtype)
    name, flip = ctype(rows.dtype), _flip(descending)
    # sort.cu: sort_pass
    state = native.empty(count * (passes + tiles) * _DIGITS, "uint64")
    native.fill(state, bytes(8))
    spans = -(-length // _COUNTED)
    fields = _SORT.pack(rows=count, length=length, pieces=spans, number=0, flip=flip)
    _launch(f"pk::count_digits<{name}>", count * spans, _MAX_THREADS, rows, state, fields)
    # The two buffers take turns so that the last pass writes the result; the first reads the array itself.
    spare = passes > 1
    buffers = (values, native.empty(rows.shape if spare else 1, rows.dtype))
    orders = (indices, native.empty(rows.shape if spare and indexed else 1, int64))
    source, order = rows, orders[1]
    for number in range(passes):
        turn = (passes - 1 - number) % 2
        fields = _SORT.pack(rows=count, length=length, pieces=tiles, number=number, flip=flip)
        kernel = f"pk::sort_pass<{name}, {'true' if indexed else 'false'}>"
        arrays = (source, order, buffers[turn], orders[turn], state)
        _launch(kernel, count * tiles, _MAX_THREADS, *arrays, fields)
        source, order = buffers[turn], orders[turn]


def _flip(descending: bool) -> int:
    return _DIGITS - 1 if descending else 0


def _launch(kernel: str, blocks: int, threads: int, *args: GPUArray | bytes) -> None:
    kernels.launch(SOURCE.of(kernel), (blocks, 1, 1), (threads, 1, 1), *args)


def _taken(a: GPUArray, sorter: GPUArray) -> GPUArray:
    """a[sorter] for searchsorted()."""
    sorter = check_array(sorter, "searchsorted: sorter")
    if sorter.shape != a.shape:
        raise ShapeError(f"searchsorted: sorter has shape {sorter.shape}, the array {a.shape}; both must be equal")
    if sorter.dtype != int64:
        raise DTypeError(f"searchsorted: sorter is {sorter.dtype}; it must be int64, as argsort() gives it")
    return indexing.take(a, sorter)
