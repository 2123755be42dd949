"""Clocks as NVML tells them: opened at run time where the driver brings it, and None everywhere else."""

from __future__ import annotations

import ctypes
import sys
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

from pygpukit._core import native

_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
_CLOCK_SM = 1
# Bits of nvmlDeviceGetCurrentClocksThrottleReasons that hold the clock down; idleness (bit 0) is no such reason.
_REASONS = {
    0x002: "application clocks set",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clocks set",
}


@dataclass(frozen=True)
class ClockReading:
    """The SM clock in MHz (None where the device does not tell) and what held it down at that moment."""

    sm_mhz: int | None
    reasons: tuple[str, ...]


def read_clocks(device: int) -> ClockReading | None:
    """The clocks of a device of the open backend now; None where NVML or the device in it cannot be found."""
    library, handle = _library(), None
    if library is not None:
        handle = _handle(library, native.device_info(device)["uuid"])
    if library is None or handle is None:
        return None
    mhz, bits = ctypes.c_uint(), ctypes.c_ulonglong()
    is_read = library.nvmlDeviceGetClockInfo(handle, _CLOCK_SM, ctypes.byref(mhz)) == 0
    if library.nvmlDeviceGetCurrentClocksThrottleReasons(handle, ctypes.byref(bits)) != 0:
        bits.value = 0
    reasons = tuple(words for bit, words in _REASONS.items() if bits.value & bit)
    return ClockReading(mhz.value if is_read else None, reasons)


@cache
def _library() -> Any:
    """NVML, opened and initialised; None where it is absent or refuses. The simulated device has none."""
    if native.backend_name() != "cuda":
        return None
    try:
        library = ctypes.CDLL(_LIBRARY)
        return library if library.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def _handle(library: Any, identity: bytes) -> ctypes.c_void_p | None:
    handle = ctypes.c_void_p()
    name = f"GPU-{uuid.UUID(bytes=identity)}".encode()
    has_handle = library.nvmlDeviceGetHandleByUUID(ctypes.c_char_p(name), ctypes.byref(handle)) == 0
    return handle if has_handle else None
