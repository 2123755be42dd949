"""Products that may give up invariance for speed: who asks for them, and by which plan they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from pygpukit.ops import host
from pygpukit.ops.matmul.layout.operand import as_it_is

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.matmul.epilogue.fused import Product

__all__ = ["fastest_products"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_asked: ContextVar[bool] = ContextVar("pygpukit_fastest_products", default=False)
# Multiply-adds from which on copies that align operands are cheaper than cuBLAS's way to read what is not aligned:
# between two products that were measured on an H100, 333 x 777 x 129 and 4093 x 4099 x 4101.
_COPIES_PAY = 2**33


@contextmanager
def fastest_products() -> Iterator[None]:
    """Within it gp.matmul(), gp.matmul_plan() and a @ b are invariant=False, where a call does not say otherwise.

    For this thread and what it awaits. All else keeps its bits: gp.linear, gp.einsum, gp.dot, models.
    """
    token = _asked.set(True)
    try:
        yield
    finally:
        _asked.reset(token)


def by_context(function: _Function) -> _Function:
    """Decorator of what has an argument `invariant`, by name: within fastest_products() it is False."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _asked.get() and kwargs.get("invariant") is None:
            kwargs["invariant"] = False
        return function(*args, **kwargs)

    return run  # type: ignore[return-value]


def plan(
    invariant: tuple[str, str], kind: str | None, a: GPUArray, b: GPUArray, computed: DataType, result: DataType
) -> tuple[str, str]:
    """(backend, reason) of the fastest plan. invariant: those of the invariant one. kind: as plan.backend() takes it.
    computed, result: types of the operands, once they are converted, and of the product."""
    backend, reason = invariant
    *batch, m, k = a.shape
    work = prod(batch) * m * k * b.shape[-1]
    if host.computes() or not work:
        return invariant
    copied = work >= _COPIES_PAY and not (_aligned(a) and _aligned(b))
    if backend in ("tile", "hopper") and (kind == "int8" or copied):
        return backend, f"{reason}; faster than cuBLAS where both were measured"
    from pygpukit.ops.matmul.cublaslt import launch as cublaslt

    if refusal := cublaslt.refusal(types(kind, computed, result), a, b, computed):
        return backend, f"{reason}; {refusal}"
    rounded = " rounded to tf32" if kind == "tf32" else ""
    return "cublaslt", f"{computed}{rounded} by cuBLASLt, where a row's bits may depend on the other rows"


def product_of(kind: str | None, dtype: DataType, result: DataType) -> Product:
    """What makes a @ b where plan() says "cublaslt". dtype, result: of the operands and of the product."""
    from pygpukit.ops.matmul.cublaslt import launch as cublaslt

    found = types(kind, dtype, result)
    assert found is not None
    return partial(cublaslt.product, found)


def types(kind: str | None, computed: DataType, result: DataType) -> str | None:
    """The key of blas.TYPES, None where there is none."""
    from pygpukit.ops.matmul.cublaslt import library

    name = kind if kind in ("int8", "tf32") else computed.name if computed == result else None
    return name if name in library.TYPES and (name != "int8" or kind == "int8") else None


def _aligned(matrices: GPUArray) -> bool:
    return as_it_is(matrices) is not None
