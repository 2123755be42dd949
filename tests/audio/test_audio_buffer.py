"""AudioBuffer: samples in and out, parts, levels; its pictures beside NumPy's own."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops.audio import picture

pytestmark = pytest.mark.usefixtures("backend_name")
AudioBuffer, from_pcm = gp.ops.audio.AudioBuffer, gp.ops.audio.from_pcm
RATE = 8000


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng()


def sound_of(samples: np.ndarray, rate: int = RATE) -> AudioBuffer:
    return AudioBuffer(gp.from_numpy(samples.astype(np.float32)), rate)


@pytest.mark.parametrize(("kind", "zero", "full"), [("int16", 0, 2**15), ("int32", 0, 2**31), ("uint8", 128, 2**7)])
def test_integers_become_their_part_of_full_scale(rng: np.random.Generator, kind: str, zero: int, full: int) -> None:
    bounds = np.iinfo(kind)
    samples = rng.integers(bounds.min, bounds.max, 1001, dtype=kind, endpoint=True)
    samples[:2] = bounds.min, bounds.max
    sound = from_pcm(samples, RATE)
    assert (len(sound), sound.channels, sound.sample_rate) == (1001, 1, RATE)
    wanted = (samples.astype(np.float64) - zero) / full
    np.testing.assert_allclose(sound.to_numpy(), wanted, atol=2.0**-24)
    assert sound.data.dtype == gp.float32


def test_floats_are_kept_and_what_is_no_number_is_refused(rng: np.random.Generator) -> None:
    samples = rng.standard_normal((77, 2))
    for kind in (np.float32, np.float64):
        np.testing.assert_array_equal(
            from_pcm(samples[:, 0].astype(kind), RATE).to_numpy(), samples[:, 0].astype(np.float32)
        )
    for bad in (np.nan, np.inf, -np.inf):
        samples[5, 1] = samples[9, 0] = bad
        for given in (samples, gp.asarray(samples), samples.astype(np.float32)):
            with pytest.raises(InvalidSpecError, match=rf"samples\[5, 1\] is {bad}, and 1 more are not finite"):
                from_pcm(given, RATE)


@pytest.mark.parametrize(
    ("shape", "channels", "found"),
    [
        ((50, 2), 0, 2),
        ((2, 50), 0, 2),
        ((50, 1), 0, 1),
        ((1, 50), 0, 1),
        ((3, 3), 0, 3),
        ((2, 1), 0, 1),
        ((2, 1), 2, 2),
        ((1, 2), 2, 2),
        ((0, 2), 0, 2),
        ((2, 0), 0, 2),
        ((50, 2), 50, 50),
    ],
)
def test_channels_are_the_shorter_axis(shape: tuple[int, int], channels: int, found: int) -> None:
    samples = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    sound = from_pcm(samples, RATE, channels)
    assert sound.channels == found and sound.data.shape == (found, samples.size // found)
    first = found == shape[0] and not (channels == 0 and 0 < shape[1] < shape[0])
    np.testing.assert_array_equal(sound.to_numpy(), samples if first else samples.T)
    with pytest.raises(ShapeError, match="no axis of 7 channels"):
        from_pcm(samples, RATE, 7)


def test_audio_makes_a_sound_as_ipythons_does(rng: np.random.Generator, tmp_path: Path) -> None:
    samples = rng.uniform(-0.5, 0.5, (900, 2))
    loud = (samples / np.abs(samples).max()).astype(np.float32)
    np.testing.assert_allclose(gp.Audio(samples, RATE).to_numpy(), loud.T, rtol=1e-6)
    np.testing.assert_array_equal(
        gp.Audio(samples[:, 0], rate=RATE, normalize=False).to_numpy(), samples[:, 0].astype("f4")
    )
    assert gp.Audio([1, 2, -4], RATE).to_numpy().tolist() == [0.25, 0.5, -1.0]
    assert gp.Audio(np.array([2**14], np.int16), RATE, normalize=False).to_numpy().tolist() == [0.5]
    sound = gp.Audio(loud, RATE)
    assert gp.Audio(sound) is sound and gp.Audio(sound, RATE) is sound
    gp.ops.audio.write(tmp_path / "a.wav", sound)
    assert len(gp.Audio(str(tmp_path / "a.wav"))) == len(gp.Audio(tmp_path / "a.wav", RATE)) == 900
    for given, error, words in (
        ((samples,), InvalidSpecError, "give it, as in gp.Audio"),
        ((sound, 9), InvalidSpecError, "has 8000 Hz, not 9"),
        ((samples * 1j, RATE), DTypeError, "complex128, which is no sound"),
        (([np.nan], RATE), InvalidSpecError, "is nan"),
        (("no.wav",), FileNotFoundError, "no.wav"),
    ):
        with pytest.raises(error, match=words):
            gp.Audio(*given)
    with pytest.raises(InvalidSpecError, match="beyond -1 to 1"):
        gp.Audio([3.0], RATE, normalize=False)
    with pytest.raises(DTypeError, match="int64, which has no full scale"):
        gp.Audio([3], RATE, normalize=False)


def test_interleaved_channels_are_parted(rng: np.random.Generator) -> None:
    samples = rng.integers(-9, 9, (50, 3)).astype(np.int16)
    sound = from_pcm(samples.ravel(), RATE, channels=3)
    assert sound.channels == 3 and len(sound) == 50
    np.testing.assert_array_equal(sound.to_numpy() * 2**15, samples.T)
    np.testing.assert_array_equal(from_pcm(np.ascontiguousarray(samples.T), RATE).to_numpy(), sound.to_numpy())
    with pytest.raises(ShapeError, match="7 samples are not whole frames of 2 channels"):
        from_pcm(np.zeros(7, np.int16), RATE, 2)


def test_parts_are_views_by_samples(rng: np.random.Generator) -> None:
    samples = rng.standard_normal((2, 900)).astype(np.float32)
    sound = sound_of(samples)
    assert sound.duration == 900 / RATE
    for key in (slice(None), slice(10, 200), slice(-5, None), slice(None, None, -1), slice(800, 5000), slice(7, 7)):
        np.testing.assert_array_equal(sound[key].to_numpy(), samples[:, key])
    for key in (slice(None, None, 2), 3):
        with pytest.raises(InvalidSpecError, match="slices of samples"):
            sound[key]  # type: ignore[index]


def test_mono_is_the_mean(rng: np.random.Generator) -> None:
    samples = rng.standard_normal((4, 1000)).astype(np.float32)
    np.testing.assert_allclose(sound_of(samples).to_mono().to_numpy(), samples.astype(np.float64).mean(0), atol=1e-6)
    one = sound_of(samples[0])
    assert one.to_mono() is one


def test_normalize(rng: np.random.Generator) -> None:
    samples = 0.1 * rng.standard_normal((2, 3000)).astype(np.float32)
    assert np.abs(sound_of(samples).normalize().to_numpy()).max() == pytest.approx(1, abs=1e-6)
    rms = np.sqrt(np.mean(sound_of(samples).normalize("rms", -12).to_numpy().astype(np.float64) ** 2))
    assert 20 * math.log10(rms) == pytest.approx(-12, abs=1e-4)
    silence = sound_of(np.zeros(10))
    assert silence.normalize() is silence and len(sound_of(np.zeros(0)).normalize("rms")) == 0
    loud = sound_of(samples)
    kept = loud.data
    assert (
        loud.normalize() is loud and loud.data is kept and np.abs(kept.to_numpy()).max() == pytest.approx(1, abs=1e-6)
    )
    with pytest.raises(InvalidSpecError, match="not finite"):
        sound_of(np.array([1, np.nan])).normalize()
    with pytest.raises(InvalidSpecError, match="mode is 'loud'"):
        silence.normalize("loud")  # type: ignore[arg-type]


def test_resample_keeps_a_tone_and_its_length_in_seconds() -> None:
    tone = np.sin(2 * np.pi * 440 * np.arange(2 * RATE) / RATE)
    twice = sound_of(np.stack([tone, -tone])).resample(12000)
    assert (twice.sample_rate, twice.channels, twice.duration) == (12000, 2, 2.0)
    wanted = np.sin(2 * np.pi * 440 * np.arange(24000) / 12000)
    np.testing.assert_allclose(twice.to_numpy()[0, 500:-500], wanted[500:-500], atol=1e-3)


def test_numpy_takes_it(rng: np.random.Generator) -> None:
    samples = rng.standard_normal(50).astype(np.float32)
    sound = sound_of(samples)
    np.testing.assert_array_equal(np.asarray(sound), samples)
    assert np.asarray(sound, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        sound.__array__(copy=False)


def test_wrong_sounds_are_refused() -> None:
    with pytest.raises(DTypeError, match="expected a GPUArray, got a ndarray"):
        AudioBuffer(np.zeros(3), RATE)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="int16"):
        AudioBuffer(gp.zeros(3, "int16"), RATE)
    with pytest.raises(ShapeError, match=r"\(2, 2, 2\)"):
        AudioBuffer(gp.zeros((2, 2, 2)), RATE)
    with pytest.raises(DTypeError, match="int64"):
        from_pcm(np.zeros(3, np.int64), RATE)
    for rate in (0, -1, 22050.5, True, float("nan"), float("inf"), "8000"):
        with pytest.raises(InvalidSpecError, match="sample_rate"):
            AudioBuffer(gp.zeros(3), rate)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="channels is 2"):
        AudioBuffer(gp.zeros(3), RATE, 2)


@pytest.mark.parametrize("count", [1, 7, 99, 100, 101, 4567])
def test_the_envelope_is_the_bounds_of_every_part(rng: np.random.Generator, count: int) -> None:
    samples = rng.standard_normal((2, count)).astype(np.float32)
    found = picture.envelope(sound_of(samples), 100)
    width = -(-count // 100)
    parts = [samples[:, at : at + width] for at in range(0, count, width)]
    np.testing.assert_array_equal(found[0, : len(parts)], [part.min() for part in parts])
    np.testing.assert_array_equal(found[1, : len(parts)], [part.max() for part in parts])
    assert (found[:, len(parts) :] == 0).all()


def test_the_spectrogram_shows_a_tone_where_it_is() -> None:
    time = np.arange(4 * RATE) / RATE
    for hertz in (200, 1000, 3000):
        tone = np.sin(2 * np.pi * hertz * time) * (time < 2)
        levels = picture.spectrogram(sound_of(tone), 200, 64)
        edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), 65) / 2595) - 1)
        row = 63 - int(np.searchsorted(edges, hertz) - 1)
        assert abs(int(levels[:, 50].argmax()) - row) <= 1 and levels[:, 50].max() >= 250
        assert levels[:, 120:].max() == 0


@pytest.mark.parametrize(
    "samples", [np.zeros(0), np.zeros(1), np.full(2000, np.nan), np.zeros((3, 500)), np.ones(10**6)]
)
def test_every_sound_has_a_bounded_picture(samples: np.ndarray) -> None:
    html = picture.html(sound_of(samples), "a <note>")
    assert len(html) < 70_000 and "a &lt;note&gt;" in html and "<script" not in html


def test_repr_tells_the_facts() -> None:
    assert repr(sound_of(np.zeros((2, 12000)))) == "AudioBuffer(1.500 s, 8000 Hz, stereo, 12000 samples)"
