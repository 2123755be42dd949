"""Sound files: written and read again, with soundfile and without; damaged ones are refused in words."""

from __future__ import annotations

import random
import struct
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError

read, write, from_pcm = gp.ops.audio.read, gp.ops.audio.write, gp.ops.audio.from_pcm
RATE = 11025


@pytest.fixture(params=["soundfile", "wave"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "wave":
        monkeypatch.setitem(sys.modules, "soundfile", None)
    else:
        pytest.importorskip("soundfile")
    return request.param


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize(("subtype", "bits"), [("PCM_U8", 8), ("PCM_16", 16), ("PCM_24", 24), ("PCM_32", 32)])
def test_what_is_written_is_read_again(tmp_path: Path, reader: str, subtype: str, bits: int, channels: int) -> None:
    samples = np.random.default_rng().uniform(-1, 1, (channels, 999)).astype(np.float32)
    write(tmp_path / "a.wav", from_pcm(samples, RATE), subtype)
    sound = read(tmp_path / "a.wav")
    assert (sound.sample_rate, sound.channels, len(sound)) == (RATE, channels, 999)
    np.testing.assert_allclose(sound.to_numpy().reshape(channels, -1), samples, atol=1.01 * 2.0 ** -(bits - 1))


def test_both_readers_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("soundfile")
    for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32"):
        write(tmp_path / "a.wav", from_pcm(np.random.default_rng().uniform(-1, 1, 500), RATE), subtype)
        one = read(tmp_path / "a.wav").to_numpy()
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "soundfile", None)
            np.testing.assert_array_equal(read(tmp_path / "a.wav").to_numpy(), one)


def test_what_is_too_loud_is_clipped(tmp_path: Path, reader: str) -> None:
    write(tmp_path / "a.wav", from_pcm(np.array([2.0, -2.0, 0.5]), RATE))
    np.testing.assert_allclose(read(tmp_path / "a.wav").to_numpy(), [1, -1, 0.5], atol=1e-4)


def test_other_kinds_need_soundfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    sound = from_pcm(np.zeros(10), RATE)
    for name, subtype in (("a.flac", "PCM_16"), ("a.wav", "FLOAT")):
        with pytest.raises(InvalidSpecError, match=r"needs soundfile.*\[audio\]"):
            write(tmp_path / name, sound, subtype)
    (tmp_path / "a.ogg").write_bytes(b"OggS" + bytes(100))
    with pytest.raises(InvalidSpecError, match=r"no WAV file.*\[audio\]"):
        read(tmp_path / "a.ogg")


def test_flac_and_float_with_soundfile(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    samples = np.random.default_rng().uniform(-1, 1, 300).astype(np.float32)
    write(tmp_path / "a.wav", from_pcm(samples, RATE), "FLOAT")
    np.testing.assert_array_equal(read(tmp_path / "a.wav").to_numpy(), samples)
    write(tmp_path / "a.flac", from_pcm(samples, RATE))
    np.testing.assert_allclose(read(tmp_path / "a.flac").to_numpy(), samples, atol=1e-4)
    with pytest.raises(InvalidSpecError, match="was not written"):
        write(tmp_path / "a.nothing", from_pcm(samples, RATE))


@pytest.mark.parametrize("channels", [1, 2])
def test_a_file_whose_samples_are_not_finite_is_named(channels: int, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    samples = np.zeros((9, channels), np.float32)
    samples[4, -1] = np.nan
    soundfile.write(tmp_path / "spoilt.wav", samples, 16000, subtype="FLOAT")
    with pytest.raises(InvalidSpecError, match=r"spoilt\.wav' is damaged: .*is nan"):
        gp.ops.audio.read(tmp_path / "spoilt.wav")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read(tmp_path / "a.wav")
    with pytest.raises(InvalidSpecError, match="not an AudioBuffer"):
        write(tmp_path / "a.wav", np.zeros(3))  # type: ignore[arg-type]


def test_damaged_files_are_read_or_refused_in_words(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(bytes(range(256)) * 4)
    whole = path.read_bytes()
    rng = random.Random()
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(60)] = rng.randrange(256)
        path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        try:
            sound = read(path)
        except InvalidSpecError as error:
            assert "a.wav" in str(error)
        else:
            assert sound.to_numpy().size <= len(whole)


def test_a_length_that_a_file_only_claims_takes_no_memory(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    sound = from_pcm(np.arange(-3000, 3000, dtype=np.int16), 8000)
    path = tmp_path / "a.flac"
    write(path, sound)
    data = bytearray(path.read_bytes())
    (field,) = struct.unpack_from(">Q", data, 18)  # rate, channels, bits, and in the last 36 bits the frames
    assert field % (1 << 36) == 6000
    struct.pack_into(">Q", data, 18, field | (1 << 36) - 1)
    path.write_bytes(data)
    with pytest.raises(InvalidSpecError, match=r"a\.flac"):  # not MemoryError: 256 GiB of samples
        read(path)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_long_file_is_read_in_blocks(channels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("soundfile")
    for frames in (0, 99, 100, 200, 250):
        sound = from_pcm(np.arange(frames * channels, dtype=np.int16), 8000, channels)
        write(tmp_path / "a.wav", sound)
        monkeypatch.setattr("pygpukit.ops.audio.files._BLOCK", 100)
        assert np.array_equal(read(tmp_path / "a.wav").to_numpy(), sound.to_numpy())
