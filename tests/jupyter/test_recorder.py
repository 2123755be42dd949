"""The recorder's and the moving spectrogram's Python side: blocks of a microphone, columns, foreign messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hostile import VALUES

pytest.importorskip("anywidget")

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.jupyter import RecorderWidget, SpectrogramWidget
from pygpukit.jupyter.widgets import spectrogram

RATE = 16000
BLOCK = RATE // 20


class Page:
    """Stands for a page that shows a recorder or a spectrogram."""

    def __init__(self, widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget = widget
        self.got: list[tuple[dict[str, Any], list[bytes]]] = []
        monkeypatch.setattr(widget, "send", lambda content, buffers=(): self.got.append((content, list(buffers))))

    def say(self, content: Any, *buffers: Any) -> None:
        self.widget._handle_custom_msg(content, list(buffers))

    def record(self, samples: np.ndarray) -> None:
        for at in range(0, len(samples), BLOCK):
            self.say({"type": "samples"}, memoryview(samples[at : at + BLOCK].tobytes()))


def noise(count: int) -> np.ndarray:
    return np.random.default_rng().uniform(-1, 1, count).astype(np.float32)


def test_what_is_recorded_is_on_the_device_sample_for_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = RecorderWidget(RATE, seconds=2)
    page = Page(recorder, monkeypatch)
    blocks: list[np.ndarray] = []
    recorder.on_block(lambda block: blocks.append(block.to_numpy()))
    page.say({"type": "recording"})
    samples = noise(3 * RATE)  # sixty blocks: more than fingers press, and none is dropped
    page.record(samples)
    page.say({"type": "stopped"})
    np.testing.assert_array_equal(recorder.sound.to_numpy(), samples[-2 * RATE :])
    np.testing.assert_array_equal(np.concatenate(blocks), samples)
    assert (recorder.dropped, recorder.state, recorder.sound.sample_rate) == (0, "stopped", RATE)
    page.say({"type": "view"})
    assert page.got[-2][0] == {"type": "state", "rate": RATE, "kept": 2 * RATE}
    assert page.got[-1][0]["type"] == "still" and "2.00 s, which are not saved" in str(page.got[-1][0]["data"])
    recorder.clear()
    assert len(recorder.sound) == 0


def test_a_microphone_that_is_missing_is_known_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = RecorderWidget()
    Page(recorder, monkeypatch).say({"type": "refused", "text": "There is no microphone."})
    assert (recorder.state, recorder.reason) == ("refused", "There is no microphone.")
    recorder.stop()


def test_foreign_messages_record_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = RecorderWidget()
    page = Page(recorder, monkeypatch)
    monkeypatch.setattr(recorder._allowance, "take", lambda: True)
    for value in VALUES:
        for content in (value, {"type": value}, {"type": "refused", "text": value}, {"type": "samples", "x": value}):
            page.say(content)
    for data in (b"", b"abc", bytes((1 << 20) + 4)):
        page.say({"type": "samples"}, memoryview(data))
    page.say({"type": "samples"}, memoryview(b"abcd"), memoryview(b"abcd"))
    assert len(recorder.sound) == 0 and recorder.dropped > 0
    page.record(np.array([np.nan, np.inf, 0.5], np.float32))
    assert recorder.sound.to_numpy().tolist() == [0, 0, 0.5]


def test_wrong_settings_are_refused() -> None:
    for arguments in ({"sample_rate": 100}, {"sample_rate": 16000.5}, {"seconds": 0}):
        with pytest.raises(InvalidSpecError, match="browsers record at"):
            RecorderWidget(**arguments)
    for arguments in ({}, {"sample_rate": RATE, "hop_length": 0}):
        with pytest.raises(InvalidSpecError, match="SpectrogramWidget"):
            SpectrogramWidget(**arguments)


def test_columns_are_the_same_whatever_blocks_come(monkeypatch: pytest.MonkeyPatch) -> None:
    time = np.arange(2 * RATE) / RATE
    tone = np.sin(2 * np.pi * (500 + 1500 * time) * time).astype(np.float32)
    found = []
    for size in (RATE * 2, 800, 37):
        moving = SpectrogramWidget(sample_rate=RATE)
        page = Page(moving, monkeypatch)
        for at in range(0, len(tone), size):
            moving.push(tone[at : at + size])
        columns = [np.frombuffer(buffers[0], np.uint8) for content, buffers in page.got if content["type"] == "columns"]
        found.append(np.concatenate(columns).reshape(-1, spectrogram.ROWS))
        assert moving.columns == len(found[-1]) == (len(tone) - spectrogram.N_FFT) // 256 + 1
    for other in found[1:]:
        assert np.abs(other.astype(int) - found[0]).max() <= 1  # a float32 FFT may round otherwise
    assert found[0].argmax(axis=1)[5] > found[0].argmax(axis=1)[-5]  # it rises


def test_a_spectrogram_refuses_a_sound_of_another_rate() -> None:
    moving = SpectrogramWidget(sample_rate=RATE)
    with pytest.raises(InvalidSpecError, match=r"push: the sound has 8000 Hz, the \w+ 16000; resample"):
        moving.push(gp.ops.audio.from_pcm(noise(8000), 8000))
    assert moving.columns == 0


def test_a_full_scale_tone_is_the_top_of_the_scale() -> None:
    moving = SpectrogramWidget(sample_rate=RATE)
    moving.push(np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE).astype(np.float32))  # amid a bin of the transform
    assert (moving._levels[:, -20:].max(axis=0) == 255).all()
    quiet = SpectrogramWidget(sample_rate=RATE)
    quiet.push((0.01 * np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)).astype(np.float32))
    assert np.abs(quiet._levels[:, -20:].max(axis=0).astype(int) - 255 * (1 - 40 / 80)).max() <= 1  # 40 dB below


def test_a_page_that_begins_to_look_gets_the_last_seconds_and_a_recorder_feeds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = RecorderWidget(RATE)
    moving = SpectrogramWidget(recorder)
    Page(recorder, monkeypatch).record(noise(20 * RATE))
    assert moving.columns == (20 * RATE - spectrogram.N_FFT) // 256 + 1
    page = Page(moving, monkeypatch)
    page.say({"type": "view"})
    (state, colours), (columns, levels), (still, _) = page.got
    assert still["data"] == moving.fallback() and still["model"] == moving.model_id
    assert state["rate"] == RATE and len(colours[0]) == 768
    assert columns["end"] == moving.columns and len(levels[0]) == spectrogram.ROWS * spectrogram.COLUMNS
    html = moving.fallback()["text/html"]
    assert html.startswith('<div class="gk-sound"') and "the last 7.68 s" in html and len(html) < 70_000
    moving.push(gp.ops.audio.from_pcm(np.zeros((2, 2000), np.int16), RATE))
    assert page.got[-1][0]["end"] == moving.columns
    page.say({"type": "other"})
    assert moving.dropped == 1
