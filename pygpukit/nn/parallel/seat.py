"""Seat: a device's place among those of a model, whose group is made anew when it has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.comm import Rank


class Seat:
    """The collectives of one device. rank: of the group of the moment."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank

    def add_up(self, x: GPUArray) -> None:
        """x, in place, becomes the sum of all devices' x, added in their order."""
        self.rank.all_reduce(x, out=x)

    def add_onto(self, x: GPUArray, onto: GPUArray) -> None:
        """The sum of all devices' x, added in their order and rounded to x's type, is added to float32 `onto`."""
        self.rank.all_reduce(x, onto=onto)

    def send_from(self, x: GPUArray, root: int) -> None:
        """x of all devices, in place, becomes that of one."""
        self.rank.broadcast(x, root, out=x)
