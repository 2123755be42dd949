"""Sound in pieces: the ring, the chunks of a stream, and voice activity in noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")

audio = gp.ops.audio
rng = np.random.default_rng(3)


def samples(count: int) -> np.ndarray:
    return rng.standard_normal(count).astype(np.float32)


def test_the_ring_keeps_the_last_samples_whatever_the_pieces() -> None:
    for capacity in (1, 7, 64):
        ring, kept = audio.AudioRingBuffer(capacity, 100), np.zeros(0, np.float32)
        for count in rng.integers(0, 90, 40):
            new = samples(count)
            given: Any = new if count % 2 else gp.from_numpy(np.repeat(new, 2))[::2]
            assert ring.write(given) == min(count, capacity)
            kept = np.concatenate((kept, new))[-capacity:]
            assert ring.samples_available == len(kept) and ring.duration_available == len(kept) / 100
            start = int(rng.integers(0, len(kept) + 1))
            assert np.array_equal(ring.read(len(kept) - start, start).to_numpy(), kept[start:])
        ring.clear()
        assert ring.samples_available == 0 and ring.read(0).shape == (0,)


def test_what_is_read_stays_as_it_was() -> None:
    ring = audio.AudioRingBuffer(4)
    ring.write(np.arange(4, dtype=np.float32))
    found = ring.read(4)
    ring.write(np.ones(4, np.float32))
    assert np.array_equal(found.to_numpy(), np.arange(4))


@pytest.mark.parametrize("hop", [None, 3, 10, 17])
def test_chunks_of_a_stream_are_the_frames_of_the_whole(hop: int | None) -> None:
    y = samples(500)
    stream, found, at = audio.AudioStream(10, hop, 100, buffer_duration=1.0), [], 0
    while at < len(y) or stream.has_chunk():
        at += stream.push(y[at : at + int(rng.integers(0, 60))])
        for _ in range(stream.chunks_available):
            found.append(stream.pop_chunk(apply_window=False).to_numpy())
    step = hop or 5
    wanted = np.lib.stride_tricks.sliding_window_view(y, 10)[::step]
    assert len(found) >= len(wanted) - 1 and np.array_equal(np.stack(found), wanted[: len(found)])


def test_a_full_stream_takes_what_fits_and_windows_by_hann() -> None:
    stream = audio.AudioStream(8, 8, 16, buffer_duration=1.0)
    assert stream.push(np.ones(20, np.float32)) == 16 and stream.chunks_available == 2
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(8) / 8)
    assert np.allclose(stream.pop_chunk().to_numpy(), hann, atol=1e-7)
    assert stream.push(np.ones(20, np.float32)) == 8
    stream.reset()
    assert not stream.has_chunk()
    with pytest.raises(ValueError, match="0 samples are there"):
        stream.pop_chunk()


def test_frames_of_a_stream_have_the_bits_of_stft() -> None:
    y, stream, frames = samples(3000), audio.AudioStream(256, 100, 3000, buffer_duration=1.0), []
    for start in range(0, 3000, 333):
        stream.push(y[start : start + 333])
        while stream.has_chunk():
            frames.append(audio.stft(stream.pop_chunk(apply_window=False), n_fft=256, center=False).to_numpy())
    whole = audio.stft(gp.from_numpy(y), n_fft=256, hop_length=100, center=False).to_numpy()
    assert np.array_equal(np.concatenate(frames, -1), whole)


@pytest.mark.parametrize("snr_db", [20, 10])
def test_voice_activity_finds_speech_in_noise(snr_db: float) -> None:
    sr, truth = 16000, [(1.0, 2.2), (3.5, 4.0), (5.2, 6.5)]
    seconds = np.arange(8 * sr) / sr
    pitch = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 3 * seconds)) / sr
    voice = sum(np.sin(k * pitch) * np.exp(-((k * 120 - 700) ** 2) / 4e5) for k in range(1, 20))
    speech = np.zeros(len(seconds))
    for start, end in truth:
        speech[int(start * sr) : int(end * sr)] = voice[int(start * sr) : int(end * sr)]
    noise = rng.standard_normal(len(seconds)) * np.std(voice) * 10 ** (-snr_db / 20)
    y = gp.from_numpy((0.1 * (speech + noise)).astype(np.float32))
    vad = audio.VAD(sr)
    found = vad.detect(y)
    assert len(found) == len(truth)
    for segment, (start, end) in zip(found, truth, strict=True):
        assert abs(segment.start_time - start) <= 0.03 and -0.03 <= segment.end_time - end <= 0.15
        assert segment.start_sample == round(segment.start_time * sr)
    assert vad.detect(y[None]) == found and found == vad.detect(y)
    assert vad.detect(gp.from_numpy(noise.astype(np.float32))) == []
    assert vad.detect(y[:100]) == [] and audio.VAD(sr, energy_threshold=1e9).detect(y) == []
    energy, rate = vad.get_frame_features(y)
    assert (vad.frame_size, vad.hop_size) == (320, 160) and energy.shape == rate.shape == (799,)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="capacity"):
        audio.AudioRingBuffer(0)
    ring = audio.AudioRingBuffer(4)
    with pytest.raises(ShapeError, match="1-D"):
        ring.write(np.zeros((2, 2), np.float32))
    with pytest.raises(DTypeError, match="int16"):
        ring.write(np.zeros(2, np.int16))
    with pytest.raises(ValueError, match="0 are there"):
        ring.read(1)
    with pytest.raises(ValueError, match="less than a chunk"):
        audio.AudioStream(480, sample_rate=100, buffer_duration=1)
    with pytest.raises(ValueError, match="nothing was pushed"):
        audio.StreamResampler(1, 2).flush()
    with pytest.raises(ValueError, match="frame_ms"):
        audio.VAD(16000, frame_ms=0)
    with pytest.raises(ValueError, match="NaN"):
        audio.VAD().detect(gp.from_numpy(np.full(999, np.nan, np.float32)))
