"""Sound as Whisper takes it: one channel of float32 at 16 kHz, from arrays, AudioBuffers and sound files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.asr.features import RATE, Features
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops.audio.buffer import AudioBuffer
from pygpukit.ops.audio.files import read
from pygpukit.ops.shape.joining import stack

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Array = np.ndarray[Any, Any]
    Audio = str | os.PathLike[str] | Array | GPUArray | AudioBuffer


def samples_of(audio: Any, sample_rate: int | None = None) -> Array:
    """The sound as float32 (n,) at 16 kHz on the host.

    audio: an AudioBuffer, the path of a sound file (as gp.ops.audio.read() takes it), or samples: a NumPy array or
    GPUArray, floats of -1 to 1 or integers of their full range, (n,), (channels, n) or (n, channels) with up to 8
    channels, which are averaged. sample_rate: of samples, 16000 by default; an AudioBuffer and a file have their own.
    Raises InvalidSpecError, ShapeError, DTypeError, OSError.
    """
    import numpy as np

    rate: Any
    sound = read(audio) if isinstance(audio, (str, os.PathLike)) else audio
    if isinstance(sound, AudioBuffer):
        samples, rate = sound.to_numpy(), sound.sample_rate
        if sample_rate is not None and sample_rate != rate:
            what = audio if sound is not audio else "the AudioBuffer"
            raise InvalidSpecError(
                f"{what}: its rate is {rate} Hz, but sample_rate is {sample_rate}; leave it out", "sample_rate"
            )
    else:
        samples, rate = sound, RATE if sample_rate is None else sample_rate
        if not isinstance(samples, np.ndarray):
            samples = samples.to_numpy() if hasattr(samples, "to_numpy") else np.asarray(samples)
    if isinstance(rate, str) or not 1000 <= rate <= 768000 or rate != int(rate):
        raise InvalidSpecError(f"sample_rate is {rate!r}, must be a whole number of 1000 to 768000 Hz", "sample_rate")
    mono = _mono(_as_float(samples))
    if not mono.size:
        raise InvalidSpecError("the sound is empty; it must have at least one sample", "audio")
    if not np.isfinite(mono).all():
        raise InvalidSpecError("the sound has samples that are NaN or infinite", "audio")
    return _resampled(mono, int(rate))


def pad_or_trim(audio_data: Any, length: int = 30 * RATE) -> GPUArray:
    """The last axis cut to length, or filled up with zeros: float32 on the device."""
    import numpy as np

    samples = audio_data if isinstance(audio_data, np.ndarray) else audio_data.to_numpy()
    samples = samples[..., :length].astype(np.float32)
    missing = length - samples.shape[-1]
    return factory.from_numpy(np.pad(samples, [*[(0, 0)] * (samples.ndim - 1), (0, missing)]))


def preprocess_audio(
    audio_input: Any, sample_rate: int | None = None, n_mels: int = 80, padding: bool = True
) -> GPUArray:
    """Log-mel features of the first 30 seconds, float32 (n_mels, 3000): what an encoder takes.

    audio_input, sample_rate, errors: as samples_of(). padding: silence makes the sound 30 seconds long; False: the
    features of what there is, (n_mels, frames).
    """
    samples = samples_of(audio_input, sample_rate)[: 30 * RATE]
    features = Features(samples, n_mels, 30 * RATE - samples.size if padding else 0)
    return features.window(0, features.frames, features.frames)


def preprocess_audio_batch(audio_list: Sequence[Any], sample_rate: int | None = None, n_mels: int = 80) -> GPUArray:
    """preprocess_audio() of several sounds: float32 (sounds, n_mels, 3000)."""
    return stack([preprocess_audio(audio, sample_rate, n_mels) for audio in audio_list])


def _as_float(samples: Array) -> Array:
    import numpy as np

    kind = samples.dtype.kind
    if kind == "f":
        return samples.astype(np.float32)
    if kind == "i":
        return (samples / -float(np.iinfo(samples.dtype).min)).astype(np.float32)
    if samples.dtype == np.uint8:
        return ((samples.astype(np.float32)) - 128) / 128
    raise DTypeError(f"the sound's samples are {samples.dtype}, must be floats, signed integers or uint8")


def _mono(samples: Array) -> Array:
    if samples.ndim == 1:
        return samples
    if samples.ndim == 2 and min(samples.shape) <= 8:
        return samples.mean(axis=0 if samples.shape[0] <= samples.shape[1] else 1)
    raise ShapeError(f"the sound has shape {samples.shape}, must be (n,), or with up to 8 channels")


def _resampled(samples: Array, rate: int) -> Array:
    """At 16 kHz, through the spectrum's windowed sinc: 64 zero crossings under a Kaiser window."""
    import numpy as np

    if rate == RATE:
        return samples
    from math import gcd

    shared = gcd(rate, RATE)
    up, down = RATE // shared, rate // shared
    reach = 32 * max(up, down)  # of the filter to each side, at the rate of the least common multiple
    places = np.arange(-reach, reach + 1)
    cut = 1.0 / max(up, down)
    taps = cut * up * np.sinc(cut * places) * np.kaiser(places.size, 8.6)
    count = -(-samples.size * up // down)
    result = np.zeros(count, np.float32)
    padded = np.pad(samples, (reach // up + 2,) * 2).astype(np.float32)
    for phase in range(min(up, count)):
        # Output n stands at input place n * down / up; outputs with the same n mod up have the same taps.
        numbers = np.arange(phase, count, up)
        at = numbers * down
        first = -((reach - at[0]) // up)  # the first input within reach
        offsets = np.arange(first, (at[0] + reach) // up + 1)
        window = taps[at[0] - offsets * up + reach].astype(np.float32)
        begin = offsets[0] + reach // up + 2
        rows = np.lib.stride_tricks.sliding_window_view(padded, window.size)[begin::down][: numbers.size]
        result[numbers[: rows.shape[0]]] = rows @ window
    return result
