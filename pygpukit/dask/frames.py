"""GPUArrays on Dask's wire: laid on their reader's desk where that is of this host, else frames of the host."""

from __future__ import annotations

import copyreg
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.sizeof import sizeof
from dask.tokenize import normalize_token
from distributed.protocol.serialize import dask_deserialize, dask_serialize

from pygpukit.core.text import human_bytes
from pygpukit.dask import connections, desk, ways

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_SMALLEST_BYTES = 1 << 20  # a handover of less takes longer than its copies


def register() -> None:
    """Let this process send arrays by Dask, alone or inside of other objects; it may then pickle them, too.

    `cluster`, `map`, `serve` and workers that `pygpukit dask` starts do so themselves, a plain `dask worker` with
    `--preload pygpukit.dask`; a plain `distributed.Client` needs this call. An array arrives on the current device of
    the process that reads it, C-contiguous: between processes of one host from device to device, else over host memory;
    `stats()` counts both.

    Examples
    --------
    >>> gp.dask.register()  # doctest: +SKIP
    """
    from pygpukit.array.array import GPUArray

    copyreg.pickle(GPUArray, _frames_of)
    sizeof.register(GPUArray)(_size)
    normalize_token.register(GPUArray)(_token)
    dask_serialize.register(GPUArray)(_laid)
    dask_deserialize.register(GPUArray)(_taken)
    connections.tell()


def _laid(array: GPUArray, context: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """Dask's header of an array that lies on its reader's desk. NotImplementedError lets Dask pickle it instead."""
    recipient = (context or {}).get("recipient")
    if recipient is None:  # it is for Dask's disk
        raise NotImplementedError
    reader = recipient.get(connections.KEY, {})
    try:
        if not reader:
            raise desk.NotTakenError("the reader tells of no desk")
        if reader["here"] != desk.here():
            raise desk.NotTakenError("the reader is on another host, in another container or has no such devices")
        if array.nbytes < _SMALLEST_BYTES:
            raise desk.NotTakenError(f"smaller than {human_bytes(_SMALLEST_BYTES)}")
        number = desk.lay(array, reader["desk"], reader["connection"])
    except desk.NotTakenError as reason:
        ways.by_host(recipient.get("address", ""), reader.get("desk", ""), str(reason))
        raise NotImplementedError from reason
    ways.count("sent", "peer", array.nbytes)
    return {"connection": reader["connection"], "number": number}, []


def _taken(header: dict[str, Any], frames: list[Any]) -> GPUArray:
    array = desk.own().take(header["connection"], header["number"])
    ways.count("received", "peer", array.nbytes)
    return array


def _frames_of(array: GPUArray) -> tuple[Any, ...]:
    """The array for pickle: protocol 5, which Dask speaks, hands the host's copy over as a frame of its own."""
    ways.count("sent", "host", array.nbytes)
    return _array_of, (array.shape, array.dtype.name, _host_copy(array))


def _token(array: GPUArray) -> tuple[Any, ...]:
    """The same for the same data: Dask makes a name of it."""
    return "GPUArray", array.shape, array.dtype.name, hashlib.blake2b(_host_copy(array).data).hexdigest()


def _host_copy(array: GPUArray) -> np.ndarray[Any, Any]:
    data = np.empty(array.nbytes, np.uint8)
    if data.size:
        array._copy_to_host(data)
    return data


def _array_of(shape: tuple[int, ...], dtype: str, data: np.ndarray[Any, Any]) -> GPUArray:
    from pygpukit._core import native

    register()  # who reads arrays may send them on
    array = native.empty(shape, dtype)
    if data.size:
        native.copy_from_host(array, data)
    ways.count("received", "host", array.nbytes)
    return array


def _size(array: GPUArray) -> int:
    """Bytes by which Dask weighs where tasks go and what it spills."""
    return array.nbytes
