"""griffinlim: a signal from the magnitudes of its spectrogram."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import as_dtype, float32
from pygpukit.core.graph import capturing
from pygpukit.core.stream import Stream
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.inputs import complex_of, magnitudes
from pygpukit.ops.audio.istft import istft
from pygpukit.ops.audio.magnitudes import frame_major
from pygpukit.ops.audio.stft import stft
from pygpukit.ops.elementwise.math import cos, imag, real, sin
from pygpukit.ops.operands import is_array
from pygpukit.ops.random import fill

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.audio.windows import Window

__all__ = ["griffinlim"]

_GRAPH_FROM = 4  # iterations: fewer are launched one by one


def griffinlim(
    S: GPUArray,
    *,
    n_iter: int = 32,
    hop_length: int | None = None,
    win_length: int | None = None,
    n_fft: int | None = None,
    window: Window = "hann",
    center: bool = True,
    dtype: DTypeLike | None = None,
    length: int | None = None,
    pad_mode: str = "constant",
    momentum: float = 0.99,
    init: str | None = "random",
    random_state: Any = None,
) -> GPUArray:
    """A signal whose spectrogram has about these magnitudes, as librosa.griffinlim() (Perraudin et al. 2013).

    S: (..., bins, frames), real and not negative. Result: (..., samples). n_iter: of the iterations; momentum: 0 for
    Griffin and Lim's own method. init: "random" phases, or None for zeros. random_state: a seed, an object whose
    random(shape) gives numbers of [0, 1) (gp.random.Generator, NumPy's), None for other phases each time; the numbers
    of a seed are not librosa's. Others as istft() and stft(). Raises DTypeError, ShapeError, ValueError. With init None
    or a seed the same bits on every run.
    """
    what = "griffinlim"
    if momentum > 1:
        warnings.warn(f"{what}: momentum is {momentum}; above 1 it can be unstable", stacklevel=2)
    elif not momentum >= 0:
        raise ValueError(f"{what}: momentum is {momentum} and must not be negative")
    if init not in ("random", None):
        raise ValueError(f"{what}: init is {init!r} and must be 'random' or None")
    if int(n_iter) != n_iter or n_iter < 0:
        raise ValueError(f"{what}: n_iter is {n_iter} and must be an integer of 0 or more")
    from pygpukit.array.factory import zeros

    S = magnitudes(S, what)
    n_fft = 2 * (S.shape[-2] - 1) if n_fft is None else n_fft
    common: dict[str, Any] = {
        "n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "window": window, "center": center,
    }  # fmt: skip
    sizes = frame_major(S).swapaxes(-1, -2)
    tiny = 2.0**-126 if S.dtype == float32 else 2.0**-1022
    guess = _begun(sizes, init, random_state)
    before = zeros(frame_major(guess).shape, guess.dtype).swapaxes(-1, -2)

    def step() -> None:
        rebuilt = stft(istft(guess, length=length, **common), pad_mode=pad_mode, **common)
        ahead = elementwise.sub(rebuilt, elementwise.mul(before, momentum / (1 + momentum)))
        scale = elementwise.div(sizes, elementwise.add(elementwise.abs(ahead), tiny))
        copying.copy_to(rebuilt, before)
        elementwise.mul(ahead, scale, out=guess)

    _repeated(step, n_iter)
    y = istft(guess, length=length, **common)
    return y if dtype is None or y.dtype == as_dtype(dtype) else copying.astype(y, as_dtype(dtype))


def _repeated(step: Callable[[], None], count: int) -> None:
    """step() so many times: once as it is, which makes the tables it needs, then as a graph, launched again and again
    with little work of Python's between."""
    if count:
        step()
    if count > _GRAPH_FROM and not capturing():
        with Stream().capture() as graph:
            step()
        for _ in range(count - 1):
            graph.launch()
    else:
        for _ in range(count - 1):
            step()


def _begun(sizes: GPUArray, init: str | None, random_state: Any) -> GPUArray:
    """S with the phases that the iterations begin with, its memory laid out as stft()'s."""
    kind, frames = complex_of(sizes.dtype), sizes.swapaxes(-1, -2)
    if init is None:
        return copying.astype(frames, kind).swapaxes(-1, -2)
    turns = native.empty(frames.shape, frames.dtype)
    if random_state is None or isinstance(random_state, int):
        seed = secrets.randbits(64) if random_state is None else random_state
        fill.uniform(turns, seed, 0, 0.0, 2 * math.pi)
    elif hasattr(random_state, "random"):
        turns = _angles(random_state.random(sizes.shape), sizes)
    else:
        raise ValueError(f"griffinlim: random_state is {random_state!r}; give a seed, a generator or None")
    out = native.empty(frames.shape, kind)
    elementwise.mul(frames, cos(turns), out=real(out))
    elementwise.mul(frames, sin(turns), out=imag(out))
    return out.swapaxes(-1, -2)


def _angles(numbers: Any, sizes: GPUArray) -> GPUArray:
    from pygpukit.array.factory import asarray

    drawn = numbers if is_array(numbers) else asarray(numbers)
    return elementwise.mul(copying.astype(drawn, sizes.dtype), 2 * math.pi).swapaxes(-1, -2)
