"""StateSpace: the sizes of a Mamba-2 layer, and how positions are cut into chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pygpukit.core.errors import InvalidSpecError

CHUNK = 64  # positions of a chunk: mamba.cuh, kChunk
_MAX_CONV, _MAX_STATE = 8, 256  # mamba.cuh: kMaxConv, kMaxState


@dataclass(frozen=True)
class StateSpace:
    """state: numbers of a state for each element of a head. groups: of heads that share B and C. conv: positions that
    the convolution sees, its own included. min_step, max_step: bounds of a step's length."""

    state: int
    groups: int
    conv: int
    min_step: float = 0.0
    max_step: float = math.inf

    def check(self, heads: int) -> None:
        """Raises InvalidSpecError for sizes that cannot be."""
        if heads % self.groups:
            raise InvalidSpecError(f"n_groups is {self.groups}, must divide num_heads, {heads}", "n_groups")
        if not 2 <= self.conv <= _MAX_CONV:
            raise InvalidSpecError(f"conv_kernel is {self.conv}, must be 2 to {_MAX_CONV}", "conv_kernel")
        if self.state > _MAX_STATE:
            raise InvalidSpecError(f"state_size is {self.state}, must be 1 to {_MAX_STATE}", "state_size")

    def channels(self, inner: int) -> int:
        """Of the convolution: x, B and C."""
        return inner + 2 * self.groups * self.state
