"""Occupancy: the part of a multiprocessor that a compiled kernel uses, and how many of its blocks fit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pygpukit._core import native
from pygpukit.core.device import device_facts
from pygpukit.core.errors import GPUError
from pygpukit.jit.inspect.cubin import Resources

_WARP = 32
_WARP_GRANULARITY = 4  # the registers of a multiprocessor are in four parts, one for each of its schedulers
_REGISTER_GRANULARITY = 256  # registers are given out by the warp in steps of this many
_REGISTERS = 65536  # of a multiprocessor, on every supported device
_SHARED_RESERVED_BYTES = 1024  # a block's own bookkeeping, on every supported device
_SHARED_GRANULARITY = 128


@dataclass(frozen=True)
class _Multiprocessor:
    """The resources that one multiprocessor holds at once."""

    max_warps: int
    max_blocks: int
    shared_bytes: int


# CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
_MULTIPROCESSORS = {
    80: _Multiprocessor(64, 32, 164 << 10),
    86: _Multiprocessor(48, 16, 100 << 10),
    87: _Multiprocessor(48, 16, 164 << 10),
    89: _Multiprocessor(48, 24, 100 << 10),
    90: _Multiprocessor(64, 32, 228 << 10),
    100: _Multiprocessor(64, 32, 228 << 10),
    103: _Multiprocessor(64, 32, 228 << 10),
    120: _Multiprocessor(48, 24, 100 << 10),
    121: _Multiprocessor(48, 24, 100 << 10),
}


@dataclass(frozen=True)
class Occupancy:
    """blocks and warps that are resident on one multiprocessor at once; fraction of the warps it can hold; limiter
    names what keeps more blocks out ("threads", "registers", "shared memory" or "blocks")."""

    blocks: int
    warps: int
    max_warps: int
    limiter: str

    @property
    def fraction(self) -> float:
        return self.warps / self.max_warps

    def __str__(self) -> str:
        resident = f"{self.blocks} blocks, {self.warps} of {self.max_warps} warps"
        return f"{self.fraction:.0%}: {resident}, limited by {self.limiter}"


def occupancy(function: native.Function, block: int, shared_bytes: int = 0) -> Occupancy:
    """The driver's figure for `block` threads and `shared_bytes` of dynamic shared memory, and what limits it."""
    device = device_facts(native.current_device())
    info = function.info
    blocks = function.occupancy(block, shared_bytes)
    warps_of_block = -(-block // device["warp_size"])
    max_warps = device["max_threads_per_multiprocessor"] // device["warp_size"]
    shared = info["static_shared_bytes"] + shared_bytes
    limits = _limits(
        warps_of_block, max_warps, info["registers"], shared, device["max_shared_per_multiprocessor_bytes"]
    )
    limiter = min(limits, key=lambda name: limits[name])
    return Occupancy(blocks, blocks * warps_of_block, max_warps, limiter if limits[limiter] <= blocks else "blocks")


def occupancy_of(arch: str, resources: Resources, block: int, shared_bytes: int = 0) -> Occupancy:
    """occupancy() for an architecture ("sm_90a") whose device need not be there, by the rules of the CUDA guide."""
    number = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    device = _MULTIPROCESSORS.get(int(number[1])) if number else None
    if device is None:
        known = ", ".join(f"sm_{one}" for one in _MULTIPROCESSORS)
        raise GPUError(f"the occupancy on {arch} is not known here; known: {known}")
    if not 1 <= block <= 1024:
        raise ValueError(f"block is {block}; a block has 1 to 1024 threads")
    warps_of_block = -(-block // _WARP)
    shared = resources.shared_bytes + shared_bytes
    limits = _limits(warps_of_block, device.max_warps, resources.registers, shared, device.shared_bytes)
    limits["blocks"] = device.max_blocks
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps_of_block, device.max_warps, limiter)


def _limits(warps_of_block: int, max_warps: int, registers: int, shared: int, device_shared: int) -> dict[str, int]:
    """The number of blocks that each resource has room for."""
    limits = {"threads": max_warps // warps_of_block}
    if registers:
        per_warp = -(-registers * _WARP // _REGISTER_GRANULARITY) * _REGISTER_GRANULARITY
        warps = _REGISTERS // per_warp // _WARP_GRANULARITY * _WARP_GRANULARITY
        limits["registers"] = warps // warps_of_block
    if shared:
        needed = -(-(shared + _SHARED_RESERVED_BYTES) // _SHARED_GRANULARITY) * _SHARED_GRANULARITY
        limits["shared memory"] = device_shared // needed
    return limits
