"""choose(): which kernel computes attention, and why. It follows from the problem and from what can be compiled.

A kernel is a module with the functions of Kernel, beside its source. A new one is listed here, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pygpukit.core.backend import is_sim
from pygpukit.core.unused import warn_of_unused
from pygpukit.kernels import lost
from pygpukit.kernels.lost import replanned
from pygpukit.ops.nn.attention import leaf, mma, simt, tile
from pygpukit.ops.nn.attention.problem import Call, Problem

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.nn.attention.extras import Extras


class Kernel(Protocol):
    """A kernel that computes attention, as a module."""

    def refusal(self, p: Problem) -> str:
        """Why it does not compute a problem, "" where it takes it."""

    def tiling(self, p: Problem) -> Any:
        """The tile that a block makes, None where there is nothing to choose."""

    def run(self, p: Problem, call: Call, tiling: Any) -> None:
        """Fill the result, which has elements."""


_KERNELS: tuple[Kernel, ...] = (leaf, tile, mma, simt)  # the first that takes a problem
_BY_MMA = "attention of many queries in half precision takes mma.sync, at about half the speed of tile kernels"
_WITHOUT = "attention of half precision runs without tensor cores, many times slower and with other bits"


class AttentionPlan(NamedTuple):
    """The kernel and tile that compute attention. tile: what a block of a tile kernel makes; it decides speed alone."""

    problem: Problem
    kernel: Kernel
    tile: Any

    @property
    def backend(self) -> str:
        """ "tile" (tensor cores), "mma" (those, without tile kernels), "plain" (CUDA cores) or "numpy"
        (the simulated device). It decides the result's bits."""
        if self.kernel in (tile, mma):
            return "tile" if self.kernel is tile else "mma"
        return "numpy" if is_sim() else "plain"

    @property
    def reason(self) -> str:
        """Why, in one sentence."""
        computed = f"{self.problem.dtype} on tensor cores, summed in float32"
        if self.kernel is mma:
            return f"{computed}, by mma.sync: {tile.missing()}"
        return tile.refusal(self.problem) or computed

    def run(self, call: Call) -> None:
        """Fill the result of the call that the plan was made for."""
        self.kernel.run(self.problem, call, self.tile)


def choose(p: Problem) -> AttentionPlan:
    """The plan of attention."""
    kernel = next(one for one in _KERNELS if not one.refusal(p))
    if (why := tile.missing()) and not tile.unsupported(p):
        lost.tell(_BY_MMA if kernel is mma else _WITHOUT, why)
    return AttentionPlan(p, kernel, kernel.tiling(p))


@replanned
def attend(
    Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float, offset: int | None, more: Extras
) -> None:
    """Fill out. scale: 0 or below for 1 / sqrt(D). offset: the first query's place among the keys; None where the last
    query stands at the last key."""
    warn_of_unused()
    if out.size:
        call = Call(Q, K, V, out, simt.factor(scale, Q.shape[-1]), offset, more)
        choose(Problem.of(call)).run(call)
