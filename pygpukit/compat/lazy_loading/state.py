"""TensorState and PoolStats: where a tensor of a LazyModelLoader is, and what its budget has been used for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pygpukit.models.safetensors import OfEither


class TensorState(IntEnum):
    """Where a tensor of a LazyModelLoader is. `name` may be asked of the class or of a member."""

    OnDisk = 0  # in its file alone: never asked for, or unloaded
    Loading = 1  # its copy to the device is under way; what uses the array comes after it
    OnGpu = 2
    Evicted = 3  # in its file alone: it gave way to another one

    name = OfEither(lambda state: TensorState(state)._name_)


@dataclass(frozen=True)
class PoolStats:
    """The figures of a LazyModelLoader's budget; sizes in bytes.

    Parameters
    ----------
    quota : int
        The budget.
    used : int
        Of the tensors on the device.
    cached : int
        0: memory of tensors that are let go of goes back to the device's pool (gp.memory.stats()).
    available : int
        Left of the budget.
    allocation_count : int
        How often a tensor was asked for: reuse_count and cudamalloc_count together.
    reuse_count : int
        How often it was on the device, or on its way.
    eviction_count : int
        Tensors that gave way to others.
    cudamalloc_count : int
        Copies that were begun.
    active_blocks : int
        Tensors on the device.
    free_blocks : int
        0, as cached.
    """

    quota: int
    used: int
    cached: int
    available: int
    allocation_count: int
    reuse_count: int
    eviction_count: int
    cudamalloc_count: int
    active_blocks: int
    free_blocks: int

    @property
    def utilization(self) -> float:
        """Percent of the budget that is used; 0 of a budget of 0."""
        return 100.0 * self.used / self.quota if self.quota else 0.0

    @property
    def total_blocks(self) -> int:
        """active_blocks and free_blocks together."""
        return self.active_blocks + self.free_blocks
