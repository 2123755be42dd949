"""LSTM over a sequence, in one or both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.ops.nn.spans import Spans

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    _Weights = tuple[GPUArray | None, GPUArray | None, GPUArray | None, GPUArray | None]


class LSTM:
    """ops.lstm_forward() or ops.lstm_bidirectional() with their weights: (out, (h, c)) of x (B, S, in).

    out: (B, S, H), or (B, S, 2 H) of both directions, forward first. h0, c0: (B, H), of one direction only. spans: as
    ops.lstm_forward() has them.
    """

    def __init__(
        self,
        W_ih: GPUArray,
        W_hh: GPUArray,
        b_ih: GPUArray,
        b_hh: GPUArray,
        bidirectional: bool = False,
        W_ih_reverse: GPUArray | None = None,
        W_hh_reverse: GPUArray | None = None,
        b_ih_reverse: GPUArray | None = None,
        b_hh_reverse: GPUArray | None = None,
    ) -> None:
        self.W_ih, self.W_hh, self.b_ih, self.b_hh = W_ih, W_hh, b_ih, b_hh
        self.bidirectional = bidirectional
        self.W_ih_reverse, self.W_hh_reverse = W_ih_reverse, W_hh_reverse
        self.b_ih_reverse, self.b_hh_reverse = b_ih_reverse, b_hh_reverse
        self.hidden_size, self.input_size = W_hh.shape[1], W_ih.shape[1]
        if bidirectional and any(w is None for w in self._reverse()):
            raise ValueError("LSTM: bidirectional needs W_ih_reverse, W_hh_reverse, b_ih_reverse and b_hh_reverse")

    def __call__(
        self, x: GPUArray, h0: GPUArray | None = None, c0: GPUArray | None = None, *, spans: Spans | None = None
    ) -> tuple[GPUArray, tuple[GPUArray, GPUArray]]:
        forward = (self.W_ih, self.W_hh, self.b_ih, self.b_hh)
        if not self.bidirectional:
            out, h, c = ops.lstm_forward(x, *forward, h0, c0, spans=spans)
        elif h0 is not None or c0 is not None:
            raise ValueError("LSTM: h0 and c0 are for one direction only; leave them out")
        else:
            out, h, c = ops.lstm_bidirectional(x, *forward, *self._reverse(), spans=spans)  # type: ignore[arg-type]
        return out, (h, c)

    def _reverse(self) -> _Weights:
        return self.W_ih_reverse, self.W_hh_reverse, self.b_ih_reverse, self.b_hh_reverse
