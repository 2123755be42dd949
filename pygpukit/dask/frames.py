"""GPUArrays on Dask's wire: shape and type pickled, and the bytes beside them as one frame of the host."""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.sizeof import sizeof

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def register() -> None:
    """Let this process send arrays by Dask, alone or inside of other objects; it may then pickle them, too.

    `cluster`, `map`, `serve` and workers that `pygpukit dask` starts do so themselves, a plain `dask worker` with
    `--preload pygpukit.dask`; a plain `distributed.Client` needs this call. An array arrives on the current device of
    the process that reads it, C-contiguous; it goes by way of the host.

    Examples
    --------
    >>> gp.dask.register()  # doctest: +SKIP
    """
    from pygpukit.array.array import GPUArray

    copyreg.pickle(GPUArray, _frames_of)
    sizeof.register(GPUArray)(_size)


def _frames_of(array: GPUArray) -> tuple[Any, ...]:
    """The array for pickle: protocol 5, which Dask speaks, hands the host's copy over as a frame of its own."""
    data = np.empty(array.nbytes, np.uint8)
    if data.size:
        array._copy_to_host(data)
    return _array_of, (array.shape, array.dtype.name, data)


def _array_of(shape: tuple[int, ...], dtype: str, data: np.ndarray[Any, Any]) -> GPUArray:
    from pygpukit._core import native

    register()  # who reads arrays may send them on
    array = native.empty(shape, dtype)
    if data.size:
        native.copy_from_host(array, data)
    return array


def _size(array: GPUArray) -> int:
    """Bytes by which Dask weighs where tasks go and what it spills."""
    return array.nbytes
