"""choose(): which kernel makes a product, and why. It follows from the problem and from what can be compiled.

A kernel is a module with the functions of Kernel, beside its source. A new one is listed here, once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.errors import GPUError
from pygpukit.kernels import lost
from pygpukit.ops import host as host_memory
from pygpukit.ops.matmul import host
from pygpukit.ops.matmul.cuda_cores import gemv, real, strided
from pygpukit.ops.matmul.cutlass import mixed as cutlass_mixed
from pygpukit.ops.matmul.cutlass import product as cutlass
from pygpukit.ops.matmul.cutlass import scaled as cutlass_fp8
from pygpukit.ops.matmul.epilogue import fused
from pygpukit.ops.matmul.mma import aligned, fallback, unaligned
from pygpukit.ops.matmul.mma import fp8 as mma_fp8
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import cluster, pingpong
from pygpukit.ops.matmul.tile import fp8, fp8_weight, half, int8_tf32
from pygpukit.ops.matmul.tile import gemv as tile_gemv

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue

__all__ = ["MatmulPlan"]


class Kernel(Protocol):
    """A kernel of products, as a module. Those of tensor cores have also BACKEND, time_us(p), tiling(p), reason(p)."""

    def refusal(self, p: Problem) -> str:
        """Why it does not make a product, "" where it takes it."""

    def finishes(self, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue) -> bool:
        """True if run() applies the epilogue in its launch."""

    def run(self, p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
        """out = epilogue(a @ b). epilogue: where finishes() says so."""


# Kernels of one group give a row the same bits, so that the fastest is taken; the first group that has one is.
_TENSOR_CORES: tuple[tuple[Any, ...], ...] = (
    (unaligned, tile_gemv, half, int8_tf32, fp8, fp8_weight, cluster, pingpong, cutlass, cutlass_fp8),
    (aligned, fallback, mma_fp8),
)
# Kernels that can be asked for by the name of their backend, and what says why they cannot make a product.
_NAMED: dict[str, tuple[tuple[Any, ...], str]] = {
    cluster.BACKEND: ((cluster, pingpong), "unsupported"),
    cutlass.BACKEND: ((cutlass, cutlass_fp8, cutlass_mixed), "unsupported"),
    aligned.BACKEND: ((aligned, fallback, mma_fp8), "refusal"),
}
_CUDA_CORES: tuple[Kernel, ...] = (host, gemv, real, strided)  # the first that takes a product
_VARIABLE = "PYGPUKIT_MATMUL"
_CALLED = {
    "half": "products of half precision",
    "int8": "products of int8",
    "tf32": "products in tf32",
    "fp8": "products of fp8",
    "decoded": "products with weights of fp8",
}


@dataclass(frozen=True)
class MatmulPlan:
    """The plan of a product.

    backend: "tile" (tensor cores), "hopper" (those of SM 9.0, with the bits of "tile"), "cutlass" (CUTLASS on
    SM 9.0, with those bits, too, but of half precision times fp8), "mma" (tensor cores, where there are no tile
    kernels), "plain" (CUDA cores; for float64 on SM 9.0 tensor cores), "numpy" (the simulated device), and of products
    that need not be invariant "cublaslt". It decides the result's bits. reason: why, in one sentence. tile: what one
    block makes, or a pair of blocks of "hopper"; it decides speed alone.
    """

    backend: str
    reason: str
    tile: Any = None
    kernel: Any = field(default=None, repr=False, compare=False)
    problem: Problem | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.backend}{f' {self.tile}' if self.tile else ''}: {self.reason}"

    @property
    def has_bits_of_tiles(self) -> bool:
        """True if a row has the bits that tile kernels give it."""
        return self.kernel in _TENSOR_CORES[0]

    def run(self, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
        """out = epilogue(a @ b), of the arrays that the plan was made for."""
        assert self.problem is not None
        if epilogue is None:
            self.kernel.run(self.problem, a, b, out)
        else:
            fused.run(self.kernel, self.problem, a, b, out, epilogue)


def choose(p: Problem) -> MatmulPlan:
    """The plan of a product."""
    plan = _invariant(p, host_memory.computes())
    if p.invariant or host_memory.computes() or 0 in p.extents:
        return plan
    from pygpukit.ops.matmul.cublaslt import launch as cublaslt

    if why := cublaslt.refusal(p, plan.backend):
        return replace(plan, reason=f"{plan.reason}; {why}")
    return MatmulPlan(cublaslt.BACKEND, cublaslt.reason(p), None, cublaslt, p)


def by_name(what: str, named: Any, p: Problem) -> MatmulPlan | None:
    """The plan of the kernels of one backend where they are asked for, by backend= or by PYGPUKIT_MATMUL, and take the
    product. None where they are not asked for, or by the environment alone and do not take it, or it is empty. Raises
    ValueError for another name, GPUError where the product is not taken."""
    if named is not None and named not in _NAMED:
        raise ValueError(
            f"{what}: backend={named!r}; it is {_spelled(map(repr, _NAMED))}, or None for the plan's choice"
        )
    asked = named or _of_environment()
    if asked is None or (named is None and is_sim()) or 0 in p.extents:
        return None
    plan = _of_backend(asked, f"backend={named!r}" if named else f"{_VARIABLE}={asked}", p)
    if isinstance(plan, MatmulPlan):
        return plan
    if named is None:
        return None
    raise GPUError(f"{what}: backend={named!r}: {plan}; leave backend out for the plan's choice")


@by_device
def _of_backend(backend: str, by: str, p: Problem) -> MatmulPlan | str:
    """The plan of the kernels of a backend, or why they do not make the product. by: who asks."""
    kernels, unless = _NAMED[backend]
    refusals = [getattr(kernel, unless)(p) for kernel in kernels]
    if all(refusals):
        fitting = (
            why for kernel, why in zip(kernels, refusals, strict=True) if p.family in getattr(kernel, "FAMILIES", ())
        )
        return str(next(fitting, refusals[0]))
    plan = _fastest(kernels, p, unless)
    return replace(plan, reason=f"{plan.kernel.does(p)}, as {by} asks")


@by_device
def _invariant(p: Problem, by_host: bool) -> MatmulPlan:
    """by_host: NumPy computes."""
    if is_sim():
        return _on_cuda_cores(p, "the simulated device computes with NumPy", "numpy")
    if why := f"on CUDA cores: {p.scales}" if p.scales else p.uncounted:
        return _on_cuda_cores(p, why)
    for kernels in _TENSOR_CORES:
        taking = [kernel for kernel in kernels if not kernel.refusal(p)]
        if taking:
            plan = _fastest(taking, p)
            if plan.backend == aligned.BACKEND:
                cost = f"{_CALLED[p.family or '']} take mma.sync, at about half the speed of tile kernels"
                lost.tell(cost, half.missing() or lost.why(int8_tf32.NARROW))
            return plan
    missing = half.missing()
    lost.tell(f"{_CALLED[p.family or '']} run without tensor cores, many times slower and with other bits", missing)
    return _on_cuda_cores(p, missing)


def _fastest(kernels: Iterable[Any], p: Problem, unless: str = "refusal") -> MatmulPlan:
    """By the kernel whose time is shortest; of equals the first one."""
    kernel = min(
        (candidate for candidate in kernels if not getattr(candidate, unless)(p)),
        key=lambda candidate: candidate.time_us(p),
    )
    return MatmulPlan(kernel.BACKEND, kernel.reason(p), kernel.tiling(p), kernel, p)


def _on_cuda_cores(p: Problem, reason: str, backend: str = "plain") -> MatmulPlan:
    kernel = next(candidate for candidate in _CUDA_CORES if not candidate.refusal(p))
    return MatmulPlan(backend, reason, None, kernel, p)


@cache
def _of_environment() -> str | None:
    """The backend that PYGPUKIT_MATMUL names, None for none. Read once. Raises ValueError for another name."""
    backend = os.environ.get(_VARIABLE) or None
    if backend is not None and backend not in _NAMED:
        raise ValueError(f"{_VARIABLE}={backend}; it is {_spelled(_NAMED)}, or unset for the plan's choice")
    return backend


def _spelled(names: Iterable[str]) -> str:
    """Names as a sentence has them: a, b or c."""
    *first, last = names
    return f"{', '.join(first)} or {last}"
