"""The default generator and the functions that draw from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.random.generator import Generator

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.random.generator import Size

_default = Generator(0)


def seed(value: int) -> None:
    """Start the default generator again, at its first call, with another seed (0 to 2^64 - 1)."""
    global _default
    _default = Generator(value)


def rand(*shape: int, dtype: DTypeLike = "float32") -> GPUArray:
    """Numbers of [0, 1): rand(2, 3) has shape (2, 3). See Generator.random()."""
    return _default.random(shape, dtype)


def randn(*shape: int, dtype: DTypeLike = "float32") -> GPUArray:
    """Standard normal numbers: randn(2, 3) has shape (2, 3). See Generator.standard_normal()."""
    return _default.standard_normal(shape, dtype)


def randint(low: int, high: int | None = None, size: Size = None, dtype: DTypeLike = "int64") -> GPUArray:
    """Integers of low .. high - 1, of 0 .. low - 1 without high. See Generator.integers()."""
    return _default.integers(low, high, size, dtype)


def random(size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
    """Generator.random() of the default generator."""
    return _default.random(size, dtype)


def uniform(low: float = 0.0, high: float = 1.0, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
    """Generator.uniform() of the default generator."""
    return _default.uniform(low, high, size, dtype)


def standard_normal(size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
    """Generator.standard_normal() of the default generator."""
    return _default.standard_normal(size, dtype)


def normal(loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
    """Generator.normal() of the default generator."""
    return _default.normal(loc, scale, size, dtype)


def choice(a: int | GPUArray, size: Size = None, replace: bool = True, p: Any = None, axis: int = 0) -> GPUArray:
    """Generator.choice() of the default generator."""
    return _default.choice(a, size, replace, p, axis)


def exponential(scale: float = 1.0, size: Size = None, dtype: DTypeLike = "float32") -> GPUArray:
    """Generator.exponential() of the default generator."""
    return _default.exponential(scale, size, dtype)


def permutation(x: int | GPUArray, axis: int = 0) -> GPUArray:
    """Generator.permutation() of the default generator."""
    return _default.permutation(x, axis)


def shuffle(x: GPUArray, axis: int = 0) -> None:
    """Generator.shuffle() of the default generator."""
    _default.shuffle(x, axis)


def integers(
    low: int, high: int | None = None, size: Size = None, dtype: DTypeLike = "int64", endpoint: bool = False
) -> GPUArray:
    """Generator.integers() of the default generator."""
    return _default.integers(low, high, size, dtype, endpoint)
