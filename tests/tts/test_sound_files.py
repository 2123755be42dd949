"""WAV files, other rates, sounds put together; voices and how they are mixed."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import pygpukit as gp
from pygpukit.tts.voices import ROWS, WIDTH, Voices

tts = gp.tts
RNG = np.random.default_rng()


def test_wav_there_and_back(tmp_path: Path) -> None:
    samples = RNG.uniform(-1, 1, 1001).astype(np.float32)
    for given in (samples, gp.from_numpy(samples)):
        tts.to_wav(given, tmp_path / "a.wav", 16000)
        found, rate = tts.from_wav(tmp_path / "a.wav")
        assert rate == 16000 and found.dtype == np.float32
        np.testing.assert_allclose(found, samples, atol=1e-4)
    tts.to_wav(samples * 3, tmp_path / "b.wav")
    loud, _ = tts.from_wav(tmp_path / "b.wav")
    np.testing.assert_allclose(loud, samples / np.abs(samples).max(), atol=1e-4)
    tts.to_wav(samples * 3, tmp_path / "b.wav", normalize=False)
    np.testing.assert_allclose(tts.from_wav(tmp_path / "b.wav")[0], np.clip(samples * 3, -1, 1), atol=1e-4)
    tts.to_wav(samples[:0], tmp_path / "c.wav")
    assert tts.from_wav(tmp_path / "c.wav")[0].shape == (0,)


@pytest.mark.parametrize(
    ("width", "values"), [(1, [0, 128, 255]), (2, [-(2**15), 0, 2**14]), (4, [-(2**31), 0, 2**30])]
)
def test_wav_of_other_widths_and_channels(tmp_path: Path, width: int, values: list[int]) -> None:
    with wave.open(str(tmp_path / "w.wav"), "wb") as file:
        file.setparams((3, width, 8000, 0, "NONE", ""))
        file.writeframes(np.array(values, {1: "u1", 2: "<i2", 4: "<i4"}[width]).tobytes())
    found, rate = tts.from_wav(tmp_path / "w.wav")
    assert found.shape == (3, 1) and rate == 8000
    np.testing.assert_allclose(found[:, 0], [-1, 0, 127 / 128 if width == 1 else 0.5])


def test_bad_sound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(b"RIFF and nothing")
    with pytest.raises(gp.InvalidSpecError, match=r"x\.wav"):
        tts.from_wav(tmp_path / "x.wav")
    for bad, said in ((np.full(3, np.nan), "finite"), (np.zeros((2, 2)), "one channel"), (np.zeros(3, int), "floats")):
        with pytest.raises(gp.InvalidSpecError, match=said):
            tts.to_wav(bad, tmp_path / "y.wav")
    assert not (tmp_path / "y.wav").exists()
    with pytest.raises(gp.InvalidSpecError, match="target_sr is 0"):
        tts.resample_audio(np.zeros(3, np.float32), 8000, 0)
    with pytest.raises(gp.InvalidSpecError, match="gap_samples is -1"):
        tts.concatenate_audio([], -1)


@pytest.mark.parametrize(("source", "target"), [(24000, 16000), (16000, 24000), (22050, 16000), (8000, 8000)])
def test_resampled_sine_is_the_sine_at_the_other_rate(source: int, target: int) -> None:
    sine = [np.sin(2 * np.pi * 440.5 * np.arange(rate) / rate) for rate in (source, target)]
    found = tts.resample_audio(sine[0].astype(np.float32), source, target)
    assert found.shape == (target,)
    np.testing.assert_allclose(found[200:-200], sine[1][200:-200], atol=2e-4)
    hiss = np.sin(2 * np.pi * 0.49 * np.arange(source))
    if target < source:  # beyond what the target carries
        assert np.abs(tts.resample_audio(hiss, source, target)[200:-200]).max() < 1e-3


def test_sounds_one_after_the_other() -> None:
    joined = tts.concatenate_audio([np.ones(2, np.float32), gp.ones(1)], 3)
    assert joined.tolist() == [1, 1, 0, 0, 0, 1]
    assert tts.concatenate_audio([]).shape == (0,)


def test_voices_in_every_form(tmp_path: Path) -> None:
    tables = {name: RNG.normal(size=(ROWS, 1, WIDTH)).astype(np.float32) for name in "abcd"}
    (tmp_path / "voices").mkdir()
    np.savez(tmp_path / "voices.npz", a=tables["a"])
    tables["b"].tofile(tmp_path / "b.bin")
    np.save(tmp_path / "voices" / "c.npy", tables["c"])
    save_file({"x": tables["d"]}, tmp_path / "voices" / "d.safetensors")
    assert tts.list_available_voices(tmp_path) == ["a", "b", "c", "d"]
    voices = Voices(tmp_path)
    for name, table in tables.items():
        assert np.array_equal(voices.table(name), table[:, 0])
    assert np.array_equal(tts.load_voice_embedding(tmp_path / "b.bin").to_numpy(), tables["b"])
    mixed = 0.75 * tables["a"][:, 0] + 0.25 * tables["b"][:, 0]
    for form in ("a:3+b", {"a": 0.3, "b": 0.1}, "a+a+b+a"):
        np.testing.assert_allclose(voices.table(form), mixed, atol=1e-6)
    assert voices.default == "a" and Voices(tmp_path / "nowhere").default is None


def test_bad_voices_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "voices.npz", a=np.zeros((3, 256), np.float32), b=np.full((ROWS, 1, WIDTH), np.nan, np.float32))
    voices = Voices(tmp_path)
    with pytest.raises(gp.InvalidSpecError, match=r"there is no voice 'x'; .* are a, b"):
        voices.table("x")
    for name in "ab":
        with pytest.raises(gp.ModelFileError, match=f"the voice '{name}'"):
            voices.table(name)
    for form in ("a:0", "a:-1+b", "a:many", "a:inf"):
        with pytest.raises(gp.InvalidSpecError, match="share"):
            voices.table(form)
    (tmp_path / "v.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(gp.ModelFileError, match="pickle"):
        tts.load_voice_embedding(tmp_path / "v.pt")
    (tmp_path / "v.npy").write_bytes(b"nothing")
    with pytest.raises(gp.ModelFileError, match=r"v\.npy"):
        tts.load_voice_embedding(tmp_path / "v.npy")
