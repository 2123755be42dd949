"""Signals and calls: make_goldens_signals.py writes what librosa gives, test_signal_goldens.py compares with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

GOLDENS = Path(__file__).parent / "goldens" / "signals.npz"
SR = 11025


@dataclass(frozen=True)
class Case:
    """function(signal, **keywords), or with the signal as a keyword where `by` names one."""

    function: str
    signal: str
    keywords: dict[str, Any] = field(default_factory=dict)
    by: str = ""


def _cases(function: str, signal: str, *sets: dict[str, Any], by: str = "") -> list[Case]:
    return [Case(function, signal, keywords, by) for keywords in sets]


_SHORT = {"frame_length": 512, "hop_length": 100}
_PITCH = {"fmin": 70, "fmax": 900, "sr": SR, "frame_length": 1024}
CASES = [
    *_cases("rms", "noise", {}, _SHORT, _SHORT | {"center": False}, _SHORT | {"pad_mode": "reflect"}, by="y"),
    *_cases("rms", "spectrogram", {"frame_length": 254}, {"frame_length": 255}, by="S"),
    *_cases("zero_crossing_rate", "noise", {}, _SHORT, {"threshold": 0.3, "zero_pos": False}, {"pad": True}),
    *_cases("zero_crossing_rate", "steps", _SHORT, _SHORT | {"zero_pos": False, "center": False}),
    *_cases("autocorrelate", "noise", {}, {"max_size": 50}, {"axis": 0}),
    *_cases("autocorrelate", "voice", {"max_size": 300}),
    *_cases("yin", "voice", _PITCH, _PITCH | {"trough_threshold": 0.3, "hop_length": 100}, _PITCH | {"center": False}),
    *_cases("yin", "tones", _PITCH, _PITCH | {"pad_mode": "reflect", "fmax": 2000}),
    *_cases("pyin", "voice", _PITCH, _PITCH | {"resolution": 0.2, "switch_prob": 0.1, "fill_na": None}),
    *_cases("pyin", "tones", _PITCH | {"n_thresholds": 50, "beta_parameters": (2, 34 / 3), "max_transition_rate": 20}),
    *_cases("onset_strength", "decibels", {}, {"lag": 2, "max_size": 3}, {"detrend": True}, {"center": False}, by="S"),
    *_cases("onset_strength", "clicks", {"sr": SR, "n_fft": 1024, "hop_length": 256}, {"sr": SR, "n_mels": 40}, by="y"),
    *_cases("onset_detect", "envelope", {}, {"backtrack": True, "units": "time"}, by="onset_envelope"),
    *_cases("onset_detect", "envelope", {"units": "samples", "delta": 0.2, "wait": 4, "sr": SR}, by="onset_envelope"),
    *_cases("onset_detect", "envelope", {"normalize": False, "delta": 0.3}, by="onset_envelope"),
    *_cases("tempogram", "envelope", {"win_length": 48}, {"win_length": 33, "norm": 2}, by="onset_envelope"),
    *_cases("tempogram", "envelope", {"win_length": 48, "center": False, "window": "hamming"}, by="onset_envelope"),
    *_cases("tempo", "envelope", {"sr": SR}, {"sr": SR, "start_bpm": 70, "ac_size": 4}, by="onset_envelope"),
    *_cases("tempo", "envelope", {"sr": SR, "aggregate": None, "max_tempo": 200}, by="onset_envelope"),
    *_cases("beat_track", "envelope", {"sr": SR}, {"sr": SR, "trim": False, "units": "time"}, by="onset_envelope"),
    *_cases("beat_track", "envelope", {"sr": SR, "bpm": 80.0, "tightness": 300}, by="onset_envelope"),
    *(
        Case("resample", "noise", {"orig_sr": old, "target_sr": new, "res_type": kind} | more)
        for kind in ("polyphase", "fft")
        for old, new, more in (
            (22050, 16000, {}),
            (16000, 22050, {"scale": True}),
            (44100, 22050, {"fix": False}),
            (8000, 12000, {}),
            (48000, 16000, {}),
        )
    ),
    *_cases("preemphasis", "noise", {}, {"coef": 0.5}, {"zi": [[0.25], [0.5]], "return_zf": True}),
    *_cases("deemphasis", "noise", {}, {"coef": 0.5}, {"zi": [[0.25], [0.5]], "return_zf": True}),
    *_cases("trim", "island", {}, {"top_db": 20, **_SHORT}, {"ref": 1.0, "top_db": 30}),
    *_cases("split", "island", {}, {"top_db": 20, **_SHORT}, {"ref": 1.0, "top_db": 30}),
    *_cases("normalize", "noise", {}, {"norm": 2, "axis": 1}, {"norm": 1, "axis": None}, {"norm": 0, "axis": -1}),
    *_cases("normalize", "noise", {"norm": 3.5, "threshold": 1.0, "fill": True}, {"threshold": 1.0, "fill": False}),
]


@cache
def signals() -> dict[str, np.ndarray[Any, Any]]:
    """Every signal in float64, its values exact in float32. RandomState gives the same numbers in every NumPy."""
    random = np.random.RandomState(20261125)
    seconds = np.arange(2 * SR) / SR
    glide = 2 * np.pi * np.cumsum(180 * 2 ** (seconds / 2)) / SR
    found = {
        "noise": random.standard_normal((2, 1201)),
        "spectrogram": np.abs(random.standard_normal((2, 128, 9))),
        "voice": sum(np.sin(k * glide) / k for k in range(1, 6)) * (np.sin(2 * np.pi * seconds) > -0.6),
        "tones": np.stack([np.sin(2 * np.pi * f * seconds[:SR]) for f in (110.3, 440)]),
        "steps": np.sign(np.sin(2 * np.pi * 3 * np.arange(2000) / 500).round(6)),
        "decibels": 30 * random.standard_normal((2, 20, 40)),
    }
    found["voice"] = found["voice"] + 1e-3 * random.standard_normal(len(seconds))
    clicks = 1e-3 * random.standard_normal(4 * SR)
    for second in np.arange(0.3, 3.9, 0.5):
        start = int(second * SR)
        clicks[start : start + 400] += random.standard_normal(400) * np.exp(-np.arange(400) / 80)
    found["clicks"] = clicks
    frames = np.arange(130)
    found["envelope"] = np.exp(-((frames % 11) ** 2) / 4.0) * (1 + 0.3 * random.rand(130)) + 0.2 * random.rand(130)
    island = np.zeros(4 * SR)
    island[SR : 2 * SR], island[3 * SR : 3 * SR + 3000] = found["voice"][:SR], 0.05 * found["voice"][:3000]
    found["island"] = island
    return {name: values.astype(np.float32).astype(np.float64) for name, values in found.items()}


def called(case: Case, function: Any, signal: Any) -> tuple[Any, ...]:
    """What a function gives, as a tuple."""
    result = function(**{case.by: signal}, **case.keywords) if case.by else function(signal, **case.keywords)
    return result if isinstance(result, tuple) else (result,)
