"""Devices and what they can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import Any, NamedTuple, SupportsIndex

from pygpukit._core import native
from pygpukit.core import pretended
from pygpukit.core.backend import backend
from pygpukit.core.capabilities import DeviceCapabilities
from pygpukit.core.choices import by_device
from pygpukit.core.errors import DeviceMismatchError


@dataclass(frozen=True)
class DeviceInfo:
    """Facts about one device. total_memory, shared memory and L2 are in bytes."""

    name: str
    total_memory: int
    compute_capability: tuple[int, int] | None
    multiprocessor_count: int
    max_threads_per_block: int
    warp_size: int
    max_threads_per_multiprocessor: int
    max_shared_memory_per_block: int
    l2_cache_size: int
    driver_version: tuple[int, int] | None  # None on the simulated device


FallbackDeviceCapabilities = DeviceCapabilities  # the documented second name


def is_cuda_available() -> bool:
    """True when a CUDA driver with a supported device answers. Opens no backend and never raises."""
    return native.cuda_probe() is None


def device_count() -> int:
    """Devices of the open backend: real ones on cuda, simulated ones on sim."""
    return native.device_count()


DeviceLike = SupportsIndex | str


def index_of(device: DeviceLike, what: str) -> int:
    """The number of a device that is said as a number, a gp.cuda.Device, or a text such as "cuda:1".

    Raises DeviceMismatchError for a device that does not exist, and TypeError for what is no number and no text.
    """
    remedy = 'give its number, a gp.cuda.Device, or a text such as "cuda:1"'
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        if kind != "cuda" or not number.isdecimal():
            raise DeviceMismatchError(f"{what}: {device!r} is no device; {remedy}")
        place = int(number)
    elif isinstance(device, bool) or not hasattr(device, "__index__"):
        raise TypeError(f"{what}: {device!r} is no device; {remedy}")
    else:
        place = index(device)
    if not 0 <= place < device_count():
        raise DeviceMismatchError(f"{what}: there is no device {place}; this process has {device_count()}, from 0 on")
    return place


_arrive: Callable[[int], bool] | None = None


def when_arriving(arrive: Callable[[int], bool]) -> None:
    """Ask this for the thread's work whenever it has gone to a device: True where it has set the stream there."""
    global _arrive
    _arrive = arrive


def go_to(place: int) -> None:
    """Send the thread's work to a device, on its stream there: the default one, outside of tasks."""
    native.set_device(place)
    if _arrive is None or not _arrive(place):
        native.set_current_stream(None)


@contextmanager
def current_device(device: DeviceLike | None) -> Iterator[None]:
    """Work of the block goes to that device, on its default stream; None changes nothing. Errors as index_of()."""
    before = native.current_device()
    if device is None or (place := index_of(device, "device")) == before:
        yield
        return
    stream = native.current_stream()
    go_to(place)
    try:
        yield
    finally:
        go_to(before)
        native.set_current_stream(stream)


def device_facts(device_id: int) -> dict[str, Any]:
    """The fields of the driver table's device description: they never change, and asking a driver takes many calls."""
    return _facts(device_id) if pretended.current is None else pretended.current.facts


@cache
def _facts(device_id: int) -> dict[str, Any]:
    return native.device_info(device_id)


class Facts(NamedTuple):
    """The facts of a device that choices of kernels ask for.

    capability: 90 for SM 9.0. sm_count: streaming multiprocessors. shared_bytes: shared memory that a block may ask
    for. clock_khz: of a multiprocessor; bandwidth: bytes of memory in a second; 0 where the driver does not say.
    """

    name: str
    capability: int
    sm_count: int
    shared_bytes: int
    clock_khz: int
    bandwidth: float


@by_device
def current() -> Facts:
    """The facts of the current device."""
    facts = device_facts(native.current_device())
    return Facts(
        name=str(facts["name"]),
        capability=10 * int(facts["compute_major"]) + int(facts["compute_minor"]),
        sm_count=int(facts["multiprocessor_count"]),
        shared_bytes=int(facts["max_shared_per_block_optin_bytes"]),
        clock_khz=int(facts["clock_khz"]),
        bandwidth=int(facts["memory_clock_khz"]) * 1e3 * int(facts["memory_bus_bits"]) / 4,  # two bits a clock
    )


def get_device_info(device_id: int = 0) -> DeviceInfo:
    """Facts about a device. Raises DriverError when there is no such device."""
    facts = device_facts(device_id)
    version = facts["driver_version"]
    return DeviceInfo(
        name=facts["name"],
        total_memory=facts["total_memory_bytes"],
        compute_capability=(facts["compute_major"], facts["compute_minor"]),
        multiprocessor_count=facts["multiprocessor_count"],
        max_threads_per_block=facts["max_threads_per_block"],
        warp_size=facts["warp_size"],
        max_threads_per_multiprocessor=facts["max_threads_per_multiprocessor"],
        max_shared_memory_per_block=facts["max_shared_per_block_optin_bytes"],
        l2_cache_size=facts["l2_bytes"],
        driver_version=(version // 1000, version % 1000 // 10) if version else None,
    )


def get_device_capabilities(device_id: int = 0) -> DeviceCapabilities:
    """Features of a device; the simulated one has no tensor cores. Raises DriverError when there is no such device."""
    facts = device_facts(device_id)
    sm = 10 * facts["compute_major"] + facts["compute_minor"]
    return DeviceCapabilities(
        sm_version=sm,
        device_id=device_id,
        name=facts["name"],
        has_tensor_cores=None if backend() == "cuda" else False,
        total_memory=facts["total_memory_bytes"],
        l2_cache_size=facts["l2_bytes"],
        shared_mem_per_block=facts["max_shared_per_block_bytes"],
        max_threads_per_block=facts["max_threads_per_block"],
        sm_count=facts["multiprocessor_count"],
        warp_size=facts["warp_size"],
    )


def get_memory_info() -> tuple[int, int]:
    """(free, total) bytes of the current device, as the device says."""
    return native.memory_info()
