"""Devices that reach each other's memory: asking for it and enabling it."""

from __future__ import annotations

from pygpukit._core import native
from pygpukit.core.device import DeviceLike, index_of
from pygpukit.core.errors import DeviceMismatchError


def can_access_peer(device: DeviceLike, peer: DeviceLike) -> bool:
    """Tell whether kernels and copies of a device can read and write the memory of another one without the host.

    Parameters
    ----------
    device, peer : int, str or Device
        Two different devices.

    Returns
    -------
    bool
        What the driver says; nothing is enabled.

    Raises
    ------
    DeviceMismatchError
        There is no such device, or both are one.

    Examples
    --------
    >>> [(a, b) for a in range(gp.device_count()) for b in range(a) if not gp.cuda.can_access_peer(a, b)]
    []
    """
    return bool(native.peer_info(*_pair(device, peer, "can_access_peer"))["access"])


def enable_peer_access(device: DeviceLike, peer: DeviceLike) -> None:
    """Let kernels and copies of a device read and write the memory of another one, as it is and as it will grow.

    Copies between devices do so themselves; a kernel that is given an address on the peer needs it. It goes one way.

    Parameters
    ----------
    device, peer : int, str or Device
        Two different devices: the one that accesses, and the one whose memory is accessed.

    Raises
    ------
    DeviceMismatchError
        There is no such device, both are one, or the device cannot access the peer's memory.

    Examples
    --------
    >>> for a in range(gp.device_count()):
    ...     for b in range(gp.device_count()):
    ...         if a != b and gp.cuda.can_access_peer(a, b):
    ...             gp.cuda.enable_peer_access(a, b)
    """
    place, other = _pair(device, peer, "enable_peer_access")
    if not native.peer_info(place, other)["access"]:
        raise DeviceMismatchError(
            f"enable_peer_access: device {place} cannot access the memory of device {other} "
            "(gp.cuda.can_access_peer says so); copy by .to(), which goes by way of the host"
        )
    native.peer_enable(place, other)


def _pair(device: DeviceLike, peer: DeviceLike, what: str) -> tuple[int, int]:
    place, other = index_of(device, what), index_of(peer, what)
    if place == other:
        raise DeviceMismatchError(f"{what}: device {place} is no peer of its own; name two different devices")
    return place, other
