"""Work of an LSTM, once everything is checked and the products with x are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.ops.nn.spans import Spans

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


@dataclass(frozen=True)
class Work:
    """All of float32 or float64 and contiguous; D directions, R = B S rows.

    products: those of x with W_ih, (D, B, S, 4H). h: the states before the first step, (D, sequences, H). matrices:
    W_hh of each direction. bias: (D, 4H). c: as h, becomes the last cells. out: (B, S, D H). reverse: of one direction.
    spans: where the sequences are; None for one in each of the B.
    """

    products: GPUArray
    h: GPUArray
    matrices: list[GPUArray]
    bias: GPUArray
    c: GPUArray
    out: GPUArray
    reverse: bool
    spans: Spans | None

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """First row and length of each sequence."""
        batch, steps = self.out.shape[:2]
        return tuple((b * steps, steps) for b in range(batch)) if self.spans is None else self.spans.pairs
