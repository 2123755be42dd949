"""Plays the recording of the audio notebooks, notebooks/data/tune.wav: eight seconds of strings, bass and drums."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np

RATE = 16000
BEAT_S = 0.5
BEATS = 16
CHORDS = ((57, 60, 64), (53, 57, 60), (48, 52, 55), (55, 59, 62))  # A minor, F, C, G as notes of MIDI; four beats each
TARGET = Path(__file__).resolve().parent.parent / "notebooks" / "data" / "tune.wav"
MELODY = (76, 74, 72, 69, 72, 69, 67, 65, 67, 72, 76, 79, 74, 71, 74, 79)

Samples = np.ndarray[Any, np.dtype[np.float64]]


def hertz(note: int) -> float:
    """The frequency of a note of MIDI."""
    return 440.0 * 2.0 ** ((note - 69) / 12)


def tone(note: int, seconds: float, decay_s: float, partials: int) -> Samples:
    """A plucked string: partials that are weaker and die away sooner the higher they are."""
    time = np.arange(int(seconds * RATE)) / RATE
    total = np.zeros_like(time)
    for partial in range(1, partials + 1):
        frequency = partial * hertz(note)
        if frequency < RATE / 2:
            total += np.sin(2 * np.pi * frequency * time) * np.exp(-time * partial**0.5 / decay_s) / partial
    attack = np.minimum(1, time / 0.004)
    release = np.minimum(1, (seconds - time) / 0.02)
    return total * attack * release


def kick() -> Samples:
    """A tone that falls from 150 to 50 Hz."""
    time = np.arange(int(0.2 * RATE)) / RATE
    phase = 2 * np.pi * (50 * time + 100 * 0.03 * (1 - np.exp(-time / 0.03)))
    return np.sin(phase) * np.exp(-time / 0.07)


def noise(random: np.random.Generator, seconds: float, decay_s: float) -> Samples:
    """A burst of noise without its low frequencies."""
    time = np.arange(int(seconds * RATE)) / RATE
    return np.diff(random.standard_normal(time.size + 1)) * np.exp(-time / decay_s)


def tune() -> Samples:
    """The piece, its peak at 0.9."""
    random = np.random.default_rng(1)
    mix = np.zeros(int(BEATS * BEAT_S * RATE))

    def put(part: Samples, beat: float, level: float) -> None:
        at = int(beat * BEAT_S * RATE)
        length = min(part.size, mix.size - at)
        mix[at : at + length] += level * part[:length]

    for beat in range(BEATS):
        chord = CHORDS[beat // 4]
        put(tone(chord[0] - 24, BEAT_S, 0.4, 5), beat, 0.5)
        put(tone(MELODY[beat], BEAT_S * 1.4, 0.5, 6), beat, 0.35)
        if beat % 4 == 0:
            for note in chord:
                put(tone(note, 4 * BEAT_S, 1.6, 8), beat, 0.2)
        put(kick() if beat % 2 == 0 else 0.5 * noise(random, 0.15, 0.05), beat, 0.9)
        put(noise(random, 0.05, 0.015), beat + 0.5, 0.2)
    return mix * (0.9 / np.abs(mix).max())


def main() -> None:
    samples = np.rint(tune() * (2**15 - 1)).astype("<i2")
    with wave.open(str(TARGET), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


if __name__ == "__main__":
    main()
