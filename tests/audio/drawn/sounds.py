"""Sounds of random kinds, lengths and shapes, the same for a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]
Random = np.random.Generator
RATES = (8000, 11025, 16000, 22050, 44100, 48000)
SHAPES = ((), (), (), (), (2,), (2, 2))
LONGEST = 14000  # samples


def _tone(random: Random, seconds: Values) -> Values:
    return np.sin(2 * np.pi * random.uniform(50, 3000) * seconds + random.uniform(0, 6))


def _voice(random: Random, seconds: Values) -> Values:
    """Harmonics of a gliding, trembling tone that comes and goes."""
    low, cents = random.uniform(80, 400), random.uniform(0, 30)
    glide = low * 2 ** (random.uniform(-0.5, 0.5) * seconds) * (1 + cents / 1200 * np.sin(2 * np.pi * 5 * seconds))
    phase = 2 * np.pi * np.cumsum(glide) * (seconds[1] if len(seconds) > 1 else 0)
    stack = sum(np.sin(k * phase) / k for k in range(1, 12))
    return stack * (np.sin(2 * np.pi * random.uniform(0.5, 2) * seconds) > random.uniform(-1, -0.3))


def _chirp(random: Random, seconds: Values) -> Values:
    return np.sin(2 * np.pi * (random.uniform(50, 500) * seconds + random.uniform(100, 2000) * seconds**2))


def _clicks(random: Random, seconds: Values) -> Values:
    since = seconds % random.uniform(0.08, 0.5)
    return np.exp(-since * random.uniform(50, 400)) * random.standard_normal(len(seconds))


def _white(random: Random, seconds: Values) -> Values:
    return random.standard_normal(len(seconds)) / 3


def _brown(random: Random, seconds: Values) -> Values:
    walk = np.cumsum(random.standard_normal(len(seconds)))
    return (walk - walk.mean()) / (np.abs(walk).max() or 1)


def _chord(random: Random, seconds: Values) -> Values:
    root = random.uniform(80, 500)
    return sum(np.sin(2 * np.pi * root * ratio * seconds) for ratio in (1, 1.25, 1.5, 2)) / 4


def _island(random: Random, seconds: Values) -> Values:
    """Sound between long silences."""
    inside = np.abs(seconds - seconds.mean()) < random.uniform(0.1, 0.4) * seconds[-1]
    return inside * _voice(random, seconds)


KINDS = {made.__name__[1:]: made for made in (_tone, _voice, _chirp, _clicks, _white, _brown, _chord, _island)}


def sound(random: Random, shortest: int = 3000) -> tuple[str, float, Values]:
    """(its kind, its rate, its samples (..., samples)): float64 of float32 numbers, over a floor of noise.

    A pure tone's other bins hold nothing but rounding, which no float32 shares with float64: hence the floor.
    """
    rate, length = random.choice(RATES), int(random.integers(shortest, LONGEST))
    kind, shape = str(random.choice(list(KINDS))), SHAPES[random.integers(len(SHAPES))]
    seconds, lines = np.arange(length) / rate, int(np.prod(shape))
    made = np.stack([KINDS[kind](random, seconds) for _ in range(lines)])
    made += 10 ** random.uniform(-4, -2) * random.standard_normal(made.shape)
    made *= 10 ** random.uniform(-2, 0)
    return kind, float(rate), made.reshape(*shape, length).astype(np.float32).astype(np.float64)
