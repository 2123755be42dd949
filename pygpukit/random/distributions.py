"""Distributions that are functions of uniform and normal numbers, as methods of Generator, and random choices.

Their bits are those of this device's logarithm and sine; choice() and permuted() give the same everywhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory, layout
from pygpukit.core.dtypes import float64, int64
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops import elementwise, indexing, operands, sorting
from pygpukit.ops.elementwise import math as functions

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.random.generator import Size

_TOLERANCE = 1e-8  # of a sum of probabilities, as NumPy's


class Distributions:
    """A base of Generator. Every method raises DTypeError unless dtype is a real float, InvalidSpecError for a
    parameter that the distribution has not."""

    def standard_exponential(self: Any, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Exponential numbers of mean 1; float32 reaches 16.6."""
        return -functions.log1p(-self.random(size, dtype))

    def exponential(self: Any, scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Exponential numbers of mean scale."""
        return _positive("exponential", "scale", scale) * self.standard_exponential(size, dtype)

    def laplace(
        self: Any, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32"
    ) -> GPUArray:
        """Numbers of density exp(-|x - loc| / scale) / (2 scale)."""
        _positive("laplace", "scale", scale)
        return loc + scale * (self.standard_exponential(size, dtype) - self.standard_exponential(size, dtype))

    def logistic(
        self: Any, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32"
    ) -> GPUArray:
        """Numbers of distribution 1 / (1 + exp(-(x - loc) / scale))."""
        u = self._open(size, dtype)
        return loc + _positive("logistic", "scale", scale) * functions.log(u / (1 - u))

    def gumbel(
        self: Any, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32"
    ) -> GPUArray:
        """Numbers of distribution exp(-exp(-(x - loc) / scale)), of largest values."""
        return loc - _positive("gumbel", "scale", scale) * functions.log(-functions.log(self._open(size, dtype)))

    def lognormal(
        self: Any, mean: float = 0.0, sigma: float = 1.0, size: Size = None, dtype: DTypeLike = "float32"
    ) -> GPUArray:
        """exp() of normal numbers."""
        return functions.exp(self.normal(mean, sigma, size, dtype))

    def rayleigh(self: Any, scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """The length of two normal numbers of deviation scale."""
        return _positive("rayleigh", "scale", scale) * functions.sqrt(2 * self.standard_exponential(size, dtype))

    def weibull(self: Any, a: float, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Exponential numbers to the power 1 / a."""
        return self.standard_exponential(size, dtype) ** (1 / _positive("weibull", "a", a))

    def pareto(self: Any, a: float, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Numbers from 0 on of distribution 1 - (1 + x) ** -a (Lomax's)."""
        return functions.expm1(self.standard_exponential(size, dtype) / _positive("pareto", "a", a))

    def power(self: Any, a: float, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Numbers from 0 to 1 of density a x ** (a - 1)."""
        return self.random(size, dtype) ** (1 / _positive("power", "a", a))

    def standard_cauchy(self: Any, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Numbers of density 1 / (pi (1 + x x))."""
        return functions.tan(math.pi * (self._open(size, dtype) - 0.5))

    def triangular(
        self: Any, left: float, mode: float, right: float, size: Size = None, dtype: DTypeLike = "float32"
    ) -> GPUArray:
        """Numbers whose density rises from left to mode and falls to right, both evenly."""
        if not left <= mode <= right or not left < right:
            raise InvalidSpecError(f"triangular: left {left}, mode {mode} and right {right} must rise", "mode")
        u = self.random(size, dtype)
        rise = (mode - left) / (right - left)
        above = right - functions.sqrt((1 - u) * ((right - left) * (right - mode)))
        below = left + functions.sqrt(u * ((right - left) * (mode - left)))
        return elementwise.where(u < rise, below, above)

    def geometric(self: Any, p: float, size: Size = None) -> GPUArray:
        """The number of trials that it takes, int64, where each succeeds with probability p."""
        if not 0 < p <= 1:
            raise InvalidSpecError(f"geometric: p is {p}; it must be above 0 and at most 1", "p")
        if p == 1:
            return factory.ones(() if size is None else size, "int64")
        trials = functions.ceil(self.standard_exponential(size, "float64") * (-1 / math.log1p(-p)))
        return elementwise.as_type(elementwise.maximum(trials, 1.0), int64)

    def choice(
        self: Any, a: int | GPUArray, size: Size = None, replace: bool = True, p: Any = None, axis: int = 0
    ) -> GPUArray:
        """Elements of 0 .. a - 1, or slices of an array along an axis, each as likely, or with probabilities p.

        replace: False takes none twice. p: a list or an array; one on the device is waited for. Raises InvalidSpecError
        for too few to choose from and for p that are none; ShapeError, AxisError.
        """
        count = (
            a.shape[layout.normalize_axis(axis, a.ndim, "choice")]
            if operands.is_array(a)
            else layout.integer(a, "choice: a")
        )
        extents = () if size is None else layout.integers(size, "choice: size")
        number = math.prod(extents)
        if count < 1 and number:
            raise InvalidSpecError(f"choice: there are {count} elements to choose from", "a")
        weights = None if p is None else _probabilities(p, count)
        if replace:
            places = self._with_replacement(count, extents, weights)
        else:
            possible = count if weights is None else sum(weight > 0 for weight in weights)
            if number > possible:
                raise InvalidSpecError(f"choice: {number} of {possible} cannot be different; use replace", "size")
            places = self._without_replacement(count, weights)[:number].reshape(extents)
        return indexing.take(a, places, axis) if operands.is_array(a) else places

    def permuted(self: Any, x: GPUArray, axis: int | None = None) -> GPUArray:
        """A copy in which each line along an axis is in a random order of its own; all elements where it is None."""
        operands.check_devices("permuted", operands.check_array(x, "permuted"))
        flat = x.reshape(-1) if axis is None else x
        axis = 0 if axis is None else layout.normalize_axis(axis, x.ndim, "permuted")
        order = sorting.argsort(self.integers(0, 2**64, flat.shape, "uint64"), axis)
        return indexing.take_along_axis(flat, order, axis).reshape(x.shape)

    def bytes(self: Any, length: int) -> bytes:
        """Random bytes, `length` of them, on the host."""
        data: bytes = self.integers(0, 256, layout.integer(length, "bytes: length"), "uint8").tobytes()
        return data

    def _open(self: Any, size: Size, dtype: DTypeLike) -> GPUArray:
        """Uniform numbers without 0: half the least other number instead."""
        u = self.random(size, dtype)
        smallest = {"float64": 2.0**-54, "float32": 2.0**-25, "float16": 2.0**-12}.get(u.dtype.name, 2.0**-9)
        return elementwise.maximum(u, smallest)

    def _with_replacement(self: Any, count: int, extents: tuple[int, ...], weights: list[float] | None) -> GPUArray:
        if weights is None:
            return self.integers(0, max(count, 1), extents)
        import numpy as np

        sums = np.cumsum(weights)
        edges = factory.from_numpy(sums / sums[-1])
        return sorting.searchsorted(edges, self.random(extents, "float64"), side="right")

    def _without_replacement(self: Any, count: int, weights: list[float] | None) -> GPUArray:
        """All places in random order; with weights as if drawn one after the other (exponential races)."""
        if weights is None:
            return self.permutation(count)
        rates = factory.asarray(weights, float64)
        return sorting.argsort(elementwise.div(self.standard_exponential(count, "float64") + 2.0**-54, rates))


def _positive(what: str, name: str, value: float) -> float:
    if not value > 0 or not math.isfinite(value):
        raise InvalidSpecError(f"{what}: {name} is {value}; it must be finite and above 0", name)
    return value


def _probabilities(p: Any, count: int) -> list[float]:
    weights = [float(weight) for weight in (p.tolist() if hasattr(p, "tolist") else p)]
    total = math.fsum(weights)
    if len(weights) != count or not all(weight >= 0 for weight in weights) or not abs(total - 1) <= _TOLERANCE:
        raise InvalidSpecError(
            f"choice: p must be {count} probabilities with sum 1; there are {len(weights)}, with sum {total}", "p"
        )
    return weights
