"""Calls that replaced operations are compared on: random, of odd and even lengths, in every float type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pygpukit.array.factory import from_numpy

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

Call = tuple[tuple[Any, ...], Mapping[str, Any]]
_DTYPES = ("float32", "float16", "bfloat16")
_SHAPES = ((1, 1), (3, 5), (4, 64), (2, 3, 127), (1, 1024))


def _array(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> GPUArray:
    return from_numpy(random.standard_normal(shape, dtype="float32")).astype(dtype)


def _rows(weights: int, *numbers: Any) -> Callable[[np.random.Generator], Iterator[Call]]:
    """Calls of an operation on rows, with so many weights of a row's length."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for dtype in _DTYPES:
            for shape in _SHAPES:
                vectors = [_array(random, shape[-1:], dtype) for _ in range(weights)]
                yield (_array(random, shape, dtype), *vectors, *numbers), {}

    return calls


def _products(random: np.random.Generator) -> Iterator[Call]:
    for dtype in _DTYPES:
        for m, k, n in ((1, 1, 1), (3, 5, 7), (16, 64, 33)):
            yield (_array(random, (m, k), dtype), _array(random, (k, n), dtype)), {}


CALLS: dict[str, Callable[[np.random.Generator], Iterator[Call]]] = {
    "l2norm": _rows(0),
    "layernorm": _rows(2, 1e-5),
    "log_softmax": _rows(0),
    "matmul": _products,
    "rmsnorm": _rows(1, 1e-6),
    "softmax": _rows(0),
    **{name: _rows(0) for name in ("max", "mean", "min", "sum", "var", "std", "logsumexp", "sort", "cumsum")},
}
