"""Devices by number, as other array libraries have them: `with gp.cuda.Device(1):`, on real and simulated ones."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

from pygpukit._core import native
from pygpukit.core.device import DeviceInfo, DeviceLike, get_device_info, get_memory_info, go_to, index_of
from pygpukit.core.device import current_device as _work_on
from pygpukit.core.device import device_count as device_count
from pygpukit.core.links import Link as Link
from pygpukit.core.links import Links as Links
from pygpukit.core.links import links as links
from pygpukit.core.peers import can_access_peer as can_access_peer
from pygpukit.core.peers import enable_peer_access as enable_peer_access

__all__ = [
    "Device",
    "Link",
    "Links",
    "can_access_peer",
    "current_device",
    "device_count",
    "enable_peer_access",
    "links",
]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)


class _Entered(threading.local):
    """The blocks that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.blocks: list[AbstractContextManager[None]] = []


_entered = _Entered()


class Device:
    """A device: `with Device(1):` sends new arrays, launches and streams of this thread there.

    Parameters
    ----------
    device : int, str or Device, optional
        Its number, counted from 0, or a text such as "cuda:1"; the thread's current device when left out.

    Raises
    ------
    DeviceMismatchError
        There is no such device.
    TypeError
        It is no device, number or text.

    Examples
    --------
    >>> with gp.cuda.Device(0):
    ...     x = gp.zeros((2, 3))
    >>> x.device
    0
    """

    __slots__ = ("id",)

    def __init__(self, device: DeviceLike | None = None) -> None:
        self.id = native.current_device() if device is None else index_of(device, "Device")

    def __enter__(self) -> Device:
        block = _work_on(self.id)
        block.__enter__()
        _entered.blocks.append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        _entered.blocks.pop().__exit__(*error)

    def use(self) -> None:
        """Send the thread's work there until it is sent elsewhere; the thread's stream is the device's default one."""
        if self.id != native.current_device():
            go_to(self.id)

    def synchronize(self) -> None:
        """Wait for all work of the device."""
        with _work_on(self.id):
            native.synchronize()

    @property
    def info(self) -> DeviceInfo:
        """Its facts: name, bytes of memory, multiprocessors."""
        return get_device_info(self.id)

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """(9, 0) for SM 9.0."""
        return self.info.compute_capability

    @property
    def mem_info(self) -> tuple[int, int]:
        """(free, total) bytes, as the device says."""
        with _work_on(self.id):
            return get_memory_info()

    def __index__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash((Device, self.id))

    def __repr__(self) -> str:
        return f"Device({self.id})"


def current_device() -> Device:
    """The device that work of this thread goes to.

    Examples
    --------
    >>> with gp.cuda.Device(0):
    ...     gp.cuda.current_device()
    Device(0)
    """
    return Device()
