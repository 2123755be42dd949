"""Levels, pitch and rhythm: strange signals, bad input, leading axes, and the documented names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")

audio = gp.ops.audio
rng = np.random.default_rng(5)
SR = 16000


def device(values: Any, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(np.asarray(values).astype(dtype)))


def tone(frequency: float, count: int = 4000) -> np.ndarray:
    t = np.arange(count) / SR
    return np.sin(2 * np.pi * frequency * t) + 0.4 * np.sin(4 * np.pi * frequency * t)


FRAMED = [
    lambda y, **k: audio.rms(y=y, **k),
    audio.zero_crossing_rate,
    lambda y, **k: audio.yin(y, fmin=100, fmax=400, sr=SR, **k),
    lambda y, **k: audio.pyin(y, fmin=100, fmax=400, sr=SR, **k),
]


@pytest.mark.parametrize("function", FRAMED, ids=["rms", "zero_crossing_rate", "yin", "pyin"])
def test_strange_lengths_and_types(function: Any) -> None:
    y = device(tone(200))
    with pytest.raises(ValueError, match="hop_length"):
        function(y, hop_length=0)
    with pytest.raises(ShapeError, match="the signal has 100 samples, a frame 2048"):
        function(y[:100], center=False)
    with pytest.raises(ShapeError, match="0 samples"):
        function(y[:0], center=False)
    with pytest.raises(DTypeError, match="32768"):
        function(gp.zeros(9999, "int16"))
    with pytest.raises(ShapeError, match="0-d"):
        function(gp.full((), 1.0, "float32"))
    with pytest.raises(DTypeError, match="from_numpy"):
        function(tone(200))


@pytest.mark.parametrize("function", [FRAMED[3], audio.trim, audio.split, audio.VAD(SR).detect, audio.valid_audio])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_waits_for_the_device_refuses_nan_as_librosa_does(function: Any, bad: float) -> None:
    values = tone(200)
    values[77] = bad
    with pytest.raises(ValueError, match="NaN"):
        function(device(values))
    assert audio.valid_audio(device(tone(200))) is True


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_stays_in_the_frames_that_have_it(bad: float) -> None:
    values = tone(200)
    values[2000] = bad
    y, cut = device(values), {"frame_length": 500, "hop_length": 500, "center": False}
    for found in (audio.rms(y=y, **cut), audio.yin(y, fmin=100, fmax=400, sr=SR, **cut)):
        assert np.flatnonzero(~np.isfinite(found.to_numpy().ravel())).tolist() == [4]


def test_win_length_warns_and_has_no_effect() -> None:
    y, found = device(tone(200)), {"fmin": 100, "fmax": 400, "sr": SR}
    for function in (
        lambda **more: [audio.yin(y, **found, **more).to_numpy()],
        lambda **m: audio.pyin(y, **found, **m),
    ):
        with pytest.warns(FutureWarning, match="win_length has had no effect"):
            given = function(win_length=300)
        for one, other in zip(given, function(), strict=True):
            np.testing.assert_array_equal(one, other)


NOT_WAITING = {
    "stft": audio.stft,
    "melspectrogram": lambda y: audio.melspectrogram(y=y, sr=SR),
    "whisper_log_mel": audio.whisper_log_mel,
    "centroid": lambda y: audio.spectral_centroid(y=y, sr=SR),
    "harmonic": audio.harmonic,
    "zero_crossing_rate": lambda y: audio.zero_crossing_rate(y, threshold=0.5, ref_magnitude=np.max),
    "resample": lambda y: audio.resample(y, orig_sr=3, target_sr=2),
    "normalize": audio.normalize,
    "istft": lambda y: audio.istft(audio.stft(y)),
}


@pytest.mark.parametrize("function", NOT_WAITING.values(), ids=NOT_WAITING.keys())
def test_a_call_does_not_wait_for_the_device(function: Any) -> None:
    """A wait within a capture is an error. Functions that copy tables to the device at each call are left out."""
    y = device(tone(200))
    wanted = function(y)  # makes the tables
    with gp.Stream().capture() as graph:
        found = function(y)
    graph.launch()
    gp.synchronize()
    np.testing.assert_array_equal(found.to_numpy(), wanted.to_numpy())


def test_frame_takes_librosas_keywords() -> None:
    y = device(np.arange(100.0))
    plain = audio.frame(y, frame_length=30, hop_length=10)
    for writeable, subok in ((True, False), (False, True), (True, True)):
        same = audio.frame(y, frame_length=30, hop_length=10, writeable=writeable, subok=subok)
        np.testing.assert_array_equal(same.to_numpy(), plain.to_numpy())
    same[0, 0] = -5.0
    assert y.to_numpy()[0] == -5


def test_half_precision_computes_in_float32() -> None:
    y = device(tone(200), "float16")
    assert np.array_equal(
        audio.yin(y, fmin=100, fmax=400, sr=SR).to_numpy(),
        audio.yin(y.astype("float32"), fmin=100, fmax=400, sr=SR).to_numpy(),
    )


def test_strided_signals_are_read_in_place() -> None:
    y = tone(200)
    for view in (device(np.repeat(y, 3))[::3], device(y[::-1])[::-1], device(np.stack([y, y], 1)).T[1]):
        for function in FRAMED[:3]:
            assert np.array_equal(function(view).to_numpy(), function(device(y)).to_numpy())


def test_a_buffer_gives_a_buffer_and_brings_its_rate() -> None:
    sound = audio.AudioBuffer(device(np.stack([tone(200), 0 * tone(200)])), SR)
    for function in (
        audio.compressor,
        audio.limiter,
        lambda y: audio.fade(y, fade_in=0.1),
        lambda y: audio.biquad_filter(y, "lowpass", 500),
        lambda y: audio.normalize(y, axis=-1),
        lambda y: audio.fir_filter(y, [1, 2]),
        lambda y: audio.trim(y)[0],
    ):
        found = function(sound)
        assert isinstance(found, audio.AudioBuffer) and (found.sample_rate, found.channels) == (SR, 2)
        assert np.array_equal(sound.data.to_numpy()[0], tone(200).astype(np.float32))
    slow = audio.resample(sound, target_sr=SR // 2)
    assert (slow.sample_rate, len(slow), slow.channels) == (SR // 2, 2000, 2)
    assert np.abs(audio.yin(sound, fmin=100, fmax=400).to_numpy()[0] - 200).max() < 1
    faded = audio.fade(sound, fade_in=0.1).data.to_numpy()[0]
    assert np.allclose(faded[1600:], tone(200)[1600:]) and abs(faded[800] - tone(200)[800] / 2) < 1e-6
    assert audio.remove_dc(sound) is sound


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_yin_knows_the_frequency(dtype: str) -> None:
    y = np.stack([tone(f) for f in (111.0, 234.5, 380.0)]).reshape(3, 1, -1)
    found = audio.yin(device(y, dtype), fmin=80, fmax=500, sr=SR, frame_length=1024)
    assert found.shape == (3, 1, 16) and found.dtype.name == dtype
    middle = found.to_numpy()[:, 0, 2:-2]
    assert np.abs(middle - np.array([111.0, 234.5, 380.0])[:, None]).max() < 1


def test_periods_that_do_not_fit() -> None:
    y = device(tone(200))
    for fmin, fmax in ((0, 100), (200, 100), (100, 9000)):
        with pytest.raises(ValueError, match="0 < fmin < fmax <= sr / 2"):
            audio.yin(y, fmin=fmin, fmax=fmax, sr=SR)
    with pytest.raises(ValueError, match="does not fit into frame_length 256"):
        audio.yin(y, fmin=50, fmax=400, sr=SR, frame_length=256)
    with pytest.warns(UserWarning, match="under two periods"):
        audio.yin(y, fmin=50, fmax=400, sr=SR, frame_length=400)
    with pytest.raises(ValueError, match="max_transition_rate"):
        audio.pyin(y, fmin=100, fmax=110, sr=SR)


def test_pyin_tells_voice_from_none() -> None:
    y = np.concatenate((tone(220, 8000), 1e-3 * rng.standard_normal(8000)))
    f0, voiced, probability = audio.pyin(device(y), fmin=100, fmax=500, sr=SR)
    assert voiced[3:12].all() and not voiced[20:].any() and np.isnan(f0[20:]).all()
    assert np.abs(f0[3:12] / 220 - 1).max() < 0.01
    assert probability[3:12].min() > 0.9 and probability.max() <= 1
    pair = audio.pyin(device(np.stack([y, y[::-1]])), fmin=100, fmax=500, sr=SR)
    assert np.array_equal(pair[1][0], voiced)


def test_documented_names_warn_and_work() -> None:
    y = device(tone(200))
    with pytest.warns(DeprecationWarning, match="autocorrelate"):
        found = audio.autocorrelation(y, 100)
    assert np.array_equal(found.to_numpy(), audio.autocorrelate(y, max_size=100).to_numpy())
    with pytest.warns(DeprecationWarning, match="yin"):
        assert audio.detect_pitch_yin(y[:2000]) == pytest.approx(200, abs=0.5)
    with pytest.warns(DeprecationWarning, match="yin"):
        assert audio.detect_pitch_yin(device(rng.standard_normal(2000))) == 0.0
    with pytest.warns(DeprecationWarning, match="yin"):
        frames = audio.detect_pitch_yin_frames(y).to_numpy()
    assert frames.shape == (12,) and np.abs(frames - 200).max() < 1
    with pytest.warns(DeprecationWarning, match="alpha is now coef"):
        assert np.array_equal(audio.preemphasis(y, alpha=0.5).to_numpy(), audio.preemphasis(y, coef=0.5).to_numpy())
    with pytest.warns(DeprecationWarning, match="frame_size is now frame_length"):
        audio.zero_crossing_rate(y, frame_size=512)
    energy = audio.compute_short_term_energy(y, 1000).to_numpy()
    assert np.allclose(energy, (tone(200).reshape(4, 1000) ** 2).mean(1), rtol=1e-6)


def test_emphasis_changes_sounds_in_place_and_makes_new_arrays() -> None:
    y = tone(200, 900).astype(np.float32)
    for function in (audio.preemphasis, audio.deemphasis):
        array, sound = device(y), audio.AudioBuffer(device(y), SR)
        wanted = function(array).to_numpy()
        assert np.array_equal(array.to_numpy(), y) and not np.array_equal(wanted, y)
        samples = sound.data
        assert function(sound) is sound and sound.data is samples
        assert np.array_equal(samples.to_numpy(), wanted)
        sound = audio.AudioBuffer(device(y), SR)
        found, zf = function(sound, zi=0.5, return_zf=True)
        expected, expected_zf = function(array, zi=0.5, return_zf=True)
        assert found is sound and np.array_equal(sound.to_numpy(), expected.to_numpy())
        assert np.array_equal(zf.to_numpy(), expected_zf.to_numpy())


def test_beats_of_a_steady_envelope() -> None:
    """All onsets alike: a beat every half period, as librosa 0.11 has it of float32; nothing overflows."""
    for dtype in (np.float32, np.float64):
        for level in (1.0, 5.0, 1e-3):
            tempo, beats = audio.beat_track(onset_envelope=gp.from_numpy(np.full(400, level, dtype)))
            assert float(np.ravel(tempo)[0]) == pytest.approx(123.046875)
            assert len(beats) == 40 and set(np.diff(beats)) == {10}


def test_what_gives_results_on_the_host_refuses_nan() -> None:
    for bad in (np.nan, np.inf):
        y = tone(200)
        y[1000] = bad
        for call in (audio.onset_detect, audio.beat_track, audio.tempo, audio.estimate_tuning):
            with pytest.raises(ValueError, match="NaN or infinite"):
                call(y=device(y))
        with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="NaN or infinite"):
            audio.detect_pitch_yin(device(y[:2000]))


def test_short_signals_of_emphasis() -> None:
    for function in (audio.preemphasis, audio.deemphasis):
        with pytest.raises(ShapeError, match="two are needed"):
            function(device([1.0]))
        assert function(device([1.0]), zi=0.5).shape == (1,)
        with pytest.raises(ShapeError, match="zi has shape"):
            function(device([1.0, 2.0]), zi=[1.0, 2.0])


def test_silence_has_no_pieces() -> None:
    assert audio.trim(device(np.zeros(5000)))[0].shape == (5000,)  # level 0 dB below itself, as librosa has it
    assert audio.trim(device(np.zeros(5000)), ref=1.0)[0].shape == (0,)
    assert audio.split(device(np.zeros(5000)), ref=1.0).shape == (0, 2)
    stereo = np.zeros((2, 9000))
    stereo[1, 4000:5000] = 1
    found, (start, end) = audio.trim(device(stereo), frame_length=256, hop_length=64)
    assert 3800 <= start <= 4000 and 5000 <= end <= 5200 and found.shape == (2, end - start)


def test_rhythm_of_nothing() -> None:
    silence = device(np.zeros(200))
    assert audio.onset_detect(onset_envelope=silence).tolist() == []
    assert audio.beat_track(onset_envelope=silence)[1].tolist() == []
    pair = device(np.zeros((2, 50)))
    assert not audio.onset_detect(onset_envelope=pair, sparse=False).any()
    for call in (audio.onset_strength, audio.onset_detect, audio.tempogram, audio.tempo, audio.beat_track):
        with pytest.raises(ValueError, match="give y"):
            call()
    with pytest.raises(ValueError, match="units"):
        audio.onset_detect(onset_envelope=device(np.arange(50.0)), units="bars")
    with pytest.raises(ValueError, match="sparse=False"):
        audio.beat_track(onset_envelope=pair)
    with pytest.raises(ValueError, match="post_max"):
        audio.peak_pick(np.arange(5.0), pre_max=1, post_max=0, pre_avg=1, post_avg=1, delta=0, wait=0)


def test_rhythm_of_short_and_strange_signals() -> None:
    short = device(tone(200, 100))
    with pytest.warns(UserWarning, match="n_fft"):
        assert audio.onset_strength(y=short, sr=SR).to_numpy().tolist() == [0.0]
    envelope = device(np.arange(9.0))
    for call in (audio.onset_detect, audio.tempo, audio.beat_track):
        with pytest.raises(ValueError, match="hop_length is 0"):
            call(onset_envelope=envelope, hop_length=0)
    with pytest.raises(ShapeError, match="must have frames"):
        audio.tempo(onset_envelope=envelope[:0])
    assert audio.onset_detect(onset_envelope=envelope[:0]).tolist() == []
    broken = device([0.0, np.nan, 1.0, 0.0])
    assert audio.onset_detect(onset_envelope=broken).tolist() == []  # as librosa has it
    with pytest.raises(ValueError, match="NaN"):
        audio.tempo(onset_envelope=broken)
    assert audio.beat_track(onset_envelope=device([0.0, 1.0]), bpm=120)[1].dtype.kind == "i"
    for bad in ({"bpm": 0}, {"tightness": 0}, {"bpm": [100.0, 90.0]}):
        with pytest.raises(ValueError, match=r"bpm|tightness"):
            audio.beat_track(onset_envelope=envelope, **bad)


def test_a_click_track_has_its_tempo_beats_and_onsets() -> None:
    y, at = 1e-4 * rng.standard_normal(10 * SR), np.arange(0.5, 9.5, 0.5)
    for second in at:
        start = int(second * SR)
        y[start : start + 500] += rng.standard_normal(500) * np.exp(-np.arange(500) / 100)
    y = device(y)
    onsets = audio.onset_detect(y=y, sr=SR, units="time", hop_length=256)
    assert len(onsets) == len(at) and np.abs(onsets - at).max() < 0.04
    assert audio.tempo(y=y, sr=SR, hop_length=256)[0] == pytest.approx(120, abs=4)
    beats = audio.beat_track(y=y, sr=SR, hop_length=256, units="time")[1]
    assert len(beats) >= 15 and np.abs(beats[:, None] - at).min(1).max() < 0.05
