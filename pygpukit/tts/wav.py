"""Samples to and from WAV files, at another rate, and one after the other: on the host, by the operations of sound."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops.audio import files
from pygpukit.ops.audio.buffer import AudioBuffer
from pygpukit.ops.audio.resampling import resample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def to_wav(audio: Any, path: str | os.PathLike[str], sample_rate: int = 24000, normalize: bool = True) -> None:
    """Write one channel of 16-bit samples. audio: floats, an array of the host or the device, (n,), 1 as full scale.

    normalize: divides by the largest magnitude where that is beyond 1; else what is beyond is clipped. Raises
    InvalidSpecError for samples that are not finite or not one channel, OSError.
    """
    import numpy as np

    samples = as_samples(audio)
    if normalize and samples.size and (peak := float(np.abs(samples).max())) > 1:
        samples = samples / peak
    files.write(path, AudioBuffer(factory.from_numpy(np.clip(samples, -1, 1)), sample_rate))


def from_wav(path: str | os.PathLike[str]) -> tuple[Array, int]:
    """(samples, sample_rate) of a sound file: float32, (n,), or (channels, n). Raises as ops.audio.read()."""
    sound = files.read(path)
    return sound.to_numpy(), sound.sample_rate


def resample_audio(samples: Any, orig_sr: int, target_sr: int) -> Array:
    """Samples (n,) at another rate, float32, by ops.audio.resample(). Raises InvalidSpecError for what is no rate."""
    for name, rate in (("orig_sr", orig_sr), ("target_sr", target_sr)):
        if rate < 1:
            raise InvalidSpecError(f"resample_audio: {name} is {rate}, must be 1 or more", name)
    signal = as_samples(samples)
    if orig_sr == target_sr or not signal.size:
        return signal
    return resample(factory.from_numpy(signal), orig_sr=orig_sr, target_sr=target_sr).to_numpy()


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
    """One channel of finite float32 samples on the host: of an array of the host or the device, or of a sound."""
    import numpy as np

    samples = np.asarray(audio.to_numpy() if hasattr(audio, "to_numpy") else audio)
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise InvalidSpecError(
            f"samples of shape {samples.shape} and type {samples.dtype}; one channel of floats, (n,), is taken", "audio"
        )
    if not np.isfinite(samples).all():
        raise InvalidSpecError("samples must be finite; some are nan or infinite", "audio")
    return samples.astype(np.float32, copy=False)
