"""Loading PTX that was rewritten: the driver's linker assembles it, and the CUBIN stays in the kernel cache.

The driver would load the text as well. But no thread of the process launches anything while it compiles in there, and
all go on while its linker does (docs/performance.md).
"""

from __future__ import annotations

from contextlib import suppress

from pygpukit._core import native
from pygpukit.core.errors import DriverError
from pygpukit.jit.cache.store import keep, kernel_cache, key_of
from pygpukit.jit.compile.nvrtc import device_arch


def load_ptx(text: str) -> native.Module:
    """The module of PTX on the current device. Raises DriverError, with the compiler's log where that refuses it."""
    key, _ = key_of(_parts(text))
    kept = kernel_cache().get(key)
    if kept is not None:
        with suppress(DriverError):  # it was written by something else: made anew, where other troubles show again
            return native.Module(kept[0])
    cubin = native.assemble_ptx(text.encode() + b"\0")
    module = native.Module(cubin)
    keep(key, cubin)
    return module


def _parts(text: str) -> dict[str, bytes]:
    """The parts that the CUBIN follows from; the driver's version stands for its compiler."""
    device = native.current_device()
    return {
        "kind": b"variant",
        "arch": device_arch(device).encode(),
        "driver": str(native.device_info(device)["driver_version"]).encode(),
        "ptx": text.encode(),
    }
