"""stft and istft: a plain loop as reference, round trips, layout, leading axes, the same bits, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")

audio = gp.ops.audio
rng = np.random.default_rng(11)


def device(values: np.ndarray, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(values.astype(dtype)))


def by_loop(y: np.ndarray, n_fft: int, hop: int, window: np.ndarray, pad_mode: str) -> np.ndarray:
    y = np.pad(y.astype(np.float64), n_fft // 2, pad_mode)
    columns = [np.fft.rfft(window * y[at : at + n_fft]) for at in range(0, len(y) - n_fft + 1, hop)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("n_fft, hop", [(256, 64), (400, 160), (401, 100), (127, 31), (64, 64), (32, 50)])
@pytest.mark.parametrize("pad_mode", ["constant", "reflect", "edge", "symmetric"])
def test_stft_is_the_transform_of_each_frame(n_fft: int, hop: int, pad_mode: str) -> None:
    y = rng.standard_normal(1999).astype(np.float32)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    wanted = by_loop(y, n_fft, hop, hann, pad_mode)
    found = audio.stft(device(y), n_fft=n_fft, hop_length=hop, pad_mode=pad_mode)
    assert found.dtype == gp.complex64 and found.shape == wanted.shape
    assert np.linalg.norm(found.to_numpy() - wanted) <= 1e-6 * np.linalg.norm(wanted)
    double = audio.stft(device(y, "float64"), n_fft=n_fft, hop_length=hop, pad_mode=pad_mode)
    assert double.dtype == gp.complex128
    assert np.linalg.norm(double.to_numpy() - wanted) <= 1e-14 * np.linalg.norm(wanted)


def test_memory_has_one_frame_after_the_other() -> None:
    found = audio.stft(device(rng.standard_normal((2, 5000))), n_fft=256)
    assert found.swapaxes(-1, -2).is_contiguous()


@pytest.mark.parametrize("n_fft, hop, win", [(256, 64, None), (400, 100, None), (512, 128, 400), (1024, 300, 1000)])
@pytest.mark.parametrize("window", ["hann", "hamming", "blackman"])
def test_the_way_there_and_back(n_fft: int, hop: int, win: int | None, window: str) -> None:
    y = rng.standard_normal((2, 6000)).astype(np.float32)
    how = {"n_fft": n_fft, "hop_length": hop, "win_length": win, "window": window}
    back = audio.istft(audio.stft(device(y), **how), length=6000, **how).to_numpy()
    assert np.linalg.norm(back - y) < 1e-6 * np.linalg.norm(y)
    assert np.abs(back - y).max() < 2e-6 * np.abs(y).max()


def test_an_item_has_its_own_bits_in_a_batch_and_on_every_run() -> None:
    y = rng.standard_normal((2, 3, 4001)).astype(np.float32)
    whole = audio.stft(device(y), n_fft=400, hop_length=160)
    again = audio.stft(device(y), n_fft=400, hop_length=160)
    back = audio.istft(whole, hop_length=160)
    assert np.array_equal(whole.to_numpy(), again.to_numpy())
    for i in np.ndindex(2, 3):
        alone = audio.stft(device(y[i]), n_fft=400, hop_length=160)
        assert np.array_equal(whole.to_numpy()[i], alone.to_numpy())
        assert np.array_equal(back.to_numpy()[i], audio.istft(alone, hop_length=160).to_numpy())


def test_strided_signals_are_read_where_they_lie() -> None:
    y = rng.standard_normal((4000, 2)).astype(np.float32)
    interleaved = device(y)
    found = audio.stft(interleaved.T, n_fft=256)
    assert np.array_equal(found.to_numpy(), audio.stft(device(y.T), n_fft=256).to_numpy())
    backwards = audio.stft(device(y[:, 0])[::-1], n_fft=256)
    assert np.array_equal(backwards.to_numpy(), audio.stft(device(y[::-1, 0]), n_fft=256).to_numpy())


def test_a_signal_shorter_than_a_frame_warns_and_is_refused_without_center() -> None:
    with pytest.warns(UserWarning, match="n_fft is 2048, the signal has 100 samples only"):
        assert audio.stft(device(rng.standard_normal(100))).shape == (1025, 1)
    with pytest.raises(ShapeError, match="the signal has 100 samples, a frame 2048"):
        audio.stft(device(rng.standard_normal(100)), center=False)


def test_an_empty_signal_is_one_frame_of_zeros_as_in_librosa() -> None:
    with pytest.warns(UserWarning, match="the signal has 0 samples only"):
        found = audio.stft(device(np.zeros(0)), n_fft=64)
    assert found.shape == (33, 1) and not found.to_numpy().any()
    with pytest.raises(ShapeError, match="y is empty"):
        audio.stft(device(np.zeros(0)), n_fft=64, pad_mode="reflect")
    assert audio.stft(device(np.zeros((0, 500))), n_fft=64).shape == (0, 33, 32)


@pytest.mark.parametrize("hop", [0, -1, 2.5])
def test_a_hop_that_is_not_a_positive_integer_is_refused(hop: float) -> None:
    with pytest.raises(ValueError, match=f"hop_length is {hop}"):
        audio.stft(device(np.ones(4000)), hop_length=hop)
    with pytest.raises(ValueError, match=f"hop_length is {hop}"):
        audio.istft(audio.stft(device(np.ones(4000))), hop_length=hop)


def test_what_is_no_signal_is_refused_in_words() -> None:
    with pytest.raises(DTypeError, match="int16 and must be floating-point; scale with"):
        audio.stft(device(np.ones(4000), "int16"))
    with pytest.raises(ShapeError, match="0-d"):
        audio.stft(gp.ones(()))
    with pytest.raises(DTypeError, match="nothing is copied to the device implicitly"):
        audio.stft(np.ones(4000))
    with pytest.raises(ValueError, match="pad_mode 'wrap' is unknown"):
        audio.stft(device(np.ones(4000)), pad_mode="wrap")
    with pytest.raises(ValueError, match="win_length is 600, more than n_fft, 512"):
        audio.stft(device(np.ones(4000)), n_fft=512, win_length=600)
    with pytest.raises(DTypeError, match="must be complex"):
        audio.istft(device(np.ones((5, 5))))
    with pytest.raises(ShapeError, match="5 bins are not those of n_fft 16"):
        audio.istft(device(np.ones((5, 5)), "complex64"), n_fft=16)


def test_half_floats_compute_in_single_precision() -> None:
    y = rng.standard_normal(3000).astype(np.float16)
    found = audio.stft(gp.from_numpy(y), n_fft=256)
    assert np.array_equal(found.to_numpy(), audio.stft(device(y), n_fft=256).to_numpy())


def test_results_are_written_where_asked() -> None:
    y = device(rng.standard_normal(3000))
    D = audio.stft(y, n_fft=256)
    out = gp.zeros(D.shape, "complex64")
    assert audio.stft(y, n_fft=256, out=out) is out and np.array_equal(out.to_numpy(), D.to_numpy())
    back = gp.zeros(3000)
    assert audio.istft(D, length=3000, out=back) is back
    assert np.array_equal(back.to_numpy(), audio.istft(D, length=3000).to_numpy())
    with pytest.raises(ShapeError, match="out has shape"):
        audio.stft(y, n_fft=256, out=gp.zeros((3, 3), "complex64"))


def test_the_documented_keyword_works_and_warns() -> None:
    y = device(rng.standard_normal(3000))
    with pytest.warns(DeprecationWarning, match="the keyword audio is now y"):
        D = audio.stft(audio=y, n_fft=256, win_length=None)
    with pytest.warns(DeprecationWarning, match="stft_output is now stft_matrix"):
        audio.istft(stft_output=D)
    with pytest.raises(TypeError, match="give one of them"):
        audio.stft(y=y, audio=y)


def test_documented_positions_are_the_keywords() -> None:
    y = device(rng.standard_normal(4000))
    D = audio.stft(y, n_fft=512, hop_length=160)
    S, mel = gp.abs(D), gp.abs(device(rng.standard_normal((40, 12))))
    middle = audio.spectral_centroid(S=S, sr=16000)
    for function, positions, named in (
        (audio.stft, (y, 512, 160, -1, True), {"y": y, "n_fft": 512, "hop_length": 160}),
        (audio.istft, (D, 160, -1, True, 4000), {"stft_matrix": D, "hop_length": 160, "length": 4000}),
        (audio.mfcc, (mel, 13), {"S": mel, "n_mfcc": 13}),
        (audio.delta, (mel, 2, 5), {"data": mel, "order": 2, "width": 5}),
        (audio.spectral_centroid, (S, 16000), {"S": S, "sr": 16000}),
        (audio.spectral_bandwidth, (S, middle, 16000, 3), {"S": S, "centroid": middle, "sr": 16000, "p": 3}),
        (audio.spectral_rolloff, (S, 16000, 0.6), {"S": S, "sr": 16000, "roll_percent": 0.6}),
        (audio.spectral_flatness, (S,), {"S": S}),
        (audio.spectral_contrast, (S, 4, 0.2), {"S": S, "n_bands": 4, "quantile": 0.2}),
        (audio.zero_crossing_rate, (y, 512, 256), {"y": y, "frame_length": 512, "hop_length": 256}),
        (audio.chroma_stft, (S, 16000, 10, 0.1), {"S": S, "sr": 16000, "n_chroma": 10, "tuning": 0.1}),
        (audio.hpss, (S, 17, 1.0, 2.0), {"S": S, "kernel_size": 17, "power": 1.0, "margin": 2.0}),
        (audio.time_stretch, (y, 2.0, 512, 128), {"y": y, "rate": 2.0, "n_fft": 512, "hop_length": 128}),
        (audio.pitch_shift, (y, 16000, 3, 512), {"y": y, "sr": 16000, "n_steps": 3, "n_fft": 512}),
        (audio.preemphasis, (y, 0.9), {"y": y, "coef": 0.9}),
    ):
        with pytest.warns(DeprecationWarning, match="by name"):
            found = function(*positions)
        expected = function(**named)
        for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
            assert np.array_equal(one.to_numpy(), other.to_numpy(), equal_nan=True), function.__name__
    with pytest.raises(TypeError, match="n_fft is given by position and by name"):
        audio.stft(y, 512, n_fft=512)
    with pytest.raises(TypeError, match="sr is given by position and by name"):
        audio.spectral_centroid(S, 16000, sample_rate=8000)
    with pytest.raises(TypeError, match="positional"):
        audio.stft(y, 512, 160, -1, True, 5)


def test_frames_are_a_view_of_the_signal() -> None:
    y = device(np.arange(20.0))
    found = audio.frame(y, frame_length=6, hop_length=4)
    assert found.shape == (6, 4)
    assert np.array_equal(found.to_numpy(), np.arange(6)[:, None] + 4 * np.arange(4))
    y[0] = 100
    assert found.to_numpy()[0, 0] == 100
    assert audio.frame(y, frame_length=6, hop_length=4, axis=0).shape == (4, 6)
    host = np.arange(4 * 12 * 3.0).reshape(4, 12, 3)
    for axis in range(-3, 3):
        # Of windows at every place, each second one; librosa puts their samples beside the frames, on the outer side.
        windows = np.lib.stride_tricks.sliding_window_view(host, 3, axis % 3)
        windows = np.moveaxis(
            windows.take(range(0, windows.shape[axis % 3], 2), axis % 3), -1, axis + (1 if axis >= 0 else -1)
        )
        found = audio.frame(device(host), frame_length=3, hop_length=2, axis=axis)
        assert found.shape == windows.shape and np.array_equal(found.to_numpy(), windows)
    first = audio.frame(device(np.arange(40.0).reshape(20, 2)), frame_length=6, hop_length=4, axis=0)
    assert first.shape == (4, 6, 2) and first.to_numpy()[1, 2, 1] == 2 * (4 + 2) + 1
