"""read() and write(): sound files by soundfile; WAV files also without it."""

from __future__ import annotations

import os
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import install_command
from pygpukit.ops.audio.buffer import AudioBuffer, from_pcm

if TYPE_CHECKING:
    import numpy as np

__all__ = ["read", "write"]

_BITS = {"PCM_U8": 8, "PCM_16": 16, "PCM_24": 24, "PCM_32": 32}
_MAX_HZ = 2**31 - 1  # that an AudioBuffer has
_BLOCK = 1 << 22  # samples that are read at a time


def read(path: str | os.PathLike[str], *, max_samples: int | None = None) -> AudioBuffer:
    """The sound of a file, on the device, at the file's own rate and with all of its channels.

    WAV, FLAC, OGG, MP3 and what else soundfile reads (extra `audio`); without soundfile, WAV files of whole numbers.
    max_samples: of all channels together; a file that has more is refused before more than that is decoded.

    Raises FileNotFoundError, and InvalidSpecError for a file that is damaged, too long or of another kind.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"read: there is no file {os.fspath(path)!r}")
    soundfile = _soundfile()
    if soundfile is None:
        return _read_wave(path, max_samples)
    try:
        with soundfile.SoundFile(os.fspath(path)) as file:
            samples, rate = _samples(file, os.fspath(path), max_samples), file.samplerate
    except (RuntimeError, ValueError) as error:  # soundfile's own errors are RuntimeErrors
        raise InvalidSpecError(
            f"read: {os.fspath(path)!r} is no sound file that can be read: {error}", "path"
        ) from None
    if not 0 < rate <= _MAX_HZ:
        raise InvalidSpecError(f"read: {os.fspath(path)!r} is damaged: it has a rate of {rate} Hz", "path")
    try:
        return from_pcm(samples[:, 0] if samples.shape[1] == 1 else samples.T, int(rate), samples.shape[1])
    except InvalidSpecError as error:  # samples that are not finite, which files of floats may hold
        raise InvalidSpecError(f"read: {os.fspath(path)!r} is damaged: {error}", "path") from None


def write(path: str | os.PathLike[str], sound: AudioBuffer, subtype: str = "PCM_16") -> None:
    """Write a sound to a file; the ending of its name says which kind of file.

    subtype: how samples are kept, "PCM_16", "PCM_24", "PCM_32" or "PCM_U8", and with soundfile "FLOAT" and others.
    Samples beyond full scale are clipped where they become whole numbers. Without soundfile, WAV files only. Raises
    InvalidSpecError for what cannot be written.
    """
    if not isinstance(sound, AudioBuffer):
        raise InvalidSpecError(f"write: sound is {type(sound).__name__}, not an AudioBuffer", "sound")
    frames = sound.to_numpy().T
    soundfile = _soundfile()
    if soundfile is None:
        return _write_wave(path, frames.reshape(len(sound), sound.channels), sound.sample_rate, subtype)
    try:
        soundfile.write(os.fspath(path), frames, sound.sample_rate, subtype=subtype)
    except (RuntimeError, ValueError, TypeError) as error:
        raise InvalidSpecError(f"write: {os.fspath(path)!r} as {subtype} was not written: {error}", "path") from None
    return None


def _soundfile() -> Any:
    """The module, or None where it is not installed."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: installed without its library
        return None
    return soundfile


def _samples(file: Any, path: str, max_samples: int | None) -> np.ndarray[Any, Any]:
    """All frames of an open file, by channels. Read in blocks: a damaged file may give a length that it has not."""
    import numpy as np

    block = max(1, _BLOCK // file.channels)
    blocks = [file.read(block, dtype="float32", always_2d=True)]
    total = blocks[0].size
    _check_length(path, total, max_samples)
    while len(blocks[-1]) == block:
        blocks.append(file.read(block, dtype="float32", always_2d=True))
        total += blocks[-1].size
        _check_length(path, total, max_samples)
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _check_length(path: str, samples: int, max_samples: int | None) -> None:
    if max_samples is not None and samples > max_samples:
        raise InvalidSpecError(f"read: {path!r} has more than the {max_samples} samples that may be read", "path")


def _advice() -> str:
    return f"soundfile reads and writes other files: {install_command('audio')}"


def _read_wave(path: str | os.PathLike[str], max_samples: int | None) -> AudioBuffer:
    import numpy as np

    try:
        with wave.open(os.fspath(path), "rb") as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            _check_length(os.fspath(path), channels * file.getnframes(), max_samples)
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError, RuntimeError) as error:
        raise InvalidSpecError(
            f"read: {os.fspath(path)!r} is no WAV file of whole numbers: {error}. {_advice()}"
        ) from None
    whole = len(data) // (width * channels or 1) * width * channels
    if width not in (1, 2, 3, 4) or whole != len(data) or not 0 < rate <= _MAX_HZ:
        raise InvalidSpecError(
            f"read: {os.fspath(path)!r} is damaged: {len(data)} bytes of {width}-byte samples at {rate} Hz"
        )
    if width == 3:  # into the upper bytes of four
        parts = np.zeros((len(data) // 3, 4), np.uint8)
        parts[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        samples = parts.view("<i4").ravel()
    else:
        samples = np.frombuffer(data, {1: "u1", 2: "<i2", 4: "<i4"}[width])
    return from_pcm(samples, rate, channels)


def _write_wave(path: str | os.PathLike[str], frames: np.ndarray[Any, Any], rate: int, subtype: str) -> None:
    import numpy as np

    bits = _BITS.get(subtype)
    if Path(path).suffix.lower() != ".wav" or bits is None:
        raise InvalidSpecError(f"write: {os.fspath(path)!r} as {subtype} needs soundfile. {_advice()}", "path")
    full = 2.0 ** (bits - 1)
    whole = np.clip(np.rint(np.nan_to_num(frames.astype(np.float64)) * full), -full, full - 1).astype("<i4")
    if bits == 8:
        data = (whole + 128).astype(np.uint8).tobytes()
    else:
        data = whole.reshape(-1, 1).view(np.uint8)[:, : bits // 8].tobytes()
    with wave.open(os.fspath(path), "wb") as file:
        file.setnchannels(frames.shape[1])
        file.setsampwidth(bits // 8)
        file.setframerate(rate)
        file.writeframes(data)
