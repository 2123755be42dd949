"""PartedCache: the keys and values that each of several devices keeps of the same blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.core.device import current_device

if TYPE_CHECKING:
    from pygpukit.nn.kv_cache import KVCache
    from pygpukit.nn.mamba.cache import StateCache


class PartedCache:
    """A cache of each device, whose blocks have the same numbers. parts: by device."""

    def __init__(self, devices: Sequence[int], parts: Sequence[KVCache | StateCache]) -> None:
        self.devices, self.parts = devices, parts

    @property
    def count(self) -> int:
        """Blocks."""
        return self.parts[0].count

    @property
    def dtype(self) -> str:
        """The type of what is kept."""
        return self.parts[0].dtype

    @property
    def layers(self) -> list[Any]:
        """The layers of all devices, one device after the other."""
        return [layer for part in self.parts for layer in part.layers]

    @property
    def nbytes(self) -> int:
        """Bytes on all devices."""
        return sum(part.nbytes for part in self.parts)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block on all devices."""
        return sum(part.block_bytes for part in self.parts)

    def bytes_of(self, positions: int) -> int:
        """Bytes of so many positions of one sequence on all devices."""
        return sum(part.bytes_of(positions) for part in self.parts)

    def copy(self, copies: Iterable[tuple[int, int]]) -> None:
        """The contents of blocks into others: pairs of source and target, in order."""
        pairs = list(copies)
        if not pairs:
            return
        for device, part in zip(self.devices, self.parts, strict=True):
            with current_device(device):
                part.copy(pairs)
