"""choose(): which kernel makes a convolution, and why. It follows from the problem and from what can be compiled.

A kernel is a module with the functions of Kernel, beside its source. A new one is listed here, once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from pygpukit.core.backend import is_sim
from pygpukit.core.errors import GPUError
from pygpukit.kernels import lost
from pygpukit.ops import host, plans
from pygpukit.ops.nn.conv import depthwise, few_channels, gathered, leaf, mma, simt, simt_transposed, small_groups, tile
from pygpukit.ops.nn.conv.problem import Call, Problem

__all__ = ["ConvPlan"]


class Kernel(Protocol):
    """A kernel of convolutions, as a module. Those of tensor cores have also BACKEND, reason(p) and tiling(p)."""

    def refusal(self, p: Problem) -> str:
        """Why it does not make a convolution, "" where it takes it."""

    def run(self, p: Problem, call: Call) -> None:
        """Fill the result."""


# The first that takes a convolution. Those of one BACKEND give the same bits: the faster one is before the other.
_TENSOR_CORES: tuple[Any, ...] = (small_groups, few_channels, gathered, tile, mma)
_NAMED = {mma.BACKEND: mma}  # kernels that can be asked for by the name of their backend
_CUDA_CORES: tuple[Kernel, ...] = (depthwise, simt_transposed, simt)
_BY_NUMPY = "the simulated device computes with NumPy"


@dataclass(frozen=True)
class ConvPlan:
    """The kernel and tiling that compute a convolution.

    backend: "tile" (tensor cores), "few" (tensor cores, for groups of few channels), "mma" (tensor cores, where
    there are no tile kernels), "plain" (CUDA cores) or "numpy"
    (the simulated device). It decides the result's bits. reason: why, in one sentence. tile: of a tile kernel, or
    block of the one that gathers or of the one for many small groups; it decides speed alone.
    """

    backend: str
    reason: str
    tile: Any = None
    kernel: Any = field(default=None, repr=False, compare=False)
    problem: Problem | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.backend}{f' {self.tile}' if self.tile else ''}: {self.reason}"

    def run(self, call: Call) -> None:
        """Fill the result of the arrays that the plan was made for."""
        self.kernel.run(self.problem, call)


def choose(p: Problem) -> ConvPlan:
    """The plan of a convolution."""
    return ConvPlan("numpy", _BY_NUMPY, None, leaf, p) if host.computes() else _by_kernels(p)


def by_name(what: str, backend: str, p: Problem) -> ConvPlan:
    """The plan of one backend's kernels. Raises ValueError for another name, GPUError where they do not take it."""
    if backend not in _NAMED:
        names = " or ".join(map(repr, _NAMED))
        raise ValueError(f"{what}: backend={backend!r}; it is {names}, or None for the plan's choice")
    kernel = _NAMED[backend]
    if why := kernel.refusal(p):
        raise GPUError(f"{what}: backend={backend!r}: {why}; leave backend out for the plan's choice")
    by = f"as backend={backend!r} asks"
    return ConvPlan(backend, f"{kernel.does(p)}, {by}", kernel.tiling(p) if p.out[0] else None, kernel, p)


@plans.follows
def _by_kernels(p: Problem) -> ConvPlan:
    if is_sim():
        return _on_cuda_cores(p, _BY_NUMPY, "numpy")
    if p.uncounted:
        return _on_cuda_cores(p, p.uncounted)
    for kernel in _TENSOR_CORES:
        if not kernel.refusal(p):
            if kernel is mma:
                lost.tell("convolutions take mma.sync, at about half the speed of tile kernels", tile.missing())
            return ConvPlan(kernel.BACKEND, kernel.reason(p), kernel.tiling(p) if p.out[0] else None, kernel, p)
    if not tile.unsupported(p):
        lost.tell("convolutions run without tensor cores, many times slower and with other bits", tile.missing())
    return _on_cuda_cores(p, tile.refusal(p))


def _on_cuda_cores(p: Problem, reason: str, backend: str = "plain") -> ConvPlan:
    kernel = next(one for one in _CUDA_CORES if not one.refusal(p))
    return ConvPlan(backend, reason, None, kernel, p)
