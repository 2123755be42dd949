"""The clips of this folder, and what faster-whisper heard in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pygpukit.asr.audio import samples_of

HERE = Path(__file__).parent
GOLDENS: dict[str, Any] = json.loads((HERE / "goldens.json").read_text())
NAMES = tuple(GOLDENS["said"])
GAP = 8000


def clip(name: str) -> np.ndarray[Any, Any]:
    """A clip's samples; "joined" is all of espeak-ng's with half a second between."""
    if name != "joined":
        return samples_of(HERE / "clips" / f"{name}.wav")
    return np.concatenate([part for one in GOLDENS["joined"] for part in (clip(one), np.zeros(GAP, np.float32))])


def noisy() -> np.ndarray[Any, Any]:
    """Clips under noise, noise alone, a tone, silence: 20 s for a detector of speech."""
    rng = np.random.default_rng(5)
    parts = [clip("weather"), np.zeros(9000, np.float32), clip("short"), np.zeros(40000, np.float32), clip("train")]
    sound = np.concatenate([*parts, np.sin(np.arange(30000, dtype=np.float32) * 0.17).astype(np.float32) / 2, parts[2]])
    level = np.linspace(0, 0.1, sound.size, dtype=np.float32)
    return (sound + level * rng.standard_normal(sound.size, dtype=np.float32)).astype(np.float32)


def spaced() -> np.ndarray[Any, Any]:
    """Three clips with seconds of nearly nothing before, between and after them."""
    rng = np.random.default_rng(6)
    pauses = [1e-3 * rng.standard_normal(count, dtype=np.float32) for count in (50000, 90000, 70000, 40000)]
    clips = [clip("weather"), clip("question"), clip("library")]
    return np.concatenate([part for both in zip(pauses, [*clips, clip("short")[:0]], strict=True) for part in both])


SPACED: dict[str, float] = {"min_speech_duration_ms": 0, "min_silence_duration_ms": 2000, "speech_pad_ms": 400}
CASES: tuple[dict[str, float], ...] = (
    {},
    SPACED,
    {"threshold": 0.7, "neg_threshold": 0.2, "min_silence_duration_ms": 0, "speech_pad_ms": 0},
    {"max_speech_duration_s": 1.0, "min_silence_duration_ms": 400},
    {"max_speech_duration_s": 2.5, "min_speech_duration_ms": 600, "min_silence_duration_ms": 1000},
    {"threshold": 0.12, "speech_pad_ms": 700},
)


def course() -> Iterator[tuple[np.ndarray[Any, Any], int]]:
    """Courses of probabilities that wander, each with the samples that it stands for."""
    for seed in range(24):
        rng = np.random.default_rng(seed)
        steps = rng.normal(0, rng.choice([0.3, 1.0, 3.0]), rng.integers(0, 300))
        wandering = 1 / (1 + np.exp(-(np.cumsum(steps) % 9 - 4.5)))
        yield wandering.astype(np.float32), max(0, wandering.size * 512 - int(rng.integers(0, 512)))
