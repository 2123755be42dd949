"""Loudness: compressor, limiter, fades and gates by what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError

pytestmark = pytest.mark.usefixtures("backend_name")

audio = gp.ops.audio
rng = np.random.default_rng(7)
SR = 8000


def device(values: Any, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(np.asarray(values).astype(dtype)))


def sine(amplitude: float, seconds: float = 1.0, frequency: float = 1000.0) -> np.ndarray:
    return amplitude * np.sin(2 * np.pi * frequency * np.arange(int(seconds * SR)) / SR + 0.1)


@pytest.mark.parametrize("knee", [0.0, 6.0])
@pytest.mark.parametrize("ratio", [1.0, 2.0, 8.0])
def test_the_compressor_has_its_ratio_above_the_threshold(ratio: float, knee: float) -> None:
    levels = []
    for level in (-40.0, -10.0, -4.0):
        y = np.full(SR, 10 ** (level / 20))
        found = audio.compressor(device(y, "float64"), sr=SR, threshold_db=-20, ratio=ratio, knee_db=knee).to_numpy()
        levels.append(20 * np.log10(found[-1]))
    assert levels[0] == pytest.approx(-40, abs=1e-6)
    assert levels[1] == pytest.approx(-20 + 10 / ratio, abs=1e-6)
    assert levels[2] - levels[1] == pytest.approx(6 / ratio, abs=1e-6)


def test_the_compressor_takes_attack_and_release() -> None:
    y = np.concatenate((np.full(SR, 0.01), np.full(SR, 1.0), np.full(SR, 0.01)))
    found = audio.compressor(device(y, "float64"), sr=SR, attack=0.01, release=0.1, knee_db=0, makeup_db=3).to_numpy()
    gain = 20 * np.log10(found / y) - 3
    assert gain[SR - 1] == pytest.approx(0, abs=1e-6) and gain[2 * SR - 1] == pytest.approx(-15, abs=1e-6)
    assert gain[SR + 80] == pytest.approx(-15 * (1 - np.exp(-81 / 80)), rel=1e-6)  # a time constant into the loud part
    assert gain[2 * SR + 800] == pytest.approx(-15 * np.exp(-1), rel=0.15)  # one after its end, smoothed
    assert np.all(np.diff(gain[2 * SR + 200 :]) >= 0)


@pytest.mark.parametrize("lookahead", [0.0, 0.0001, 0.005])
def test_no_sample_leaves_the_limiter_above_the_ceiling(lookahead: float) -> None:
    y = rng.standard_normal((2, 3000)) * np.exp(rng.standard_normal((2, 3000)))
    found = audio.limiter(device(y), sr=SR, ceiling_db=-3, lookahead=lookahead).to_numpy()
    ceiling = np.float32(10 ** (-3 / 20))
    assert np.abs(found).max() <= ceiling and np.abs(found).max() > 0.99 * ceiling
    quiet = 0.1 * sine(1)
    assert np.array_equal(audio.limiter(device(quiet), sr=SR).to_numpy(), quiet.astype(np.float32))


def test_the_limiter_goes_down_ahead_of_a_peak_without_a_step() -> None:
    y = np.full(4000, 0.5)
    y[2000] = 4.0
    gain = audio.limiter(device(y, "float64"), sr=SR, ceiling_db=0, lookahead=0.005, release=0.02).to_numpy() / y
    assert gain[2000] == pytest.approx(0.25)
    assert np.all(gain[: 2000 - 40] == 1) and np.all(np.diff(gain[1960:2001]) < 0)
    assert np.abs(np.diff(20 * np.log10(gain))).max() < 12.05 / 40 + 0.01


def test_fades() -> None:
    y = device(np.ones((2, 100)))
    found = audio.fade(y, fade_in=0.2, fade_out=0.3, sr=100).to_numpy()
    assert np.allclose(found[:, :20], np.arange(20) / 20) and np.allclose(found[:, 70:], np.arange(30)[::-1] / 30)
    assert np.all(found[:, 20:70] == 1)
    rising = audio.fade(y, fade_in=0.5, sr=100, shape="quarter_sine").to_numpy()[0]
    falling = audio.fade(y, fade_out=0.5, sr=100, shape="quarter_sine").to_numpy()[0]
    assert np.allclose(rising[1:50] ** 2 + falling[50:99] ** 2, 1, atol=1e-6)  # equal power where they cross
    for shape in ("half_sine", "exponential"):
        ramp = audio.fade(y, fade_in=1, sr=100, shape=shape).to_numpy()[0]
        assert ramp[0] == 0 and ramp[-1] > 0.9 and np.all(np.diff(ramp) > 0)
    with pytest.raises(ValueError, match="the signal has 100"):
        audio.fade(y, fade_in=2, sr=100)
    with pytest.raises(ValueError, match="shape"):
        audio.fade(y, shape="cubic")


def test_four_functions_work_in_place_and_give_back_what_they_got() -> None:
    values = 0.3 + sine(0.5)
    values[:3] = 0.005  # for the noise gate
    for function in (audio.remove_dc, audio.highpass_filter, audio.noise_gate, audio.spectral_gate):
        wide = device(np.repeat(values, 2))
        for y in (device(values), wide[::2]):
            assert function(y) is y and not np.array_equal(y.to_numpy(), values.astype(np.float32))
        assert np.array_equal(wide.to_numpy()[1::2], values.astype(np.float32))
        assert function(y[:0]).shape == (0,)
    y = audio.remove_dc(device(values, "float64")).to_numpy()
    assert abs(y.mean()) < 1e-15
    y = audio.highpass_filter(device(values, "float64"), 20, SR).to_numpy()
    assert abs(y[SR // 2 :].mean()) < 1e-3 and np.abs(y[SR // 2 :] - sine(0.5)[SR // 2 :]).max() < 0.02
    y = audio.noise_gate(device([0.5, -0.009, 0.01, -0.2])).to_numpy()
    assert np.array_equal(y, np.array([0.5, 0, 0.01, -0.2], np.float32))


def test_the_spectral_gate_takes_noise_away_and_keeps_the_tone() -> None:
    tone, noise = sine(0.3), 0.002 * rng.standard_normal(SR)
    found = audio.spectral_gate(device(tone + noise), threshold=0.01).to_numpy()
    middle = slice(1000, -1000)
    before, after = np.std(noise[middle]), np.std((found - tone)[middle])
    assert after < before / 3
    assert np.abs(audio.spectral_gate(device(noise), threshold=0.01).to_numpy()).max() == 0


def test_bad_input() -> None:
    y = device(np.ones(10))
    with pytest.raises(ValueError, match="ratio"):
        audio.compressor(y, ratio=0.5)
    with pytest.raises(ValueError, match="attack"):
        audio.compressor(y, attack=-1)
    with pytest.raises(ValueError, match="lookahead"):
        audio.limiter(y, lookahead=-1)
    with pytest.raises(DTypeError, match="int16"):
        audio.limiter(gp.zeros(4, "int16"))
    with pytest.raises(ValueError, match="norm"):
        audio.normalize(y, norm=-3)
    for function in (audio.compressor, audio.limiter, audio.fade):
        assert function(y[:0]).shape == (0,)
