"""launch(): a built-in kernel on the current stream. What only a kernel's first launch needs is in builder.py."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.device import device_facts

if TYPE_CHECKING:
    from pygpukit.kernels.spec import Extent, KernelSpec

_OVERLAP = 4  # driver.h: PK_LAUNCH_PDL
_kernels: dict[tuple[int, KernelSpec], native.Kernel] = {}  # by device


def launch(spec: KernelSpec, grid: Extent, block: Extent, *args: native.ArrayBase | bytes) -> native.Kernel:
    """Launch a kernel: arrays become pointers, bytes by-value parameters. Compiled on its first launch on a device.

    Raises as compile_source(), KernelArgumentError for arguments that do not fit its parameters.
    """
    device = native.current_device()
    kernel = _kernels.get((device, spec))
    if kernel is None:
        from pygpukit.kernels import builder

        kernel = _kernels[device, spec] = builder.kernel(spec, args)
    flags = spec.flags | _OVERLAP if spec.overlapping and _can_overlap(device) else spec.flags
    kernel.bind(grid, block, spec.shared_bytes, None, flags, spec.cluster)(*args)
    return kernel


@cache
def _can_overlap(device: int) -> bool:
    return native.backend_name() == "cuda" and int(device_facts(device)["compute_major"]) >= 9
