"""Pictures of a sound: its waveform as lowest and highest samples by column, its spectrogram as levels, as HTML."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from pygpukit.array.png import indexed_png, palette
from pygpukit.core.text import escape, human_bytes
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.buffer import AudioBuffer
from pygpukit.ops.audio.framing import fix_length
from pygpukit.ops.audio.stft import stft
from pygpukit.ops.elementwise import logic

if TYPE_CHECKING:
    import numpy as np

N_FFT = 1024
RANGE_DB = 80.0  # below the loudest
LEVELS = 256
_WIDTH, _WAVE, _ROWS = 440, 64, 96  # of the static picture, in pixels
_COLOURS = 64
MAX_SOUND_BYTES = 1 << 20  # of a sound that a notebook keeps: 22 s of one channel at 24 kHz


def envelope(sound: AudioBuffer, columns: int) -> np.ndarray[Any, Any]:
    """float32 (2, columns): the lowest and the highest sample of each of so many equal parts, over all channels.

    NaN counts as 0; parts beyond the last sample are 0. One pass over the samples on the device.
    """
    import numpy as np

    count = len(sound)
    width = max(1, -(-count // columns))
    whole = count // width
    extremes = np.zeros((2, columns), np.float32)
    rows = sound.data.reshape(sound.channels, count)
    if whole:
        parts = rows[:, : whole * width].reshape(sound.channels, whole, width)
        extremes[0, :whole] = reduce.min(parts, axis=2).to_numpy().min(axis=0)
        extremes[1, :whole] = reduce.max(parts, axis=2).to_numpy().max(axis=0)
    if whole * width < count:
        rest = rows[:, whole * width :].to_numpy()
        extremes[:, whole] = rest.min(), rest.max()
    return np.nan_to_num(extremes, nan=0.0, posinf=1.0, neginf=-1.0)


def spectrogram(sound: AudioBuffer, columns: int, rows: int) -> np.ndarray[Any, Any]:
    """uint8 (rows, columns): levels of the power by time and frequency, the highest frequency first.

    255 is the loudest, 0 is RANGE_DB below it and less. Rows are evenly spaced in mel from 0 to half the rate; each
    takes the loudest of its frequencies. Columns are evenly spaced in time. float32.
    """
    import numpy as np

    mono = sound.to_mono()
    hop = max(1, -(-len(sound) // columns))
    bands = banded(_power(mono, hop)[:, : -(-len(sound) // hop)], sound.sample_rate, rows)
    pixels = np.zeros((rows, columns), np.uint8)
    pixels[:, : bands.shape[1]] = levels(bands, float(bands.max(initial=0.0)))
    return pixels


def banded(power: np.ndarray[Any, Any], rate: int, rows: int) -> np.ndarray[Any, Any]:
    """(rows, columns) of power (bins, columns): rows equally wide in mel, the highest first, each its loudest."""
    import numpy as np

    frequencies = np.arange(power.shape[0]) * (rate / 2 / (power.shape[0] - 1))
    edges = np.searchsorted(frequencies, _mel_edges(rate, rows))
    firsts = np.minimum(edges[:-1], power.shape[0] - 1)
    lasts = np.maximum(edges[1:], firsts + 1)
    return np.stack([power[first:last].max(axis=0) for first, last in zip(firsts, lasts, strict=True)])[::-1]


def levels(power: np.ndarray[Any, Any], loudest: float) -> np.ndarray[Any, Any]:
    """uint8 of power: 255 for the loudest and more, 0 for RANGE_DB below it and less."""
    import numpy as np

    if loudest <= 0:
        return np.zeros(power.shape, np.uint8)
    db = 10 * np.log10(np.maximum(power / loudest, 1e-30))
    return (np.clip(db / RANGE_DB + 1, 0, 1) * (LEVELS - 1) + 0.5).astype(np.uint8)


def html(sound: AudioBuffer, note: str = "") -> str:
    """The sound for pages that have no kernel: waveform, spectrogram, facts, at most 70 kB; and itself, as 16 bit WAV
    of at most MAX_SOUND_BYTES. Of a longer one it says that it is not there."""
    facts = escape(repr(sound)[len("AudioBuffer(") : -1])
    if len(sound) == 0:
        picture, heard = "", ""
    else:
        shown = image(spectrogram(sound, _WIDTH, _ROWS), sound.sample_rate)
        picture, heard = f"{_wave(envelope(sound, _WIDTH))}{shown}", audio(sound)
        if not heard:
            note = f"The sound is longer than what a notebook keeps ({human_bytes(MAX_SOUND_BYTES)}). {note}"
    return (
        '<div class="gk-sound" style="font: 13px system-ui, sans-serif; font-variant-numeric: tabular-nums">'
        f"<div>{facts}</div>{picture}{heard}<div>{escape(note)}</div></div>"
    )


def audio(sound: AudioBuffer) -> str:
    """The browser's own player with the sound, 16 bit WAV; "" where that is longer than MAX_SOUND_BYTES.

    Samples that are not finite are 0, those beyond 1 are clipped, as the player does; of more than two channels the
    first two are there.
    """
    import io
    import wave

    import numpy as np

    channels = min(sound.channels, 2)
    if len(sound) * channels * 2 > MAX_SOUND_BYTES:
        return ""
    samples = sound.data.reshape(sound.channels, len(sound)).to_numpy()[:channels]
    samples = np.clip(np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0), -1, 1)
    file = io.BytesIO()
    with wave.open(file, "wb") as target:
        target.setnchannels(channels)
        target.setsampwidth(2)
        target.setframerate(sound.sample_rate)
        target.writeframes(np.ascontiguousarray(np.rint(samples.T * 32767).astype("<i2")).tobytes())
    data = base64.b64encode(file.getvalue()).decode()
    return f'<audio controls style="display: block" src="data:audio/wav;base64,{data}"></audio>'


def image(levels: np.ndarray[Any, Any], rate: int) -> str:
    """Levels as a picture of as many pixels."""
    height, width = levels.shape
    png = base64.b64encode(indexed_png(levels // (LEVELS // _COLOURS), palette(_COLOURS))).decode()
    return (
        f'<img alt="a spectrogram, 0 to {rate / 2000:g} kHz" style="display: block" width="{width}" height="{height}" '
        f'src="data:image/png;base64,{png}">'
    )


def _wave(envelope: np.ndarray[Any, Any]) -> str:
    scale = (_WAVE / 2 - 1) / max(float(abs(envelope).max()), 1e-9)
    lines = "".join(
        f"M{at}.5 {_WAVE / 2 - high * scale - 0.4:.1f}V{_WAVE / 2 - low * scale + 0.4:.1f}"
        for at, (low, high) in enumerate(envelope.T.tolist())
    )
    return (
        f'<svg width="{_WIDTH}" height="{_WAVE}" role="img" aria-label="its waveform" stroke="currentColor" '
        f'style="display: block"><path d="{lines}"/></svg>'
    )


def _power(mono: AudioBuffer, hop: int) -> np.ndarray[Any, Any]:
    """float32 (N_FFT // 2 + 1, columns): power of frames that are `hop` samples apart; NaN and infinity count as 0."""
    clean = elementwise.where(logic.isfinite(mono.data), mono.data, 0.0)
    longer = fix_length(clean, size=max(len(mono), N_FFT))
    magnitudes = elementwise.abs(stft(longer, n_fft=N_FFT, hop_length=hop))
    return elementwise.mul(magnitudes, magnitudes).to_numpy()


def _mel_edges(rate: int, rows: int) -> np.ndarray[Any, Any]:
    """The bounds of so many bands that are equally wide in mel, in Hz."""
    import numpy as np

    top = 2595 * np.log10(1 + rate / 2 / 700)
    return 700 * (10 ** (np.linspace(0, top, rows + 1) / 2595) - 1)
