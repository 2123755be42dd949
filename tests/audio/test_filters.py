"""Filters beside SciPy: values, states, blocks, batches, axes, strides, and the kernels on the simulator."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import signal as scipy_signal

import pygpukit as gp
from pygpukit.core.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")

audio = gp.ops.audio
rng = np.random.default_rng(25)
EXACT = {"float32": 2e-6, "float64": 1e-12}


def device(values: Any, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(np.asarray(values).astype(dtype)))


def close(found: gp.GPUArray, wanted: np.ndarray, dtype: str) -> bool:
    assert found.shape == wanted.shape and found.dtype.name == dtype
    return np.abs(found.to_numpy() - wanted).max(initial=0) <= EXACT[dtype] * np.abs(wanted).max(initial=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 2, 3, 5, 9])
def test_lfilter_is_scipys_with_states(order: int, dtype: str) -> None:
    x = rng.standard_normal((2, 3, 700)).astype(dtype).astype(np.float64)
    b, a = scipy_signal.butter(order, 0.4)
    zi = rng.standard_normal((2, 3, order))
    wanted, last = scipy_signal.lfilter(b, a, x, zi=zi)
    found, zf = audio.lfilter(b * 3, a * 3, device(x, dtype), zi=zi)
    assert close(found, wanted, dtype) and np.abs(zf.to_numpy() - last).max() < 1e-6
    assert close(audio.lfilter(b, a, device(x, dtype)), scipy_signal.lfilter(b, a, x), dtype)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_every_axis_of_strided_arrays(axis: int) -> None:
    x = rng.standard_normal((40, 30, 20))
    b, a = scipy_signal.butter(2, 0.3)
    strided = device(x, "float64")[::-1, ::2]
    wanted = x[::-1, ::2]
    assert close(audio.lfilter(b, a, strided, axis=axis), scipy_signal.lfilter(b, a, wanted, axis=axis), "float64")
    taps = rng.standard_normal(7)
    fir = scipy_signal.lfilter(taps, 1, wanted, axis=axis)
    assert close(audio.fir_filter(strided, taps, mode="causal", axis=axis), fir, "float64")
    sos = scipy_signal.butter(4, 0.3, output="sos")
    zi = np.zeros((2, *(2 if k == axis % 3 else n for k, n in enumerate(wanted.shape))))
    found, last = audio.sosfilt(sos, strided, axis=axis, zi=zi)
    sections, state = scipy_signal.sosfilt(sos, wanted, axis=axis, zi=zi)
    assert close(found, sections, "float64") and np.abs(last.to_numpy() - state).max() < 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_finite_responses(dtype: str) -> None:
    x, taps = rng.standard_normal((2, 333)), rng.standard_normal(57)
    x = x.astype(dtype).astype(np.float64)
    for mode in ("full", "same", "valid"):
        wanted = scipy_signal.fftconvolve(x, taps[None], mode, axes=-1)
        assert close(audio.fir_filter(device(x, dtype), taps, mode=mode), wanted, dtype)
        assert close(
            audio.fftconvolve(device(x, dtype), device(taps[None], "float64").astype(dtype), mode), wanted, dtype
        )
        short = scipy_signal.fftconvolve(taps[None], x, mode, axes=-1)
        if mode != "same":
            assert close(audio.fftconvolve(device(taps[None], dtype), device(x, dtype), mode), short, dtype)
    zi = rng.standard_normal((2, 56))
    wanted, last = scipy_signal.lfilter(taps, [2.0], x, zi=zi)
    found, zf = audio.lfilter(taps, [2.0], device(x, dtype), zi=zi)
    assert close(found, wanted, dtype) and np.abs(zf.to_numpy() - last).max() < 1e-5


@pytest.mark.parametrize(
    "kind", ["lowpass", "highpass", "bandpass", "notch", "allpass", "peaking", "lowshelf", "highshelf"]
)
def test_biquads_do_what_they_are_called(kind: str) -> None:
    sos = audio.biquad(kind, 1000, sr=22050, Q=1.3, gain_db=6)
    _, response = scipy_signal.sosfreqz(sos, np.array([1e-3, 1000, 11025 - 1e-3]), fs=22050)
    low, middle, high = 20 * np.log10(np.abs(response) + 1e-12)
    corner = 20 * np.log10(1.3)
    wanted = {
        "lowpass": (0, corner, -200),
        "highpass": (-200, corner, 0),
        "bandpass": (-200, 0, -200),
        "notch": (0, -200, 0),
        "allpass": (0, 0, 0),
        "peaking": (0, 6, 0),
        "lowshelf": (6, 3, 0),
        "highshelf": (0, 3, 6),
    }[kind]
    for found, level in zip((low, middle, high), wanted, strict=True):
        assert found < -80 if level == -200 else abs(found - level) < 1e-3
    x = rng.standard_normal(500)
    assert close(
        audio.biquad_filter(device(x, "float64"), kind, 1000, Q=1.3, gain_db=6), scipy_signal.sosfilt(sos, x), "float64"
    )


def test_a_butterworth_lowpass_is_scipys() -> None:
    b, a = scipy_signal.butter(2, 1000, fs=22050)
    assert np.allclose(audio.biquad("lowpass", 1000)[0], np.concatenate((b, a)), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rates", [(22050, 16000), (2, 3), (3, 2), (44100, 48000), (8000, 1000), (1000, 7000)])
def test_resampling_is_resample_poly(rates: tuple[int, int], dtype: str) -> None:
    x = rng.standard_normal((3, 777)).astype(dtype).astype(np.float64)
    wanted = scipy_signal.resample_poly(x, rates[1], rates[0], axis=-1)
    found = audio.resample(device(x, dtype), orig_sr=rates[0], target_sr=rates[1], res_type="polyphase", fix=False)
    assert close(found, wanted, dtype)
    wanted = scipy_signal.resample(x, wanted.shape[-1], axis=-1)
    assert close(
        audio.resample(device(x, dtype), orig_sr=rates[0], target_sr=rates[1], res_type="fft", fix=False)[
            ..., : wanted.shape[-1]
        ],
        wanted,
        dtype,
    )


@pytest.mark.parametrize("rates", [(22050, 16000), (16000, 22050), (44100, 16000)])
def test_the_best_filter_keeps_the_passband_and_takes_images_away(rates: tuple[int, int]) -> None:
    old, new = rates
    nyquist = min(rates) / 2
    bell = np.sin(np.pi * np.arange(old) / old) ** 4
    target = np.sin(np.pi * np.arange(new) / new) ** 4
    for frequency in (0.01, 0.5, 0.91):
        x = np.cos(2 * np.pi * frequency * nyquist * np.arange(old) / old) * bell
        wanted = np.cos(2 * np.pi * frequency * nyquist * np.arange(new) / new) * target
        found = audio.resample(device(x, "float64"), orig_sr=old, target_sr=new).to_numpy()
        assert np.abs(found - wanted).max() < 1e-5
    if old > new:
        x = np.cos(2 * np.pi * 1.02 * nyquist * np.arange(old) / old) * bell
        found = audio.resample(device(x, "float64"), orig_sr=old, target_sr=new).to_numpy()
        assert np.abs(found).max() < 10 ** (-90 / 20)


def test_the_windowed_sinc_is_torchaudios() -> None:
    """Its formula, written out: a sinc with 6 zeros on each side, under a squared cosine, rolled off at 0.99."""
    old, new = 3, 2
    x = rng.standard_normal(90)
    cutoff = 0.99 * min(old, new)
    place = np.arange(-60, 150)[None] / old - np.arange(60)[:, None] / new
    t = np.clip(place * cutoff, -6, 6)
    kernel = np.sinc(t) * np.cos(np.pi * t / 12) ** 2 * cutoff / old
    wanted = kernel @ np.pad(x, (60, 60))
    found = audio.resample(device(x, "float64"), orig_sr=old, target_sr=new, res_type="sinc").to_numpy()
    assert np.abs(found - wanted).max() < 1e-12


def test_blocks_give_what_the_whole_gives() -> None:
    x = rng.standard_normal((2, 2000)).astype(np.float32)
    cuts = [0, 1, 130, 131, 900, 2000]
    blocks = [device(x[:, a:b]) for a, b in pairwise(cuts)]
    whole, sos = device(x), scipy_signal.butter(4, 0.3, output="sos")

    def in_blocks(step: Any, state: Any) -> np.ndarray:
        parts = []
        for block in blocks:
            part, state = step(block, state)
            parts.append(part.to_numpy())
        return np.concatenate(parts, -1)

    found = in_blocks(lambda y, zi: audio.sosfilt(sos, y, zi=zi), np.zeros((2, 2, 2)))
    assert np.array_equal(found, audio.sosfilt(sos, whole).to_numpy())
    start = np.full((2, 1), 0.25, np.float32)
    found = in_blocks(lambda y, zi: audio.preemphasis(y, zi=zi, return_zf=True), start)
    assert np.array_equal(found, audio.preemphasis(whole, zi=start).to_numpy())
    found = in_blocks(lambda y, zi: audio.deemphasis(y, zi=zi, return_zf=True), start)
    assert np.array_equal(found, audio.deemphasis(whole, zi=start).to_numpy())
    taps = rng.standard_normal(9)
    found = in_blocks(lambda y, zi: audio.lfilter(taps, 1, y, zi=zi), np.zeros((2, 8)))
    assert np.abs(found - audio.lfilter(taps, 1, whole).to_numpy()).max() < 1e-5


@pytest.mark.parametrize("kind", ["soxr_hq", "polyphase", "sinc"])
@pytest.mark.parametrize("rates", [(22050, 16000), (2, 3), (3, 1)])
def test_the_resampler_of_streams_gives_the_bits_of_the_whole(kind: str, rates: tuple[int, int]) -> None:
    x = rng.standard_normal((2, 3000)).astype(np.float32)
    stream = audio.StreamResampler(*rates, kind)
    for _ in range(2):  # flush() begins anew
        parts = [stream.push(device(x[:, k : k + 311])).to_numpy() for k in range(0, 3000, 311)] + [
            stream.flush().to_numpy()
        ]
        whole = audio.resample(device(x), orig_sr=rates[0], target_sr=rates[1], res_type=kind, fix=False)
        assert np.array_equal(np.concatenate(parts, -1), whole.to_numpy())


def test_an_item_has_its_bits_in_any_batch() -> None:
    x = device(rng.standard_normal((5, 600)))
    b, a = scipy_signal.butter(3, 0.2)
    for function in (
        lambda y: audio.lfilter(b, a, y),
        lambda y: audio.fir_filter(y, [1, 2, 3.5]),
        lambda y: audio.resample(y, orig_sr=3, target_sr=2),
        lambda y: audio.rms(y=y, frame_length=64, hop_length=20),
        lambda y: audio.yin(y, fmin=500, fmax=5000, frame_length=128),
        lambda y: audio.compressor(y),
        lambda y: audio.preemphasis(y),
    ):
        together = function(x).to_numpy()
        assert np.array_equal(together, function(x).to_numpy())
        assert all(np.array_equal(together[k], function(x[k]).to_numpy()) for k in range(5))


def test_bad_input_is_refused_before_anything_runs() -> None:
    x = device(rng.standard_normal(50))
    with pytest.raises(DTypeError, match="int16"):
        audio.lfilter([1], [1, 0.5], gp.zeros(9, "int16"))
    with pytest.raises(ValueError, match=r"a\[0\] is 0"):
        audio.lfilter([1], [0, 1], x)
    with pytest.raises(ValueError, match="order 40"):
        audio.lfilter([1], np.ones(41), x)
    with pytest.raises(ShapeError, match="zi has shape"):
        audio.lfilter([1], [1, 0.5], x, zi=np.zeros(2))
    with pytest.raises(ValueError, match="column 3"):
        audio.sosfilt(np.zeros((1, 6)), x)
    with pytest.raises(ValueError, match="kind"):
        audio.biquad("comb", 100)
    with pytest.raises(ValueError, match="between 0 and sr / 2"):
        audio.biquad("notch", 20000)
    with pytest.raises(ValueError, match="mode"):
        audio.fir_filter(x, [1.0], mode="wrap")
    with pytest.raises(ValueError, match="res_type"):
        audio.resample(x, orig_sr=2, target_sr=3, res_type="linear")
    with pytest.raises(ValueError, match="positive"):
        audio.resample(x, orig_sr=0, target_sr=3)
    with pytest.raises(ValueError, match="small integers"):
        audio.resample(x, orig_sr=2**0.5, target_sr=1)
    assert audio.resample(x, orig_sr=5, target_sr=5) is x
    assert audio.resample(x[:0], orig_sr=2, target_sr=3, res_type="polyphase").shape == (0,)
