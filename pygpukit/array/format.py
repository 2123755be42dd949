"""The text of an array: values, shape, dtype, backend. Copies what it prints to the host and never raises.

The values are those that NumPy prints, under its options (numpy.set_printoptions): all up to its threshold, else the
first and last along every axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import STORAGE_ONLY, bfloat16, int4
from pygpukit.core.graph import capturing

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

MAX_EDGES = 10_000  # elements of a summary; NumPy has more only from six axes on
_PREFIX = "GPUArray("


def array_repr(array: GPUArray) -> str:
    """One text for print() and the notebook. Large arrays show their edges, gathered on the device.

    Waits for the current stream only. What cannot be read (a device in a failed state) is named instead.
    """
    try:
        facts = f"shape={array.shape}, dtype={array.dtype}, backend={native.backend_name()}"
    except Exception as error:  # not even its facts are left
        return f"{_PREFIX}<not readable: {type(error).__name__}>)"
    try:
        text = "<no values while the stream is captured>" if capturing() else _values(array)
    except Exception as error:  # a device in a failed state must still print
        return f"{_PREFIX}<values not readable: {type(error).__name__}>, {facts})"
    separator = ",\n" + " " * len(_PREFIX) if "\n" in text else ", "
    return f"{_PREFIX}{text}{separator}{facts})"


def on_host(array: GPUArray) -> Any:
    """The elements' values in a type that NumPy has: floats that it lacks as float32, int4 as int8."""
    with _its_device(array):
        if array.dtype == int4:
            array = array.astype("int8")
        elif array.dtype == bfloat16 or array.dtype in STORAGE_ONLY:
            array = array.astype("float32")
        return array.to_numpy()


@contextmanager
def _its_device(array: GPUArray) -> Iterator[None]:
    """Work goes to the array's device for a while, whichever is current."""
    current = native.current_device()
    if array.device == current:
        yield
        return
    native.set_device(array.device)
    try:
        yield
    finally:
        native.set_device(current)


def _values(array: GPUArray) -> str:
    import numpy as np

    options = np.get_printoptions()
    threshold, edge = options["threshold"], options["edgeitems"]
    if array.size <= threshold:
        host = on_host(array)
    else:
        edge = next((k for k in range(edge, 0, -1) if _edge_count(array, k) <= MAX_EDGES), 0)
        if not edge:
            return "..."
        host, threshold = _edges(array, edge), 0
    return np.array2string(host, separator=", ", prefix=_PREFIX, threshold=threshold, edgeitems=edge)


def _edge_count(array: GPUArray, edge: int) -> int:
    return prod(min(extent, 2 * edge) for extent in array.shape)


def _edges(array: GPUArray, edge: int) -> Any:
    """The first and last `edge` entries along every long axis, with one entry between them that printing leaves out.

    The two ends of an axis are one strided view: an axis of 2 steps from end to end, then one of `edge` entries.
    """
    import numpy as np

    shape: list[int] = []
    strides: list[int] = []
    for extent, step in zip(array.shape, array.strides, strict=True):
        if extent > 2 * edge:
            shape += [2, edge]
            strides += [(extent - edge) * step, step]
        else:
            shape += [extent]
            strides += [step]
    host = on_host(native.view(array, shape, strides, array.offset))
    host = host.reshape([min(extent, 2 * edge) for extent in array.shape])
    for axis, extent in enumerate(array.shape):
        if extent > 2 * edge:
            first, last = np.split(host, 2, axis)
            host = np.concatenate([first, np.take(first, [0], axis), last], axis)
    return host
