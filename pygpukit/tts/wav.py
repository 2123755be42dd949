"""Samples to and from WAV files, at another rate, and one after the other; on the host, by the standard library."""

from __future__ import annotations

import os
import wave
from collections.abc import Sequence
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError, ModelFileError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_WIDTHS = {1: "u1", 2: "<i2", 4: "<i4"}
_ZEROS, _BETA = 24, 8.6  # of the resampler: zeros of the sinc to each side, the Kaiser window's shape


def to_wav(audio: Any, path: str | os.PathLike[str], sample_rate: int = 24000, normalize: bool = True) -> None:
    """Write one channel of 16-bit samples. audio: floats, an array of the host or the device, (n,), 1 as full scale.

    normalize: divides by the largest magnitude where that is beyond 1; else what is beyond is clipped. Raises
    InvalidSpecError for samples that are not finite or not one channel, OSError.
    """
    import numpy as np

    samples = as_samples(audio)
    if normalize and samples.size and (peak := float(np.abs(samples).max())) > 1:
        samples = samples / peak
    with Path(path).open("wb") as target, wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def from_wav(path: str | os.PathLike[str]) -> tuple[Array, int]:
    """(samples, sample_rate) of a WAV file of 8, 16 or 32-bit integers: float32, (n,), or (n, channels) of several.

    Raises ModelFileError for anything else.
    """
    import numpy as np

    try:
        with Path(path).open("rb") as source, wave.open(source, "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            raw = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ModelFileError(f"{path}: it cannot be read as a WAV file of integers: {error}", str(path)) from None
    if width not in _WIDTHS:
        raise ModelFileError(f"{path}: it has samples of {8 * width} bits; 8, 16 and 32 are read", str(path))
    values = np.frombuffer(raw[: len(raw) // (width * channels) * width * channels], _WIDTHS[width])
    middle = 128 if width == 1 else 0
    samples = ((values.astype(np.float64) - middle) / 2 ** (8 * width - 1)).astype(np.float32)
    return (samples if channels == 1 else samples.reshape(-1, channels)), rate


def resample_audio(samples: Any, orig_sr: int, target_sr: int) -> Array:
    """Samples (n,) at another rate, float32 (ceil(n target / orig),): a windowed sinc (Kaiser), phase by phase.

    Frequencies that the lower rate cannot carry are taken out. Raises InvalidSpecError for rates that are not positive.
    """
    import numpy as np

    for name, rate in (("orig_sr", orig_sr), ("target_sr", target_sr)):
        if rate < 1:
            raise InvalidSpecError(f"resample_audio: {name} is {rate}, must be 1 or more", name)
    given = as_samples(samples).astype(np.float64)
    if orig_sr == target_sr or not given.size:
        return given.astype(np.float32)
    up, down = target_sr // gcd(orig_sr, target_sr), orig_sr // gcd(orig_sr, target_sr)
    cut = min(1.0, up / down)  # of the given rate's half
    reach = int(np.ceil(_ZEROS / cut))
    offsets = np.arange(-reach, reach + 1)
    padded = np.pad(given, (reach, reach + 1))
    result = np.empty(-(-given.size * up // down), np.float64)
    for phase in range(min(up, result.size)):  # results a period apart share their weights
        first, part = divmod(phase * down, up)
        distance = offsets - part / up
        inside = np.sqrt(np.clip(1 - (distance / (reach + 1)) ** 2, 0, None))
        weights = cut * np.sinc(cut * distance) * np.i0(_BETA * inside) / np.i0(_BETA)
        count = len(range(phase, result.size, up))
        windows = np.lib.stride_tricks.sliding_window_view(padded, offsets.size)[first::down][:count]
        result[phase::up] = windows @ weights
    return result.astype(np.float32)


def concatenate_audio(audio_list: Sequence[Any], gap_samples: int = 0) -> Array:
    """Sounds one after the other, float32 (n,), with gap_samples of silence between."""
    import numpy as np

    if gap_samples < 0:
        raise InvalidSpecError(f"concatenate_audio: gap_samples is {gap_samples}, must be 0 or more", "gap_samples")
    gap = np.zeros(gap_samples, np.float32)
    parts: list[Array] = []
    for each in audio_list:
        parts += [gap, as_samples(each)] if parts else [as_samples(each)]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def as_samples(audio: Any) -> Array:
    """One channel of finite float32 samples on the host, of an array of the host or the device, or what has one."""
    import numpy as np

    audio = getattr(audio, "audio", audio)  # a SynthesisResult
    audio = getattr(audio, "data", audio) if hasattr(audio, "sample_rate") else audio  # an AudioBuffer
    samples = np.asarray(audio.to_numpy() if hasattr(audio, "to_numpy") else audio)
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise InvalidSpecError(
            f"samples of shape {samples.shape} and type {samples.dtype}; one channel of floats, (n,), is taken", "audio"
        )
    if not np.isfinite(samples).all():
        raise InvalidSpecError("samples must be finite; some are nan or infinite", "audio")
    return samples.astype(np.float32, copy=False)
