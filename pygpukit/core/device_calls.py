"""The documented low-level calls of a backend: bytes by address, copies, streams. New code has arrays and gp.Stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.errors import ShapeError

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

_allocated: dict[int, GPUArray] = {}  # by address: what allocate() gave and free() has not taken back


@dataclass(frozen=True)
class DeviceProperties:
    """Facts about one device as a backend tells them. total_memory is in bytes."""

    name: str
    total_memory: int
    compute_capability: tuple[int, int] | None = None
    multiprocessor_count: int = 0
    max_threads_per_block: int = 1024
    warp_size: int = 32


class DeviceCalls(ABC):
    """A backend's low-level calls, each of which opens it; raises BackendUnavailableError where that cannot be.

    Memory is the pool's, and the order is that of the thread's current stream, as with arrays.
    """

    __slots__ = ()

    @abstractmethod
    def is_available(self) -> bool:
        """True when this backend can be opened here. Opens nothing."""

    @abstractmethod
    def _open(self) -> None:
        """Open this backend unless it is open. Raises BackendUnavailableError."""

    def get_device_count(self) -> int:
        """The number of its devices."""
        self._open()
        return native.device_count()

    def get_device_properties(self, device_id: int = 0) -> DeviceProperties:
        """Facts about a device. Raises DriverError when there is no such device."""
        self._open()
        facts = native.device_info(device_id)
        return DeviceProperties(
            facts["name"],
            facts["total_memory_bytes"],
            (facts["compute_major"], facts["compute_minor"]),
            facts["multiprocessor_count"],
            facts["max_threads_per_block"],
            facts["warp_size"],
        )

    def allocate(self, size_bytes: int) -> int:
        """The address of size_bytes new bytes of the pool, with undefined contents; free() gives them back.

        Raises ShapeError for fewer than one byte, OutOfMemoryError when there is no room.
        """
        if size_bytes < 1:
            raise ShapeError(f"allocate({size_bytes}): give at least one byte")
        self._open()
        array = native.empty((size_bytes,), "uint8")
        native.pin(array)  # an address that a caller holds stays where it is
        _allocated[array.device_ptr] = array
        return array.device_ptr

    def free(self, ptr: int) -> None:
        """Give back what allocate() returned. Raises ShapeError for another address, an inner one too."""
        array = _allocated.pop(ptr, None)
        if array is None:
            raise ShapeError(f"free({ptr:#x}): allocate() gave no such address, or it was freed already")
        native.unpin(array)

    def copy_host_to_device(self, host_data: np.ndarray[Any, Any], device_ptr: int) -> None:
        """The bytes of a host array, in C order, to an address of allocate() or inside what it gave.

        Returns when host_data may be reused. Raises ShapeError where they do not fit.
        """
        import numpy as np

        data = np.ascontiguousarray(host_data)
        if data.nbytes:
            native.copy_from_host(
                _bytes(device_ptr, data.nbytes, "copy_host_to_device"), data.reshape(-1).view(np.uint8)
            )

    def copy_device_to_host(self, device_ptr: int, size_bytes: int, dtype: Any) -> np.ndarray[Any, Any]:
        """size_bytes from an address, as a 1-D host array of a NumPy or pygpukit dtype. Waits for the work before it.

        Raises ShapeError for bytes that are not there or no whole number of elements.
        """
        import numpy as np

        kind = np.dtype(getattr(dtype, "to_numpy_dtype", lambda: dtype)())
        if size_bytes < 0 or size_bytes % kind.itemsize:
            raise ShapeError(f"copy_device_to_host: {size_bytes} bytes are no whole number of {kind} elements")
        out = np.empty(size_bytes // kind.itemsize, kind)
        if size_bytes:
            native.copy_to_host(out.view(np.uint8), _bytes(device_ptr, size_bytes, "copy_device_to_host"))
        return out

    def memset(self, device_ptr: int, value: int, size_bytes: int) -> None:
        """Set size_bytes from an address to value, 0 to 255. Raises ShapeError for others. Does not wait."""
        if not 0 <= value <= 255:
            raise ShapeError(f"memset: value={value}; a byte is 0 to 255")
        if size_bytes:
            native.fill(_bytes(device_ptr, size_bytes, "memset"), bytes([value]))

    def synchronize(self) -> None:
        """Wait for every stream of the current device. Raises DriverError when a kernel faulted."""
        self._open()
        native.synchronize()

    def create_stream(self, priority: int = 0) -> native.Stream:
        """A new stream of a driver's priority: 0 is the least urgent, -5 the most."""
        self._open()
        return native.Stream(priority)

    def destroy_stream(self, stream: native.Stream) -> None:
        """Wait for a stream's work; it goes when nobody holds it any more."""
        stream.synchronize()

    def stream_synchronize(self, stream: native.Stream) -> None:
        """Wait for a stream's work."""
        stream.synchronize()


def _bytes(pointer: int, size: int, what: str) -> GPUArray:
    """size bytes from an address inside what allocate() gave."""
    for start, array in _allocated.items():
        if start <= pointer < start + array.nbytes:
            if size < 0 or pointer + size > start + array.nbytes:
                left = start + array.nbytes - pointer
                raise ShapeError(f"{what}: {size} bytes from {pointer:#x}, where allocate() left {left}")
            return native.view(array, (size,), (1,), pointer - start)
    raise ShapeError(f"{what}: {pointer:#x} is in nothing that allocate() gave and free() has not taken back")
