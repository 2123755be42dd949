"""Sounds made by formula, the same everywhere, and spectrograms of them by plain NumPy: what the parity suite works on.

Values are float32 numbers, so that float32 and float64 begin with the same.
"""

from __future__ import annotations

from functools import cache

import numpy as np

RATE = 22050
LENGTH = 13001


def _noise(length: int, seed: int) -> np.ndarray:
    """White noise of -1 to 1 by a linear congruence, which no library changes."""
    numbers, state = np.empty(length), 2 * seed + 1
    for i in range(length):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        numbers[i] = (state >> 11) / 2**52 - 1
    return numbers


def _voice(seconds: np.ndarray) -> np.ndarray:
    """A vowel: harmonics of a tone around 180 Hz with vibrato, louder and softer, over a little noise."""
    phase = 2 * np.pi * (180 * seconds + 0.4 * np.sin(2 * np.pi * 5 * seconds))
    stack = sum(np.sin(k * phase) / k**1.3 for k in range(1, 25))
    return stack * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * seconds)) + 0.003 * _noise(len(seconds), 1)


def _chirp(seconds: np.ndarray) -> np.ndarray:
    return 0.8 * np.sin(2 * np.pi * (100 * seconds + 4000 * seconds**2)) + 0.01 * _noise(len(seconds), 2)


def _tone(seconds: np.ndarray) -> np.ndarray:
    """A steady tone 80 dB above its noise: what is quiet must not drown in the rounding of what is loud."""
    return np.sin(2 * np.pi * 1009 * seconds) + 1e-4 * _noise(len(seconds), 6)


def _clicks(seconds: np.ndarray) -> np.ndarray:
    """A click each 90 ms that decays, over a steady tone and a little noise."""
    since = seconds % 0.09
    clicks, floor = (_noise(len(seconds), seed) for seed in (3, 5))
    return np.exp(-since * 300) * clicks + 0.2 * np.sin(2 * np.pi * 440 * seconds) + 0.002 * floor


@cache
def signal(name: str) -> np.ndarray:
    """ "voice", "chirp", "clicks", "tone", "noise", or "pair": voice and clicks as (2, samples).

    float64 of float32 numbers.
    """
    seconds = np.arange(LENGTH) / RATE
    made = {
        "voice": _voice,
        "chirp": _chirp,
        "clicks": _clicks,
        "tone": _tone,
        "noise": lambda s: 0.5 * _noise(len(s), 4),
    }
    values = np.stack([_voice(seconds), _clicks(seconds)]) if name == "pair" else made[name](seconds)
    return values.astype(np.float32).astype(np.float64)


@cache
def spectrogram(name: str, n_fft: int = 1024, hop: int = 256) -> np.ndarray:
    """The transform of a signal's frames, with zeros at both ends: complex128 of complex64 numbers."""
    y = signal(name)
    around = np.pad(y, [(0, 0)] * (y.ndim - 1) + [(n_fft // 2, n_fft // 2)])
    frames = np.lib.stride_tricks.sliding_window_view(around, n_fft, -1)[..., ::hop, :]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    return np.fft.rfft(frames * window).swapaxes(-1, -2).astype(np.complex64).astype(np.complex128)


@cache
def given(what: str) -> np.ndarray:
    """An input by its name: a signal's, or "stft", "magnitude", "power", "bands" (40 of them, in dB) and a signal's."""
    kind, _, name = what.partition(" ")
    if not name:
        return signal(kind)
    D = spectrogram(name)
    if kind == "stft":
        return D
    values = np.abs(D) ** (2 if kind == "power" else 1)
    if kind == "bands":
        values = values[..., :480, :].reshape(*values.shape[:-2], 40, 12, -1).mean(-2)
        values = 20 * np.log10(np.maximum(values, 1e-4))
    return values.astype(np.float32).astype(np.float64)


MOST = 1000


def thinned(values: np.ndarray) -> np.ndarray:
    """The elements that are kept of a result: all, or MOST of them, all over it."""
    flat = np.ascontiguousarray(values).ravel()
    if len(flat) <= MOST:
        return flat
    step = len(flat) // MOST
    place = np.arange(MOST)
    return flat[place * step + place * 37 % step]
