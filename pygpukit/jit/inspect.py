"""What a compiled kernel uses of a multiprocessor, and how many of its blocks fit."""

from __future__ import annotations

from dataclasses import dataclass

from pygpukit._core import native

_REGISTER_GRANULARITY = 256  # registers are given out by the warp in steps of this many
_SHARED_RESERVED_BYTES = 1024  # a block's own bookkeeping, on every supported device


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
    device = native.device_info(native.current_device())
    blocks = function.occupancy(block, shared_bytes)
    warp = device["warp_size"]
    warps_of_block = -(-block // warp)
    max_warps = device["max_threads_per_multiprocessor"] // warp
    limits = {"threads": max_warps // warps_of_block}
    info = function.info
    if info["registers"]:
        per_warp = -(-info["registers"] * warp // _REGISTER_GRANULARITY) * _REGISTER_GRANULARITY
        limits["registers"] = device["registers_per_multiprocessor"] // per_warp // warps_of_block
    shared = info["static_shared_bytes"] + shared_bytes
    if shared:
        limits["shared memory"] = device["max_shared_per_multiprocessor_bytes"] // (shared + _SHARED_RESERVED_BYTES)
    limiter = min(limits, key=lambda name: limits[name])
    return Occupancy(blocks, blocks * warps_of_block, max_warps, limiter if limits[limiter] <= blocks else "blocks")
