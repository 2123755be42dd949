"""The one launch from samples to spectra, and what follows it, as kernels on the simulator in checked mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from audio.material import RATE, signal
from scipy import signal as scipy_signal

import pygpukit as gp
from pygpukit.ops import host
from pygpukit.ops.audio import spectra

audio = gp.ops.audio
Y = np.stack([signal("voice"), signal("clicks")])[:, :2999].astype(np.float32)


def both(function: Callable[[], Any]) -> tuple[np.ndarray, np.ndarray]:
    """What the kernels give, and what NumPy gives."""
    found = function().to_numpy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "computes", lambda: True)
        return found, function().to_numpy()


def near(found: np.ndarray, wanted: np.ndarray, limit: float = 1e-6) -> None:
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    assert np.linalg.norm(found - wanted) <= limit * np.linalg.norm(wanted)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_spectra_are_those_of_the_steps(kernels_on_sim: None, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    y = gp.from_numpy(Y)
    launched: list[int] = []
    launch = spectra.spectra
    monkeypatch.setattr(spectra, "spectra", lambda *args: launched.append(args[6]) or launch(*args))
    how = {"n_fft": 60, "hop_length": 37, "pad_mode": mode}
    near(*both(lambda: audio.stft(y, **how, win_length=50)))
    near(*both(lambda: audio.stft(y[:, 5:70], **how)))  # a few frames, all of them past an end
    near(*both(lambda: audio.melspectrogram(y=y, sr=RATE, n_mels=7, **how)))
    near(*both(lambda: audio.melspectrogram(y=y, sr=RATE, n_mels=7, power=1.0, htk=True, **how)))
    near(*both(lambda: audio.spectral_centroid(y=y, sr=RATE, **how)), 1e-5)
    assert launched == [0, 0, 6, 5, 1]


@pytest.mark.parametrize("n_fft", [4, 26, 400])
def test_lengths_of_small_primes_take_one_launch(kernels_on_sim: None, n_fft: int) -> None:
    assert spectra.fits(n_fft, gp.float32)
    y = gp.from_numpy(Y)
    near(*both(lambda: audio.stft(y[:, :999], n_fft=n_fft, hop_length=101)))


def test_other_lengths_go_step_by_step(kernels_on_sim: None) -> None:
    y = gp.from_numpy(Y[:, :700])
    for n_fft in (63, 34, 2):
        assert not spectra.fits(n_fft, gp.float32)
    near(*both(lambda: audio.stft(y, n_fft=63, hop_length=20)))


def test_an_item_has_its_own_bits_in_a_batch(kernels_on_sim: None) -> None:
    y = gp.from_numpy(Y)
    whole = audio.stft(y, n_fft=60).to_numpy()
    for i in range(2):
        assert np.array_equal(whole[i], audio.stft(y[i], n_fft=60).to_numpy())


def test_the_way_there_and_back(kernels_on_sim: None) -> None:
    y = gp.from_numpy(Y)
    back = audio.istft(audio.stft(y, n_fft=60), n_fft=60, length=2999).to_numpy()
    assert np.linalg.norm(back - Y) < 1e-6 * np.linalg.norm(Y)


def test_whispers_input(kernels_on_sim: None) -> None:
    found, wanted = both(lambda: audio.whisper_log_mel(gp.from_numpy(Y)))
    assert np.abs(found - wanted).max() <= 2e-5


def test_running_medians(kernels_on_sim: None) -> None:
    S = gp.from_numpy(np.abs(np.random.default_rng(5).standard_normal((2, 9, 20))).astype(np.float32))
    near(*both(lambda: audio.hpss(S, kernel_size=(7, 4))[0]))
    near(*both(lambda: audio.hpss(S, kernel_size=(7, 4))[1]))


def test_filters_and_resampling(kernels_on_sim: None) -> None:
    rng = np.random.default_rng()
    x = rng.standard_normal((2, 600))
    b, a = scipy_signal.butter(3, 0.3)
    zi = rng.standard_normal((2, 3))
    found, zf = audio.lfilter(b, a, gp.from_numpy(x), zi=zi)
    wanted, last = scipy_signal.lfilter(b, a, x, zi=zi)
    near(found.to_numpy(), wanted, 1e-12)
    near(zf.to_numpy(), last, 1e-12)
    assert audio.lfilter(b, a, gp.from_numpy(x[:, :0])).shape == (2, 0)
    wanted = scipy_signal.resample_poly(x, 2, 3, axis=-1)
    strided = gp.from_numpy(np.repeat(x, 2, -1))[:, ::2]
    near(audio.resample(strided, orig_sr=3, target_sr=2, res_type="polyphase").to_numpy(), wanted, 1e-12)
    assert audio.fir_filter(gp.zeros((2, 0)), [1.0, 2.0]).shape == (2, 0)
