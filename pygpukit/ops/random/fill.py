"""Filling new arrays with random numbers: the kernels of random.cu, or the same arithmetic in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import bfloat16, float16, float64
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "random.cu")
_CALL = SOURCE.structure("RandomCall")
_BLOCK = 256
_HOST_CHUNK = 1 << 18  # Philox blocks that NumPy works on at a time
_WIDE = 2**32  # integer ranges above it take 128 bits a number


def uniform(out: GPUArray, seed: int, call: int, low: float, width: float) -> None:
    """out[i] = low + width * u, u of [0, 1)."""
    _fill(out, "Uniform", 2 if out.dtype == float64 else 4, seed, call, (low, width), (0, 0))


def normal(out: GPUArray, seed: int, call: int, loc: float, scale: float) -> None:
    """out[i] = loc + scale * z, z standard normal."""
    _fill(out, "Normal", 2 if out.dtype == float64 else 4, seed, call, (loc, scale), (0, 0))


def integers(out: GPUArray, seed: int, call: int, low: int, count: int) -> None:
    """out[i] = one of the `count` integers from low on."""
    source, per_block = ("Integers", 2) if count <= _WIDE else ("WideIntegers", 1)
    _fill(out, source, per_block, seed, call, (0.0, 0.0), (low % 2**64, count % 2**64))


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    yield tuple(_expression(t.name, distribution) for t in promotion.FLOATS for distribution in ("Uniform", "Normal"))
    for group in (promotion.SIGNED, promotion.UNSIGNED):
        yield tuple(_expression(t.name, distribution) for t in group for distribution in ("Integers", "WideIntegers"))


def _expression(dtype_name: str, source: str) -> str:
    ctype = CTYPES[dtype_name]
    return f"pk::random_fill<{ctype}, pk::{source}<{ctype}>>"


def _fill(
    out: GPUArray,
    source: str,
    per_block: int,
    seed: int,
    call: int,
    line: tuple[float, float],
    bounds: tuple[int, int],
) -> None:
    size = out.size
    if not size:
        return
    blocks = -(-size // per_block)
    if host.computes():
        native.host_launch("random", lambda: _on_host(out, source, blocks, seed, call, line, bounds), [out])
        return
    (shift, scale), (low, count) = line, bounds
    packed = _CALL.pack(seed=seed, call=call, size=size, shift=shift, scale=scale, low=low, range=count)
    grid = (-(-blocks // _BLOCK), 1, 1)
    kernels.launch(SOURCE.of(_expression(out.dtype.name, source)), grid, (_BLOCK, 1, 1), out, packed)


def _on_host(
    out: GPUArray,
    source: str,
    blocks: int,
    seed: int,
    call: int,
    line: tuple[float, float],
    bounds: tuple[int, int],
) -> None:
    import numpy as np

    from pygpukit.ops.random import philox

    flat = out.reshape(-1)
    double = out.dtype == float64
    shift, scale = np.asarray(line, np.float64 if double else np.float32)
    digits = {float16: 11, bfloat16: 8}.get(out.dtype, 24)
    low, count = np.uint64(bounds[0]), bounds[1]
    make: Callable[[Any], Any] = {
        "Uniform": lambda words: _fractions(words, double, digits) * scale + shift,
        "Normal": lambda words: philox.normals(words, double) * scale + shift,
        "Integers": lambda words: _narrow(words, count) + low,
        "WideIntegers": lambda words: _wide(words, count) + low,
    }[source]
    with np.errstate(over="ignore"):
        for first in range(0, blocks, _HOST_CHUNK):
            index = np.arange(first, min(first + _HOST_CHUNK, blocks))
            drawn = make(philox.words(seed, index, call)).reshape(-1)
            per_block = drawn.size // index.size
            part = flat[first * per_block : (first + index.size) * per_block]
            host.store(part, drawn[: part.size])


def _fractions(words: Any, double: bool, digits: int) -> Any:
    """Numbers of [0, 1) from the upper bits of each word, or pair of words."""
    import numpy as np

    from pygpukit.ops.random import philox

    if double:
        return (philox.joined(words) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (words >> np.uint32(32 - digits)).astype(np.float32) * np.float32(2.0**-digits)


def _narrow(words: Any, count: int) -> Any:
    """floor(bits * count / 2^64), two of each block."""
    from pygpukit.ops.random import philox

    return philox.high_product(philox.joined(words), count)


def _wide(words: Any, count: int) -> Any:
    """floor(bits * count / 2^128), one of each block; a count of 0 stands for 2^64."""
    import numpy as np

    from pygpukit.ops.random import philox

    pairs = philox.joined(words)
    low, high = pairs[:, 0], pairs[:, 1]
    if count == 0:
        return high
    below = philox.high_product(low, count)
    carry = high * np.uint64(count) + below < below
    return philox.high_product(high, count) + carry.astype(np.uint64)
