"""What is compared with librosa: a function, its input and parameters, and how far off it may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from audio.material import RATE


@dataclass(frozen=True)
class Case:
    """theirs: below librosa. given: inputs by name (material.given), the first positional if `first`, else by keyword.

    near: largest root mean square of the difference over that of the result; within: largest difference, for results
    with a scale of their own (dB); equal: the part of elements that must be the same, for those that jump.
    """

    ours: str
    theirs: str
    given: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    near: float | None = None
    within: float | None = None
    equal: float | None = None
    first: bool = False

    @property
    def name(self) -> str:
        """In tests and in the golden file."""
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.ours}({','.join(self.given.values())};{options})"


def _each(ours: str, theirs: str, given: dict[str, str], *sets: dict[str, Any], **how: Any) -> list[Case]:
    return [Case(ours, theirs, given, options, **how) for options in sets]


_Y, _PAIR, _RATED = {"y": "voice"}, {"y": "pair"}, {"sr": RATE}
_POLY = {"sr": RATE, "res_type": "polyphase"}
_STFT = {"n_fft": 400, "hop_length": 160, "pad_mode": "reflect"}

CASES = [
    *_each(
        "stft", "stft", _PAIR,
        {}, _STFT, {"n_fft": 512, "win_length": 400, "window": "hamming"},
        {"n_fft": 401, "hop_length": 99, "center": False}, {"n_fft": 1000, "hop_length": 250, "window": "blackman"},
        {"n_fft": 256, "hop_length": 300, "pad_mode": "edge"}, {"n_fft": 256, "pad_mode": "symmetric"},
        near=1e-6, first=True,
    ),
    *_each(
        "istft", "istft", {"stft_matrix": "stft pair"},
        {}, {"hop_length": 256, "length": 13001}, {"hop_length": 256, "length": 9000},
        {"hop_length": 300, "win_length": 900}, {"hop_length": 200, "window": "hamming", "center": False},
        near=2e-6, first=True,
    ),
    # Beyond the last whole frame little of a window is left, and the transform's rounding is divided by it.
    *_each("istft", "istft", {"stft_matrix": "stft pair"}, {"length": 20000}, near=1e-5, first=True),
    *_each("magphase", "magphase", {"D": "stft pair"}, {}, {"power": 2}, near=1e-6, first=True),
    *_each(
        "melspectrogram", "feature.melspectrogram", _PAIR,
        _RATED, _RATED | {"n_mels": 40, "htk": True, "norm": None, "fmin": 50, "fmax": 8000, "n_fft": 1024},
        _RATED | {"norm": 2, "n_fft": 1024, "hop_length": 256, "power": 1.0, "n_mels": 64},
        {"sr": 16000} | _STFT | {"n_mels": 80},
        near=2e-6,
    ),
    *_each("melspectrogram", "feature.melspectrogram", {"S": "power clicks"}, {"sr": 8000, "n_mels": 30}, near=2e-6),
    *_each(
        "mel", "filters.mel", {},
        {"sr": 16000, "n_fft": 400, "n_mels": 80}, {"sr": 16000, "n_fft": 400, "n_mels": 128},
        {"sr": RATE, "n_fft": 2048},
        {"sr": RATE, "n_fft": 1024, "n_mels": 40, "htk": True, "norm": 1, "fmin": 300, "fmax": 7000},
        {"sr": RATE, "n_fft": 1024, "n_mels": 30, "norm": math.inf}, near=1e-6,
    ),
    *_each(
        "power_to_db", "power_to_db", {"S": "power pair"},
        {}, {"ref": 3.0, "top_db": None}, {"amin": 1e-3, "top_db": 40}, within=1e-3, first=True,
    ),
    *_each(
        "amplitude_to_db", "amplitude_to_db", {"S": "magnitude pair"}, {}, {"ref": 0.5, "top_db": 60},
        within=1e-3, first=True,
    ),
    *_each("db_to_power", "db_to_power", {"S_db": "bands pair"}, {}, {"ref": 2.0}, near=2e-6, first=True),
    *_each("db_to_amplitude", "db_to_amplitude", {"S_db": "bands pair"}, {}, {"ref": 2.0}, near=2e-6, first=True),
    *_each(
        "mfcc", "feature.mfcc", _PAIR,
        _RATED, _RATED | {"n_mfcc": 13, "lifter": 22, "n_fft": 1024, "n_mels": 40},
        within=1e-3,
    ),
    *_each(
        "mfcc", "feature.mfcc", _PAIR,
        _RATED | {"dct_type": 3, "norm": None, "n_mfcc": 8, "mel_norm": None}, near=2e-6,
    ),
    *_each(
        "mfcc", "feature.mfcc", {"S": "bands voice"},
        {"dct_type": 1}, {"dct_type": 1, "norm": None}, {"dct_type": 2, "norm": None}, {"dct_type": 3, "n_mfcc": 30},
        within=1e-3,
    ),
    *_each(
        "delta", "feature.delta", {"data": "bands pair"},
        {}, {"width": 5, "order": 2}, {"mode": "mirror"}, {"mode": "wrap", "width": 3}, {"mode": "nearest"},
        {"mode": "constant", "cval": 2.0}, {"axis": 1, "width": 7}, {"order": 1, "polyorder": 3},
        within=1e-4, first=True,
    ),
    *_each("spectral_centroid", "feature.spectral_centroid", _PAIR, _RATED, _RATED | _STFT, near=1e-5),
    *_each("spectral_bandwidth", "feature.spectral_bandwidth", _PAIR, _RATED, _RATED | _STFT | {"p": 3}, near=1e-5),
    *_each(
        "spectral_bandwidth", "feature.spectral_bandwidth", {"S": "magnitude clicks"}, _RATED | {"norm": False},
        near=1e-5,
    ),
    *_each(
        "spectral_flatness", "feature.spectral_flatness", _PAIR, {}, _STFT | {"power": 1.5, "amin": 1e-6},
        near=1e-5,
    ),
    *_each("spectral_flatness", "feature.spectral_flatness", {"y": "noise"}, {}, near=1e-5),
    *_each(
        "spectral_contrast", "feature.spectral_contrast", {"y": "noise"}, _RATED, within=1e-3,
    ),
    # The valleys of a tone are the rounding of its own transform.
    *_each(
        "spectral_contrast", "feature.spectral_contrast", {"y": "tone"}, _RATED | {"quantile": 0.016}, within=1.5,
    ),
    *_each(
        "spectral_contrast", "feature.spectral_contrast", _PAIR,
        _RATED | {"n_bands": 4, "quantile": 0.2, "fmin": 100.0}, _RATED | {"linear": True}, within=1e-3,
    ),
    *_each(
        "spectral_rolloff", "feature.spectral_rolloff", _PAIR,
        _RATED, _RATED | {"roll_percent": 0.5}, _RATED | {"roll_percent": 0.1, "hop_length": 100}, equal=0.995,
    ),
    *_each(
        "hpss", "decompose.hpss", {"S": "stft pair"},
        {}, {"kernel_size": (17, 12), "power": 1.0}, {"margin": (1.5, 3.0)}, {"power": math.inf, "kernel_size": 9},
        near=1e-5, first=True,
    ),
    *_each("hpss", "decompose.hpss", {"S": "magnitude clicks"}, {"mask": True}, near=1e-5, first=True),
    *_each(
        "harmonic", "effects.harmonic", _PAIR, {}, {"n_fft": 1024, "kernel_size": 11}, near=1e-5, first=True,
    ),
    *_each(
        "percussive", "effects.percussive", _PAIR, {}, {"n_fft": 512, "margin": 2.0}, near=1e-5, first=True,
    ),
    # A mask as a spectrum is a pulse where the window begins: what is left of it is small beside its rounding.
    *_each("harmonic", "effects.harmonic", _PAIR, {"mask": True}, near=5e-4, first=True),
    *_each("percussive", "effects.percussive", _PAIR, {"mask": True}, near=5e-4, first=True),
    *_each(
        "phase_vocoder", "phase_vocoder", {"D": "stft pair"}, {"rate": 0.7}, {"rate": 2.0}, {"rate": 1.3},
        near=1e-3, first=True,
    ),
    *_each("griffinlim", "griffinlim", {"S": "magnitude noise"}, {"init": None, "n_iter": 32}, near=1e-3, first=True),
    *_each(
        "griffinlim", "griffinlim", {"S": "magnitude pair"}, {"init": None, "n_iter": 3, "momentum": 0.5},
        near=1e-3, first=True,
    ),
    *_each("piptrack", "piptrack", _Y, _RATED, _RATED | {"fmin": 60.0, "threshold": 0.3, "n_fft": 1024}, near=1e-5),
    *_each("piptrack", "piptrack", {"y": "noise"}, _RATED | {"n_fft": 255, "fmax": 20000.0}, near=1e-5),
    *_each("estimate_tuning", "estimate_tuning", _Y, _RATED, _RATED | {"bins_per_octave": 24}, within=1e-9),
    *_each(
        "chroma_stft", "feature.chroma_stft", _PAIR,
        _RATED, _RATED | {"tuning": 0.2, "n_chroma": 24, "norm": 2, "octwidth": None, "base_c": False}, near=1e-5,
    ),
    *_each("chroma_stft", "feature.chroma_stft", {"S": "power clicks"}, _RATED | {"norm": 1}, near=1e-5),
    *_each(
        "cqt", "cqt", _PAIR,
        _POLY, _POLY | {"n_bins": 36, "bins_per_octave": 24, "fmin": 110.0, "hop_length": 256},
        _POLY | {"scale": False, "n_bins": 24, "fmin": 65.4, "norm": 2},
        _POLY | {"sparsity": 0, "filter_scale": 0.5, "window": "hamming", "tuning": 0.2}, near=1e-4, first=True,
    ),
    *_each(
        "vqt", "vqt", _PAIR,
        _POLY, _POLY | {"gamma": 20}, _POLY | {"intervals": [1, 1.25, 1.5], "n_bins": 15}, near=1e-4, first=True,
    ),
    *_each(
        "vqt", "vqt", _Y,
        _POLY | {"intervals": "pythagorean", "n_bins": 30},
        _POLY | {"intervals": "ji3", "bins_per_octave": 7, "n_bins": 35},
        _POLY | {"intervals": "ji5"}, _POLY | {"intervals": "ji7", "bins_per_octave": 36, "n_bins": 72},
        near=1e-4, first=True,
    ),
    *_each(
        "pseudo_cqt", "pseudo_cqt", _PAIR,
        _RATED, _RATED | {"scale": False, "fmin": 110.0, "n_bins": 40, "hop_length": 200}, near=1e-4, first=True,
    ),
    *_each(
        "hybrid_cqt", "hybrid_cqt", _PAIR,
        _POLY, _POLY | {"scale": False, "n_bins": 60, "hop_length": 1024, "tuning": 0.3},
        _POLY | {"n_bins": 5, "fmin": 2000.0}, near=1e-4, first=True,
    ),
    *_each("cqt", "cqt", _PAIR, _RATED, near=1e-2, first=True),
    *_each(
        "chroma_cqt", "feature.chroma_cqt", {"C": "magnitude pair"},
        {}, {"n_chroma": 36, "norm": 1}, {"window": (0.25, 0.5, 0.25), "fmin": 55.0}, near=1e-5,
    ),
    *_each("chroma_cqt", "feature.chroma_cqt", _PAIR, _RATED, _RATED | {"cqt_mode": "hybrid"}, near=1e-2),
    *_each(
        "time_stretch", "effects.time_stretch", _PAIR, {"rate": 1.25}, {"rate": 0.8, "n_fft": 1024},
        near=1e-3, first=True,
    ),
    *_each(
        "pitch_shift", "effects.pitch_shift", _PAIR, _RATED | {"n_steps": 3}, _RATED | {"n_steps": -5},
        near=3e-2, first=True,
    ),
]  # fmt: skip
