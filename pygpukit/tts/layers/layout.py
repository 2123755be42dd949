"""The layout of a batch along time: its sentences one after the other, at every rate of the network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.ops.nn.spans import Spans

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_GAP = 2  # frames between sentences: 40 places where a convolution reaches farthest, 25 to each side


class Layout:
    """Sentences of these lengths in frames, with gaps that no convolution reaches across."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.starts: list[int] = []
        self.lengths, self.total = list(lengths), 0
        for length in lengths:
            self.starts.append(self.total)
            self.total += length + _GAP
        self.total -= _GAP
        self._spans: dict[tuple[int, int], Spans] = {}

    def at(self, rate: int, more: int = 0) -> Spans | None:
        """Where the sentences are with `rate` places a frame, and `more` at the end of each; None for a single one."""
        return None if len(self.lengths) == 1 else self.spans(rate, more)

    def spans(self, rate: int, more: int = 0) -> Spans:
        """at(), of a single one, too."""
        if (rate, more) not in self._spans:
            lengths = self.lengths
            pairs = [(start * rate, length * rate + more) for start, length in zip(self.starts, lengths, strict=True)]
            self._spans[rate, more] = Spans(pairs, self.total * rate + more)
        return self._spans[rate, more]

    def apart(self, rate: int) -> Spans:
        """spans() without the gaps."""
        ends = list(accumulate(length * rate for length in self.lengths))
        return Spans(list(zip([0, *ends], (length * rate for length in self.lengths), strict=False)), ends[-1])

    def parts(self, array: GPUArray, rate: int, more: int = 0) -> list[GPUArray]:
        """Views of each sentence's part of (..., time)."""
        spans = self.at(rate, more)
        return [array] if spans is None else [array[..., start : start + size] for start, size in spans.pairs]


def silenced(x: GPUArray, spans: Spans | None) -> GPUArray:
    """x (B, C, L), zero where no sentence is."""
    return x if spans is None or spans.gapless else ops.where(spans.inside, x, 0.0)
