"""gp.Audio(): samples, a file or a sound as a player in a cell, by the habits of IPython's Audio."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pygpukit.array.factory import asarray
from pygpukit.core.errors import DTypeError, InvalidSpecError

if TYPE_CHECKING:
    from pygpukit.ops.audio.buffer import AudioBuffer

_WHOLE = ("int16", "int32", "uint8")  # what from_pcm() knows the full scale of


def Audio(data: Any, rate: int | None = None, *, normalize: bool = True) -> AudioBuffer:
    """A sound that a cell shows as a player.

    data: samples, of shape (n,), (channels, n) or (n, channels), as an array or a list of numbers; the path of a sound
    file; or a sound. rate: in Hz, of samples alone. normalize: make samples as loud as can be; else they are from -1
    to 1, and integers as files have them.

    Raises InvalidSpecError without a rate, DTypeError for what is no sound, and what from_pcm() and read() raise.

    >>> import pygpukit as gp
    >>> t = gp.arange(8000) / 8000
    >>> gp.Audio(gp.sin(t * 2765), 8000)
    AudioBuffer(1.000 s, 8000 Hz, mono, 8000 samples)
    """
    from pygpukit.ops.audio.buffer import AudioBuffer, from_pcm
    from pygpukit.ops.audio.files import read  # fetching the name loads no NumPy

    if isinstance(data, str | os.PathLike):
        data = read(data)
    if isinstance(data, AudioBuffer):
        if rate not in (None, data.sample_rate):
            raise InvalidSpecError(f"Audio: the sound has {data.sample_rate} Hz, not {rate}; resample() it", "rate")
        return data
    if rate is None:
        raise InvalidSpecError(
            "Audio: samples have no rate of their own: give it, as in gp.Audio(samples, 44100)", "rate"
        )
    samples = asarray(data)
    kind = samples.dtype.name
    whole = "int" in kind
    if not (whole or "float" in kind) or (whole and kind not in _WHOLE and not normalize):
        raise DTypeError(f"Audio: samples are {kind}, which {'has no full scale' if whole else 'is no sound'}")
    if kind not in (*_WHOLE, "float64"):
        samples = samples.astype("float32")
    sound = from_pcm(samples, rate)
    if normalize:
        return sound.normalize()
    if len(sound) and float(abs(sound.data).max()) > 1:
        raise InvalidSpecError("Audio: samples are beyond -1 to 1; with normalize=True they are scaled", "data")
    return sound
