"""Team: what groups of threads and groups of processes have in common."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pygpukit.comm.failures import repeated
from pygpukit.comm.orders import Orders
from pygpukit.comm.windows import MAX_RANKS
from pygpukit.core.device import device_count, index_of
from pygpukit.core.errors import DeviceMismatchError, InvalidSpecError

if TYPE_CHECKING:
    from pygpukit.core.device import DeviceLike

Own = TypeVar("Own", bound="Team")


class Team(ABC):
    """Devices that work together, each as one rank, until one fails or the context ends."""

    def __init__(self, devices: Sequence[DeviceLike] | None, timeout: float) -> None:
        self.devices = _chosen(devices, timeout, type(self).__name__)
        self.size = len(self.devices)
        self.timeout = timeout
        self._lock = threading.Lock()
        self._orders = Orders(self.size)
        self._failure: BaseException | None = None

    def check(self) -> None:
        """Raises CollectiveError when the group has failed."""
        with self._lock:
            if self._failure is not None:
                raise repeated(self._failure)

    @abstractmethod
    def close(self) -> None:
        """Give the group's memory back. It is of no use any more."""

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(devices={list(self.devices)})"


def _chosen(devices: Sequence[DeviceLike] | None, timeout: float, what: str) -> tuple[int, ...]:
    """The numbers of a group's devices, all where none are named. Raises as the groups do."""
    chosen = range(device_count()) if devices is None else [index_of(one, what) for one in devices]
    if not 1 <= len(chosen) <= MAX_RANKS:
        raise InvalidSpecError(f"{what}: {len(chosen)} devices; give 1 to {MAX_RANKS}", "devices")
    if len(set(chosen)) < len(chosen):
        raise DeviceMismatchError(
            f"{what}: devices {list(chosen)}: a device can be one rank only; name each once, or simulate more by "
            "PYGPUKIT_SIM_DEVICES"
        )
    if not timeout > 0:
        raise InvalidSpecError(f"{what}: timeout={timeout}; give seconds, more than 0", "timeout")
    return tuple(chosen)
