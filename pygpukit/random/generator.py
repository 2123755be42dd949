"""Generator: a sequence of random arrays, each a function of (seed, number of the call, element index) alone."""

from __future__ import annotations

import math
import operator
import secrets
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import pygpukit.array.array  # noqa: F401  registers GPUArray as the class of new arrays
from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, as_dtype
from pygpukit.core.errors import DTypeError, InvalidSpecError
from pygpukit.ops import copying, indexing, operands, sorting
from pygpukit.ops.random import fill
from pygpukit.random.distributions import Distributions

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

    Size: TypeAlias = "int | Sequence[int] | None"


class Generator(Distributions):
    """Random arrays by Philox4x32-10, a counter-based generator (Salmon et al. 2011).

    seed: 0 to 2^64 - 1; unpredictable when left out. calls: how many calls to skip, so that Generator(g.seed, g.calls)
    continues as g. An array depends on the seed, the number of the call and the element's index, not on the device, the
    stream or the launch; the bits are the same on `cuda` and `sim`, but for those of distributions.py. Arrays are made
    on the device, asynchronously on the current stream; a captured graph repeats its numbers. Threads may share a
    generator: each call is counted once.
    """

    def __init__(self, seed: int | None = None, calls: int = 0) -> None:
        self._seed = secrets.randbits(64) if seed is None else _checked(seed, "seed")
        self._calls = _checked(calls, "calls")
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Generator], tuple[int, int]]:
        return type(self), (self._seed, self._calls)  # pickled and copied: a generator that goes on from here

    @property
    def seed(self) -> int:
        """The seed."""
        return self._seed

    @property
    def calls(self) -> int:
        """The number of calls that have been made."""
        return self._calls

    def random(self, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Uniform numbers of [0, 1), multiples of 2^-24 (float32), 2^-53 (float64), 2^-11 (float16), 2^-8 (bfloat16).

        size: the shape; 0-d without. Raises DTypeError unless dtype is a real float.
        """
        return self.uniform(0.0, 1.0, size, dtype)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Uniform numbers low + (high - low) * u, u as random() gives; rounding may reach high.

        Raises DTypeError unless dtype is a real float, InvalidSpecError for bounds that are not finite.
        """
        if not math.isfinite(low) or not math.isfinite(high - low):
            raise InvalidSpecError(f"uniform: bounds {low} and {high} must be finite, and so their difference", "high")
        out = native.empty(_shape(size), _real_float(dtype, "uniform"))
        fill.uniform(out, self._seed, self._next_call(), low, high - low)
        return out

    def standard_normal(self, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """Normal numbers with mean 0 and deviation 1 (Box-Muller in fixed arithmetic: the same bits everywhere).

        float32 reaches 6.7 deviations, float64 9.5. Raises DTypeError unless dtype is a real float.
        """
        return self.normal(0.0, 1.0, size, dtype)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
        """loc + scale * standard_normal(). Raises DTypeError as it, InvalidSpecError for a negative scale."""
        if not scale >= 0 or not math.isfinite(loc) or not math.isfinite(scale):
            raise InvalidSpecError(f"normal: loc {loc} and scale {scale} must be finite and scale at least 0", "scale")
        out = native.empty(_shape(size), _real_float(dtype, "normal"))
        fill.normal(out, self._seed, self._next_call(), loc, scale)
        return out

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Size = None,
        dtype: DTypeLike = "int64",
        endpoint: bool = False,
    ) -> GPUArray:
        """Integers of low .. high - 1 (.. high with endpoint), of 0 .. low - 1 without high, all equally likely.

        Exactly equal up to a relative 2^-32 (ranges to 2^32) or 2^-64. Raises DTypeError unless dtype is an integer
        type, InvalidSpecError for an empty range, OverflowError for a range that dtype does not hold.
        """
        low, high = (0, operator.index(low)) if high is None else (operator.index(low), operator.index(high))
        last = high if endpoint else high - 1
        result_dtype = as_dtype(dtype)
        if not promotion.is_integer(result_dtype):
            raise DTypeError(f"integers: {result_dtype} is not an integer type; use uniform() for floats")
        if last < low:
            raise InvalidSpecError(
                f"integers: there is no integer from {low} to {last}; high must be above low", "high"
            )
        for bound in (low, last):
            promotion.check_fits(bound, result_dtype)
        out = native.empty(_shape(size), result_dtype)
        fill.integers(out, self._seed, self._next_call(), low, last - low + 1)
        return out

    def permutation(self, x: int | GPUArray, axis: int = 0) -> GPUArray:
        """The integers 0 .. x - 1 (int64), or a copy of an array, in random order; along an axis rows stay whole.

        Sorts by 64 random bits for each position, so that every order is equally likely up to a relative n^2 / 2^64.
        Raises InvalidSpecError for a negative number, ShapeError for an axis that is not there, DeviceMismatchError.
        """
        if not operands.is_array(x):
            return self._order(_count(x))
        operands.check_devices("permutation", x)
        axis = layout.normalize_axis(axis, x.ndim, "permutation")
        return indexing.take(x, self._order(x.shape[axis]), axis)

    def shuffle(self, x: GPUArray, axis: int = 0) -> None:
        """permutation() of an array, in place. Errors as it, and ShapeError for an array that cannot be written."""
        operands.check_writable(operands.check_array(x, "shuffle"), "shuffle")
        copying.copy_to(self.permutation(x, axis), x)

    def __repr__(self) -> str:
        return f"Generator(seed={self._seed}, calls={self._calls})"

    def _order(self, count: int) -> GPUArray:
        return sorting.argsort(self.integers(0, 2**64, count, "uint64"))

    def _next_call(self) -> int:
        with self._lock:
            call = self._calls
            self._calls = (call + 1) % 2**64
            return call


def default_rng(seed: int | None = None) -> Generator:
    """Generator(seed), under NumPy's name."""
    return Generator(seed)


def _checked(value: int, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DTypeError(f"{what} must be an int, this is a {type(value).__name__}")
    value = operator.index(value)
    if not 0 <= value < 2**64:
        raise InvalidSpecError(f"{what} {value} is outside 0 to 2^64 - 1", what)
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DTypeError(f"permutation: x must be an int or a GPUArray, this is a {type(value).__name__}")
    count = operator.index(value)
    if count < 0:
        raise InvalidSpecError(f"permutation: there are no {count} integers to put in order", "x")
    return count


def _shape(size: Size) -> int | Sequence[int]:
    return () if size is None else size


def _real_float(dtype: DTypeLike, what: str) -> DataType:
    result_dtype = as_dtype(dtype)
    if result_dtype not in promotion.FLOATS:
        raise DTypeError(f"{what}: {result_dtype} is not float16, bfloat16, float32 or float64; convert with .astype()")
    return result_dtype
