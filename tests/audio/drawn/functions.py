"""What is compared on random parameters: each function's inputs, what its options are drawn from, and its verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from audio.drawn.sounds import Random, Values
from audio.drawn.verdicts import Verdict, exact, mostly, near, places, within

Choices = list[Any] | Callable[[Random], Any]


@dataclass(frozen=True)
class Function:
    """theirs: below librosa. given: the keyword of the input and what it is (inputs()); the first positional if
    `first`.

    always: options that every call has; "rate" stands for the sound's own. options: each call has about half of them.
    """

    ours: str
    theirs: str
    given: dict[str, str]
    verdict: Verdict
    first: bool = False
    always: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Choices] = field(default_factory=dict)
    fine: bool = True  # float64 is held to a finer tolerance: not where a filter of our own stands for soxr's

    def drawn(self, random: Random, rate: float) -> dict[str, Any]:
        """Options of a call."""
        always = {key: rate if value == "rate" else value for key, value in self.always.items()}
        kept = {key: choices for key, choices in self.options.items() if random.random() < 0.5}
        return always | {key: _one(choices, random) for key, choices in kept.items()}


def _one(choices: Choices, random: Random) -> Any:
    return choices(random) if callable(choices) else choices[random.integers(len(choices))]


def uniform(low: float, high: float) -> Choices:
    return lambda random: float(random.uniform(low, high))


def whole(low: int, high: int) -> Choices:
    return lambda random: int(random.integers(low, high + 1))


def inputs(y: Values, rate: float, random: Random) -> dict[str, Values]:
    """Everything that functions take, from one signal: float64 of float32 numbers."""
    import librosa

    size = int(random.choice([256, 400, 512, 1000, 1024]))
    D = librosa.stft(y, n_fft=size, hop_length=size // 4).astype(np.complex64).astype(np.complex128)
    S = np.abs(D)
    bands = librosa.power_to_db(librosa.feature.melspectrogram(S=S**2, sr=rate, n_mels=40))
    mono = y.reshape(-1, y.shape[-1])[0]
    envelope = librosa.onset.onset_strength(y=mono, sr=rate, hop_length=64)
    exact_of = {"y": y, "mono": mono, "magnitude": S, "power": S**2, "bands": bands, "envelope": envelope}
    return {"D": D} | {key: x.astype(np.float32).astype(np.float64) for key, x in exact_of.items()}


_WINDOWS: Choices = ["hann", "hamming", "blackman", "bartlett", "ones", ("kaiser", 6.0), ("tukey", 0.3), 8.0]
_PADS: Choices = ["constant", "reflect", "edge", "symmetric"]
_FRAMES: dict[str, Choices] = {"n_fft": whole(64, 2600), "hop_length": whole(20, 700)}
_STFT = _FRAMES | {"window": _WINDOWS, "center": [True, False], "pad_mode": _PADS, "win_length": whole(60, 1024)}
_SAME = {"window": _WINDOWS, "win_length": whole(150, 255), "center": [True, False], "n_fft": whole(256, 1024)}
_RATE = {"sr": "rate"}
_MEL = {
    "n_mels": whole(8, 140), "fmin": uniform(0, 300), "fmax": uniform(2500, 4000), "htk": [True, False],
    "norm": ["slaney", None, 1, 2, np.inf], "power": [1.0, 2.0, 1.5],
}  # fmt: skip
_NORMS: Choices = [np.inf, 1, 2, None, 0, 0.5]
_PARTS = {
    "kernel_size": [31, 17, 12, (9, 20), 1], "power": [1.0, 2.0, 2.5, np.inf], "margin": [1.0, 1.5, (1.0, 3.0)],
}  # fmt: skip
_POLY = _RATE | {"res_type": "polyphase"}
_CQT = {
    "hop_length": [128, 256, 512, 384], "fmin": uniform(60, 120), "n_bins": whole(7, 48), "tuning": uniform(-0.5, 0.5),
    "bins_per_octave": [12, 24, 18, 36], "filter_scale": uniform(0.4, 1.2), "norm": [1, 2, np.inf, None],
    "sparsity": [0, 0.01, 0.05], "window": _WINDOWS, "scale": [True, False], "pad_mode": _PADS,
}  # fmt: skip
_LENGTHS = {"frame_length": whole(64, 2600), "hop_length": whole(20, 700)}
_PITCH = {
    "fmin": whole(60, 120),
    "fmax": whole(400, 1200),
    "frame_length": [1024, 2048, 1500],
    "hop_length": whole(100, 600),
}
_RESAMPLED = {"scale": [True, False], "fix": [True, False]}
_TOP = {"top_db": whole(10, 60), "ref": [np.max, 0.1, 1.0]} | _LENGTHS
_PEAKS = {
    "pre_max": whole(1, 9), "post_max": whole(1, 9), "pre_avg": whole(1, 9), "post_avg": whole(1, 9),
    "delta": uniform(0.01, 0.3), "wait": whole(0, 8),
}  # fmt: skip
_RHYTHM = _RATE | {"hop_length": 64}

FUNCTIONS = [
    Function("stft", "stft", {"y": "y"}, near(1e-6), True, {}, _STFT),
    Function("istft", "istft", {"stft_matrix": "D"}, near(2e-6), True, {},
             {"hop_length": whole(50, 300), "window": _WINDOWS, "center": [True, False], "length": whole(2000, 30000)}),
    Function("magphase", "magphase", {"D": "D"}, near(1e-6), True, {}, {"power": [1, 2, 0.5]}),
    Function("phase_vocoder", "phase_vocoder", {"D": "D"}, near(1e-3), True, {"rate": 1.0},
             {"rate": uniform(0.4, 2.5)}),
    Function("griffinlim", "griffinlim", {"S": "magnitude"}, near(1e-3), True, {"init": None},
             {"n_iter": whole(1, 8), "momentum": uniform(0, 0.99), "window": _WINDOWS, "length": whole(3000, 25000)}),
    Function("mel", "filters.mel", {}, near(1e-6), False, _RATE | {"n_fft": 1024},
             {"n_fft": whole(128, 4096), "fmin": uniform(0, 300), "fmax": uniform(1000, 4000), "n_mels": whole(1, 200),
              "htk": [True, False], "norm": ["slaney", None, 1, 2, np.inf]}),
    Function("melspectrogram", "feature.melspectrogram", {"y": "y"}, near(2e-6), False, _RATE, _STFT | _MEL),
    Function("melspectrogram", "feature.melspectrogram", {"S": "power"}, near(2e-6), False, _RATE,
             {key: value for key, value in _MEL.items() if key != "power"}),
    Function("mfcc", "feature.mfcc", {"y": "y"}, within(1e-3), False, _RATE,
             _STFT | {"n_mfcc": whole(1, 30), "n_mels": whole(30, 128), "dct_type": [2, 3]}),
    Function("mfcc", "feature.mfcc", {"S": "bands"}, within(1e-3), False, {},
             {"n_mfcc": whole(1, 40), "dct_type": [1, 2, 3], "norm": ["ortho"]}),
    Function("mfcc", "feature.mfcc", {"S": "bands"}, near(1e-5), False, {"lifter": 22},
             {"n_mfcc": whole(1, 40), "dct_type": [1, 2, 3], "norm": ["ortho", None], "lifter": uniform(0, 40)}),
    Function("delta", "feature.delta", {"data": "bands"}, within(1e-4), True, {},
             {"width": [3, 5, 7, 9, 11], "order": [1, 2], "axis": [-1, -2],
              "mode": ["interp", "nearest", "mirror", "wrap", "constant"]}),
    Function("power_to_db", "power_to_db", {"S": "power"}, within(1e-3), True, {},
             {"ref": [1.0, 0.3, np.max], "amin": [1e-10, 1e-5, 1e-2], "top_db": [80.0, 30.0, None]}),
    Function("amplitude_to_db", "amplitude_to_db", {"S": "magnitude"}, within(1e-3), True, {},
             {"ref": [1.0, 0.3, np.max], "amin": [1e-5, 1e-3], "top_db": [80.0, 30.0, None]}),
    Function("db_to_power", "db_to_power", {"S_db": "bands"}, near(2e-6), True, {}, {"ref": uniform(0.1, 3)}),
    Function("db_to_amplitude", "db_to_amplitude", {"S_db": "bands"}, near(2e-6), True, {}, {"ref": uniform(0.1, 3)}),
    Function("spectral_centroid", "feature.spectral_centroid", {"y": "y"}, near(1e-5), False, _RATE, _STFT),
    Function("spectral_bandwidth", "feature.spectral_bandwidth", {"y": "y"}, near(1e-5), False, _RATE,
             _STFT | {"p": [1, 2, 3, 1.5], "norm": [True, False]}),
    Function("spectral_rolloff", "feature.spectral_rolloff", {"y": "y"}, mostly(0), False, _RATE,
             _STFT | {"roll_percent": uniform(0.05, 0.95)}),
    Function("spectral_flatness", "feature.spectral_flatness", {"y": "y"}, near(1e-5), False, {},
             _STFT | {"power": [1.0, 2.0, 1.5], "amin": [1e-10, 1e-6]}),
    Function("spectral_contrast", "feature.spectral_contrast", {"y": "y"}, within(1e-3), False, _RATE,
             _STFT | {"n_bands": whole(2, 5), "fmin": uniform(50, 120), "quantile": uniform(0.01, 0.4),
                      "linear": [True, False]}),
    Function("hpss", "decompose.hpss", {"S": "D"}, near(1e-5), True, {}, _PARTS),
    Function("hpss", "decompose.hpss", {"S": "magnitude"}, near(1e-5), True, {}, _PARTS | {"mask": [True, False]}),
    Function("harmonic", "effects.harmonic", {"y": "y"}, near(1e-5), True, {},
             _PARTS | {"n_fft": [512, 1024, 2048], "mask": [True, False]}),
    Function("percussive", "effects.percussive", {"y": "y"}, near(1e-5), True, {},
             _PARTS | {"n_fft": [512, 1000, 2048], "mask": [True, False]}),
    Function("time_stretch", "effects.time_stretch", {"y": "y"}, near(1e-3), True, {"rate": 1.2},
             {"rate": uniform(0.5, 2), "n_fft": [512, 1024, 2048]}),
    Function("pitch_shift", "effects.pitch_shift", {"y": "mono"}, near(3e-2), True, _RATE | {"n_steps": 2},
             {"n_steps": whole(-12, 12), "bins_per_octave": [12, 24]}, fine=False),
    Function("piptrack", "piptrack", {"y": "y"}, near(1e-5), False, _RATE,
             _STFT | {"fmin": uniform(50, 200), "fmax": uniform(1000, 3900), "threshold": uniform(0.05, 0.5),
                      "ref": [np.mean, 1.0]}),
    Function("estimate_tuning", "estimate_tuning", {"y": "y"}, mostly(1e-9), False, _RATE,
             {"bins_per_octave": [12, 24], "resolution": [0.01, 0.05], "n_fft": [1024, 2048]}),
    Function("chroma_stft", "feature.chroma_stft", {"y": "y"}, near(1e-5), False, _RATE | {"tuning": 0.0},
             _STFT | {"tuning": uniform(-0.5, 0.5), "n_chroma": [12, 24, 36], "norm": _NORMS,
                      "octwidth": [None, 1, 2.5], "ctroct": uniform(3, 6), "base_c": [True, False]}),
    Function("cqt", "cqt", {"y": "y"}, near(1e-4), True, _POLY, _CQT),
    Function("vqt", "vqt", {"y": "y"}, near(1e-4), True, _POLY, _CQT | {"gamma": [None, 0, 10.0, 30.0]}),
    Function("vqt", "vqt", {"y": "y"}, near(1e-4), True, _POLY | {"intervals": "pythagorean"},
             {key: value for key, value in _CQT.items() if key != "bins_per_octave"}
             | {"intervals": ["ji3", "ji5", "ji7", "pythagorean"], "bins_per_octave": [12, 5, 24]}),
    Function("hybrid_cqt", "hybrid_cqt", {"y": "y"}, near(1e-4), True, _POLY, _CQT),
    Function("pseudo_cqt", "pseudo_cqt", {"y": "y"}, near(1e-4), True, _RATE, _CQT),
    Function("chroma_cqt", "feature.chroma_cqt", {"C": "magnitude"}, near(1e-5), False, {},
             {"norm": _NORMS, "fmin": uniform(30, 100), "threshold": [0.0, 0.5, None], "n_chroma": [12, 36],
              "window": [None, np.ones((1, 3)), np.array([[0.25, 0.5, 0.25]])], "bins_per_octave": [36, 72]}),
    Function("rms", "feature.rms", {"y": "y"}, near(1e-6), False, {},
             _LENGTHS | {"center": [True, False], "pad_mode": _PADS}),
    Function("zero_crossing_rate", "feature.zero_crossing_rate", {"y": "y"}, exact, True, {},
             _LENGTHS | {"center": [True, False], "threshold": [0.0, 0.01], "zero_pos": [True, False],
                         "pad": [True, False]}),
    Function("autocorrelate", "autocorrelate", {"y": "y"}, near(1e-6), True, {}, {"max_size": whole(1, 5000)}),
    Function("yin", "yin", {"y": "y"}, mostly(0.05), True, _RATE | {"fmin": 60, "fmax": 1000},
             _PITCH | {"trough_threshold": uniform(0.05, 0.5), "center": [True, False], "pad_mode": _PADS}),
    Function("pyin", "pyin", {"y": "mono"}, mostly(0.05), True,
             _RATE | {"fmin": 100, "fmax": 600, "frame_length": 1024},
             {"hop_length": [256, 512], "resolution": [0.1, 0.25], "n_thresholds": whole(20, 100),
              "center": [True, False], "switch_prob": uniform(0.005, 0.2), "fill_na": [None, 0.0],
              "max_transition_rate": uniform(10, 60)}),
    Function("onset_strength", "onset.onset_strength", {"y": "y"}, near(1e-5), False, _RATE,
             {"n_fft": [512, 1024, 2048], "hop_length": [128, 256, 512], "lag": whole(1, 4), "max_size": whole(1, 5),
              "center": [True, False], "detrend": [True, False], "n_mels": [40, 64]}),
    Function("onset_strength", "onset.onset_strength", {"S": "bands"}, near(1e-5), False, {},
             {"lag": whole(1, 4), "max_size": whole(1, 5), "center": [True, False], "detrend": [True, False]}),
    Function("onset_detect", "onset.onset_detect", {"onset_envelope": "envelope"}, places(1), False, _RHYTHM,
             {"backtrack": [True, False], "normalize": [True, False], "delta": uniform(0.02, 0.2),
              "wait": whole(0, 8)}),
    Function("onset_detect", "onset.onset_detect", {"y": "mono"}, places(1), False, _RATE, {"hop_length": [128, 512]}),
    Function("peak_pick", "util.peak_pick", {"x": "envelope"}, places(0), True,
             {"pre_max": 3, "post_max": 3, "pre_avg": 3, "post_avg": 5, "delta": 0.1, "wait": 3}, _PEAKS),
    Function("tempogram", "feature.tempogram", {"onset_envelope": "envelope"}, near(1e-5), False, _RHYTHM,
             {"win_length": whole(10, 300), "center": [True, False], "window": _WINDOWS,
              "norm": [np.inf, 1, 2, None]}),
    Function("tempo", "feature.tempo", {"onset_envelope": "envelope"}, mostly(1e-6), False, _RHYTHM,
             {"start_bpm": uniform(60, 180), "std_bpm": uniform(0.5, 2), "max_tempo": [320.0, 200.0, None],
              "aggregate": [np.mean, None, np.median], "ac_size": [2.0, 4.0]}),
    Function("beat_track", "beat.beat_track", {"onset_envelope": "envelope"}, places(1), False, _RHYTHM,
             {"start_bpm": uniform(60, 180), "tightness": uniform(50, 300), "trim": [True, False],
              "bpm": uniform(60, 200)}),
    Function("resample", "resample", {"y": "y"}, near(1e-6), True,
             {"orig_sr": 44100, "target_sr": 48000, "res_type": "polyphase"},
             _RESAMPLED | {"orig_sr": [48000, 22050, 32000, 16000], "target_sr": [16000, 8000, 44100, 11025]}),
    Function("resample", "resample", {"y": "y"}, near(1e-6), True,
             {"orig_sr": 44100, "target_sr": 48000, "res_type": "fft"},
             _RESAMPLED | {"orig_sr": [48000, 22050, 32000.5, 16000], "target_sr": [16000, 8000, 44100, 11025.25]}),
    Function("resample", "resample", {"y": "y"}, near(1e-2), True, {"orig_sr": 3, "target_sr": 2},
             {"orig_sr": [3, 4, 5], "target_sr": [1, 2, 6], "scale": [True, False]}, fine=False),
    Function("preemphasis", "effects.preemphasis", {"y": "y"}, near(1e-6), True, {},
             {"coef": uniform(0, 1), "return_zf": [True], "zi": [0.0]}),
    Function("deemphasis", "effects.deemphasis", {"y": "y"}, near(1e-5), True, {},
             {"coef": uniform(0, 0.99), "return_zf": [True], "zi": [0.0]}),
    Function("trim", "effects.trim", {"y": "y"}, exact, True, {}, _TOP),
    Function("split", "effects.split", {"y": "y"}, exact, True, {}, _TOP),
    Function("normalize", "util.normalize", {"S": "bands"}, near(1e-6), True, {},
             {"norm": [np.inf, -np.inf, 0, 1, 2, 3.5, None], "axis": [0, -1, -2, None], "threshold": [None, 1.0, 100.0],
              "fill": [None, True, False]}),
    Function("fix_length", "util.fix_length", {"data": "y"}, exact, True, {"size": 9000},
             {"size": whole(0, 30000), "mode": ["constant", "edge", "reflect"]}),
    Function("frame", "util.frame", {"x": "y"}, exact, True, {"frame_length": 500, "hop_length": 100}, _LENGTHS),
    Function("get_window", "filters.get_window", {}, within(1e-12), False, {"window": "hann", "Nx": 400},
             {"window": _WINDOWS, "Nx": whole(1, 3000), "fftbins": [True, False]}),
]  # fmt: skip
