"""Spans: where the sequences of a batch lie along an axis that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.core.cached import cached_property
from pygpukit.core.errors import ShapeError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class Spans:
    """Sequences of different lengths, one after the other along one axis, with or without gaps between them.

    pairs: (first place, length) of each, in order. total: extent of the axis. Raises ShapeError for spans that overlap,
    are out of order or leave the axis.
    """

    def __init__(self, pairs: Sequence[tuple[int, int]], total: int) -> None:
        self.pairs, self.total = tuple((int(start), int(length)) for start, length in pairs), int(total)
        end = 0
        for number, (start, length) in enumerate(self.pairs):
            if start < end or length < 0:
                raise ShapeError(f"span {number} is ({start}, {length}); it must begin at {end} or later, in order")
            end = start + length
        if end > self.total:
            raise ShapeError(f"the spans end at {end}, beyond the axis, which has {self.total} places")

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def longest(self) -> int:
        """The length of the longest sequence; 0 without any."""
        return max((length for _, length in self.pairs), default=0)

    @property
    def gapless(self) -> bool:
        """True where every place of the axis is a sequence's."""
        return sum(length for _, length in self.pairs) == self.total

    @cached_property
    def device(self) -> GPUArray:
        """The pairs on the current device, int64 (sequences, 2)."""
        import numpy as np

        return factory.from_numpy(np.asarray(self.pairs, np.int64).reshape(-1, 2))

    @cached_property
    def inside(self) -> GPUArray:
        """A mask of the places that are a sequence's: bool (total,), on the current device."""
        import numpy as np

        covered = np.zeros(self.total, np.bool_)
        for start, length in self.pairs:
            covered[start : start + length] = True
        return factory.from_numpy(covered)
