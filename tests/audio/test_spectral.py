"""Spectral functions beyond parity: items of a batch, runs, double precision, Whisper's input, and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from audio.material import RATE, given, signal

import pygpukit as gp
from pygpukit.core.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")

audio = gp.ops.audio


def device(values: Any, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(np.asarray(values).astype(dtype)))


OF_SIGNALS: dict[str, Callable[[gp.GPUArray], Any]] = {
    "stft": lambda y: audio.stft(y, n_fft=400, hop_length=160),
    "melspectrogram": lambda y: audio.melspectrogram(y=y, sr=RATE),
    "spectral_centroid": lambda y: audio.spectral_centroid(y=y),
    "spectral_bandwidth": lambda y: audio.spectral_bandwidth(y=y),
    "spectral_rolloff": lambda y: audio.spectral_rolloff(y=y),
    "spectral_flatness": lambda y: audio.spectral_flatness(y=y),
    "spectral_contrast": lambda y: audio.spectral_contrast(y=y, linear=True),
    "hpss": lambda y: audio.hpss(audio.stft(y)),
    "harmonic": lambda y: audio.harmonic(y),
    "percussive": lambda y: audio.percussive(y),
    "phase_vocoder": lambda y: audio.phase_vocoder(audio.stft(y), rate=1.3),
    "time_stretch": lambda y: audio.time_stretch(y, rate=0.8),
    "pitch_shift": lambda y: audio.pitch_shift(y, sr=RATE, n_steps=2),
    "chroma_stft": lambda y: audio.chroma_stft(y=y, tuning=0.0),
    "chroma_cqt": lambda y: audio.chroma_cqt(y=y, tuning=0.0),
    "cqt": lambda y: audio.cqt(y, n_bins=36, fmin=110.0),
    "vqt": lambda y: audio.vqt(y, n_bins=36, fmin=110.0),
    "piptrack": lambda y: audio.piptrack(y=y),
    "griffinlim": lambda y: audio.griffinlim(gp.abs(audio.stft(y)), init=None, n_iter=4),
    "whisper_log_mel": lambda y: audio.whisper_log_mel(y),
    "delta": lambda y: audio.delta(audio.melspectrogram(y=y, sr=RATE)),
    "magphase": lambda y: audio.magphase(audio.stft(y)),
}


def listed(result: Any) -> list[np.ndarray]:
    return [x.to_numpy() for x in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", OF_SIGNALS)
def test_an_item_has_its_own_bits_in_a_batch_and_on_every_run(name: str) -> None:
    y = np.stack(
        [[signal("voice"), signal("clicks"), signal("noise")], [signal("chirp"), signal("noise"), signal("voice")]]
    )
    function = OF_SIGNALS[name]
    whole, again = listed(function(device(y))), listed(function(device(y)))
    assert all(np.array_equal(one, other) for one, other in zip(whole, again, strict=True))
    for i in ((0, 0), (0, 2), (1, 1)):
        for together, alone in zip(whole, listed(function(device(y[i]))), strict=True):
            assert together.shape == (2, 3, *alone.shape)
            assert np.array_equal(together[i], alone)


@pytest.mark.parametrize("name", OF_SIGNALS)
def test_double_precision_stays_double(name: str) -> None:
    single, double = (listed(OF_SIGNALS[name](device(signal("voice"), dtype))) for dtype in ("float32", "float64"))
    for one, other in zip(single, double, strict=True):
        assert (
            other.dtype == {"f": np.float64, "c": np.complex128}[other.dtype.kind]
            and one.dtype.itemsize * 2 == other.dtype.itemsize
        )
        scale = np.sqrt(np.mean(np.abs(other) ** 2))
        limit = 0.05 if name in ("spectral_rolloff", "griffinlim", "piptrack") else 1e-3
        assert np.sqrt(np.mean(np.abs(one - other) ** 2)) <= limit * scale


@pytest.mark.parametrize("n_mels", [80, 128])
def test_whispers_input_is_exact(n_mels: int) -> None:
    y = np.stack([signal("voice") / 4, signal("noise")])
    around = np.pad(y, [(0, 0), (200, 200 + 0)], "reflect")
    frames = np.lib.stride_tricks.sliding_window_view(around, 400, -1)[:, ::160][:, : y.shape[1] // 160]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    power = np.abs(np.fft.rfft(frames * window)) ** 2
    bank = audio.mel(sr=16000, n_fft=400, n_mels=n_mels).to_numpy().astype(np.float64)
    logarithms = np.log10(np.maximum(power @ bank.T, 1e-10)).swapaxes(-1, -2)
    wanted = (np.maximum(logarithms, logarithms.max(axis=(-2, -1), keepdims=True) - 8) + 4) / 4
    found = audio.whisper_log_mel(device(y), n_mels)
    assert found.shape == (2, n_mels, y.shape[1] // 160)
    # In float32; bands eight decades below the loudest are near their rounding.
    assert np.abs(found.to_numpy() - wanted).max() <= 5e-5
    long = audio.whisper_log_mel(device(y[0]), n_mels, padding=480000 - y.shape[1])
    assert long.shape == (n_mels, 3000)


def test_griffin_lim_with_random_phases_comes_as_close_as_from_zeros() -> None:
    S = device(given("magnitude voice"))

    def off(y: gp.GPUArray) -> float:
        again = np.abs(audio.stft(y, n_fft=1024, hop_length=256).to_numpy())
        return float(np.linalg.norm(again - S.to_numpy()) / np.linalg.norm(S.to_numpy()))

    first = audio.griffinlim(S, random_state=3, n_iter=32)
    assert off(first) < 0.12
    assert np.array_equal(first.to_numpy(), audio.griffinlim(S, random_state=3, n_iter=32).to_numpy())
    assert not np.array_equal(first.to_numpy(), audio.griffinlim(S, random_state=4, n_iter=32).to_numpy())
    for drawn in (gp.random.Generator(5), np.random.default_rng(5)):
        assert off(audio.griffinlim(S, random_state=drawn)) < 0.12
    assert audio.griffinlim(S, n_iter=1).shape == audio.griffinlim(S, n_iter=1).shape


def test_decibels_and_back() -> None:
    S = device(given("power noise"))
    decibels = audio.power_to_db(S, ref=gp.max, top_db=None)
    assert decibels.to_numpy().max() == 0
    back = audio.db_to_power(decibels, ref=float(S.max().item()))
    assert np.allclose(back.to_numpy(), S.to_numpy(), rtol=1e-4, atol=1e-9)
    with pytest.warns(UserWarning, match="its phase is left out"):
        audio.power_to_db(device(given("stft noise"), "complex64"))
    assert audio.power_to_db(gp.zeros((0, 3))).shape == (0, 3)
    for bad in ({"amin": 0}, {"top_db": -1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            audio.power_to_db(S, **bad)


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: audio.melspectrogram(sr=RATE), ValueError, "give a signal y with n_fft, or a spectrogram S"),
    (lambda: audio.melspectrogram(y=gp.zeros(4000), sr=-1), ValueError, "sr is -1"),
    (lambda: audio.melspectrogram(y=gp.zeros(4000), n_mels=0), ValueError, "n_mels is 0"),
    (lambda: audio.mel(sr=16000, n_fft=512, fmin=9000.0), ValueError, "fmin is 9000.0 and fmax 8000.0"),
    (lambda: audio.mel(sr=16000, n_fft=512, norm="area"), ValueError, "norm 'area' is unknown"),
    (lambda: audio.mfcc(S=gp.zeros((40, 5)), dct_type=4), ValueError, "dct_type is 4"),
    (lambda: audio.mfcc(S=gp.zeros((40, 5)), lifter=-1), ValueError, "lifter is -1"),
    (lambda: audio.mfcc(S=gp.zeros(40)), ShapeError, "must be \\(..., bins, frames\\)"),
    (lambda: audio.delta(gp.zeros((4, 5))), ShapeError, "axis 1 has 5 elements, width is 9"),
    (lambda: audio.delta(gp.zeros((4, 50)), width=4), ValueError, "width is 4"),
    (lambda: audio.delta(gp.zeros((4, 50)), mode="zero"), ValueError, "mode 'zero' is unknown"),
    (lambda: audio.spectral_centroid(S=device(np.ones((5, 3)), "complex64")), DTypeError, "complex64"),
    (lambda: audio.spectral_rolloff(y=gp.zeros(4000), roll_percent=1.5), ValueError, "roll_percent is 1.5"),
    (lambda: audio.spectral_contrast(y=gp.zeros(4000), n_bands=9), ValueError, "begins above sr / 2"),
    (lambda: audio.spectral_contrast(S=gp.zeros((5, 3)), fmin=10.0), ValueError, "no bin lies between"),
    (lambda: audio.spectral_flatness(y=gp.zeros(4000), amin=0), ValueError, "amin is 0"),
    (lambda: audio.spectral_centroid(S=gp.zeros((5, 3)), freq=np.ones(4)), ShapeError, "freq has shape \\(4,\\)"),
    (lambda: audio.hpss(gp.zeros((5, 3)), margin=0.5), ValueError, "margin is 0.5"),
    (lambda: audio.hpss(gp.zeros((5, 3)), kernel_size=0), ValueError, "kernel_size is 0"),
    (lambda: audio.time_stretch(gp.zeros(4000), rate=0), ValueError, "rate is 0"),
    (lambda: audio.phase_vocoder(gp.zeros((5, 3), "complex64"), rate=math.nan), ValueError, "rate is nan"),
    (lambda: audio.pitch_shift(gp.zeros(4000), n_steps=1, bins_per_octave=0), ValueError, "bins_per_octave is 0"),
    (lambda: audio.griffinlim(gp.zeros((5, 3)), momentum=-1), ValueError, "momentum is -1"),
    (lambda: audio.griffinlim(gp.zeros((5, 3)), init="ones"), ValueError, "init is 'ones'"),
    (lambda: audio.griffinlim(gp.zeros((5, 3)), random_state="x"), ValueError, "random_state is 'x'"),
    (lambda: audio.cqt(gp.zeros(4000), n_bins=120), ValueError, "above sr / 2"),
    (lambda: audio.vqt(gp.zeros(4000), intervals="ji9"), ValueError, "intervals are 'ji9'; use one of 'equal'"),
    (lambda: audio.chroma_cqt(y=gp.zeros(4000), bins_per_octave=13), ValueError, "must be a multiple of n_chroma"),
    (lambda: audio.chroma_cqt(), ValueError, "give a signal y or magnitudes C"),
    (lambda: audio.whisper_log_mel(gp.zeros(4000), 64), ValueError, "n_mels is 64"),
    (lambda: audio.whisper_log_mel(device(np.zeros(4000), "int16")), DTypeError, "int16"),
    (lambda: audio.get_window("hann", 0), ValueError, "the length is 0"),
    (lambda: audio.get_window(np.ones(4), 5), ValueError, "the window has shape \\(4,\\)"),
]


@pytest.mark.parametrize("call, error, words", BAD, ids=[words for _, _, words in BAD])
def test_bad_input_is_refused_in_words(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_documented_names_work_and_warn() -> None:
    y = device(signal("voice"))
    calls: dict[str, Callable[[], Any]] = {
        "melspectrogram": lambda: audio.mel_spectrogram(y),
        "log_mel": lambda: audio.log_mel_spectrogram(y),
        "mel\\b": lambda: audio.create_mel_filterbank(n_mels=40),
        "griffinlim": lambda: audio.griffin_lim(device(given("magnitude voice")), n_iter=1),
        "power_to_db": lambda: audio.to_decibels(device(given("power voice"))),
        "abs\\(cqt": lambda: audio.cqt_magnitude(y),
        "f_max is now fmax": lambda: audio.melspectrogram(y=y, sr=RATE, f_max=-1),
    }
    for words, call in calls.items():
        with pytest.warns(DeprecationWarning, match=words):
            call()
    S = audio.power_spectrum(audio.stft(y))
    bank = audio.mel(sr=RATE, n_fft=2048)
    wanted = audio.melspectrogram(y=y, sr=RATE, hop_length=512).to_numpy()
    assert np.allclose(audio.apply_mel_filterbank(S, bank).to_numpy(), wanted, rtol=1e-5)
    assert np.allclose(audio.magnitude_spectrum(audio.stft(y)).to_numpy(), np.abs(audio.stft(y).to_numpy()), rtol=1e-6)
    with pytest.warns(DeprecationWarning):
        both = audio.hpss(stft_magnitude_input=device(given("magnitude voice")))
    assert np.array_equal(
        audio.harmonic(stft_magnitude_input=device(given("magnitude voice"))).to_numpy(), both[0].to_numpy()
    )


def test_windows_are_scipys() -> None:
    scipy = pytest.importorskip("scipy.signal", reason="the extra audio is not installed")
    for name in ("hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop", "boxcar", ("kaiser", 5.0), 8.6):
        for length in (1, 2, 9, 400):
            for periodic in (True, False):
                wanted = scipy.get_window(name, length, fftbins=periodic)
                assert np.allclose(audio.get_window(name, length, fftbins=periodic), wanted, rtol=1e-13, atol=1e-15)
    assert np.array_equal(audio.get_window(np.ones, 5), np.ones(5))


@pytest.mark.parametrize("name", ["harmonic", "percussive", "time_stretch", "pitch_shift"])
def test_effects_of_an_audiobuffer_give_one(name: str) -> None:
    options = {"time_stretch": {"rate": 1.5}, "pitch_shift": {"n_steps": 4}}.get(name, {})
    buffer = audio.AudioBuffer(device(signal("pair")), 16000)
    found = getattr(audio, name)(buffer, **options)
    assert isinstance(found, audio.AudioBuffer) and found.sample_rate == 16000 and found.channels == 2
    plain = getattr(audio, name)(buffer.data, **options)
    assert isinstance(plain, gp.GPUArray) and np.array_equal(found.data.to_numpy(), plain.to_numpy())


def test_features_take_the_rate_of_an_audiobuffer() -> None:
    y = device(signal("voice"))
    found = audio.spectral_centroid(y=audio.AudioBuffer(y, 16000))
    assert np.array_equal(found.to_numpy(), audio.spectral_centroid(y=y, sr=16000).to_numpy())
    with pytest.raises(ValueError, match="the signal has 22050 samples a second; resample it to 16000"):
        audio.whisper_log_mel(audio.AudioBuffer(y, RATE))
    with pytest.raises(DTypeError, match="got a ndarray"):
        audio.stft(signal("voice"))


def test_fix_length_cuts_and_pads() -> None:
    x = device(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(audio.fix_length(x, size=2).to_numpy(), x.to_numpy()[:, :2])
    assert np.array_equal(audio.fix_length(x, size=5).to_numpy(), np.pad(x.to_numpy(), [(0, 0), (0, 2)]))
    assert audio.fix_length(x, size=4, axis=0, mode="edge").shape == (4, 3)


def test_silence_gives_no_nan() -> None:
    y = gp.zeros((2, 4000))
    for name in (
        "spectral_centroid",
        "spectral_bandwidth",
        "spectral_flatness",
        "chroma_stft",
        "hpss",
        "griffinlim",
        "cqt",
    ):
        assert all(np.isfinite(x).all() for x in listed(OF_SIGNALS[name](y))), name
