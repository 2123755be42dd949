"""The player's Python side: what it sends to a page, what it takes of one, streams, and what a saved notebook keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hostile import VALUES

pytest.importorskip("anywidget")

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.jupyter import PlayerWidget
from pygpukit.jupyter.widgets import player
from pygpukit.jupyter.widgets.samples import Samples

from_pcm = gp.ops.audio.from_pcm
RATE = 16000


class Page:
    """Stands for a page that shows a player, and keeps its samples by number."""

    def __init__(self, widget: PlayerWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget = widget
        self.got: list[dict[str, Any]] = []
        self.samples: dict[int, np.ndarray] = {}
        self.sizes: list[int] = []
        monkeypatch.setattr(widget, "send", self.receive)
        self.say({"type": "view"})

    def receive(self, content: dict[str, Any], buffers: Any = ()) -> None:
        self.got.append(content)
        if content["type"] == "chunk" and buffers:
            channels = self.of("sound")[-1]["channels"]
            self.samples[content["at"]] = np.frombuffer(buffers[0], np.float32).reshape(channels, -1)
            self.sizes.append(len(buffers[0]))

    def say(self, content: Any) -> None:
        self.widget._handle_custom_msg(content, [])

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.got if one["type"] == kind]

    def whole(self) -> np.ndarray:
        """All samples, asked for where they are missing, as the page does."""
        parts: list[np.ndarray] = []
        at = self.of("sound")[-1]["first"]
        frames = self.got_frames()
        while at < frames:
            if at not in self.samples:
                self.say({"type": "want", "at": at})
            parts.append(self.samples[at])
            at += parts[-1].shape[1]
        return np.concatenate(parts, axis=1)

    def got_frames(self) -> int:
        return [one["frames"] for one in self.got if one["type"] in ("sound", "chunk")][-1]


@pytest.mark.parametrize("channels", [1, 2])
def test_a_page_gets_every_sample_as_it_is(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.random.default_rng().uniform(-1, 1, (channels, 150_001)).astype(np.float32)
    page = Page(PlayerWidget(from_pcm(samples, RATE)), monkeypatch)
    state = page.of("sound")[0]
    assert (state["rate"], state["channels"], state["frames"], state["ended"]) == (RATE, channels, 150_001, True)
    assert 0 in page.samples  # with the state: playing begins at once
    np.testing.assert_array_equal(page.whole(), samples)
    assert max(page.sizes) <= player.CHUNK_BYTES
    (look,) = page.of("look")
    assert look["frames"] == 150_001


def test_what_cannot_be_heard_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.array([0.5, np.nan, 2.0, np.inf], np.float32)
    page = Page(PlayerWidget(gp.ops.audio.AudioBuffer(gp.asarray(samples), RATE)), monkeypatch)
    note = page.of("sound")[0]["note"]
    assert "2 samples are not finite" in note and "The peak is 2: what is beyond 1 is clipped" in note
    assert page.whole().tolist() == [[0.5, 0.0, 2.0, 0.0]]
    page = Page(PlayerWidget(from_pcm(np.zeros((4, 10), np.float32), RATE)), monkeypatch)
    assert "Of 4 channels the first two are heard" in page.of("sound")[0]["note"] and page.whole().shape == (2, 10)
    page = Page(PlayerWidget(from_pcm(np.zeros(0, np.float32), RATE)), monkeypatch)
    assert page.of("sound")[0]["frames"] == 0 and not page.of("look")


def test_a_stream_comes_while_it_is_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = PlayerWidget(sample_rate=RATE)
    rng = np.random.default_rng()
    parts = [rng.uniform(-1, 1, rng.integers(1, 3000)).astype(np.float32) for _ in range(60)]
    widget.push(parts[0])  # before anybody looks
    page = Page(widget, monkeypatch)
    for part in parts[1:]:
        widget.push(part)
    widget.end()
    assert page.of("chunk")[-1]["ended"]
    pushed = np.concatenate([page.samples[at] for at in sorted(page.samples)], axis=1)
    np.testing.assert_array_equal(pushed[0], np.concatenate(parts))  # nothing had to be asked for
    np.testing.assert_array_equal(widget.sound.to_numpy(), np.concatenate(parts))
    assert page.of("look")[-1]["frames"] == sum(map(len, parts))
    with pytest.raises(InvalidSpecError, match="has ended"):
        widget.push(parts[0])


def test_a_stream_faster_than_the_server_lets_through_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = PlayerWidget(sample_rate=RATE, channels=2)
    page = Page(widget, monkeypatch)
    samples = np.random.default_rng().uniform(-1, 1, (2, 2_000_000)).astype(np.float32)
    for at in range(0, 2_000_000, 50_000):
        widget.push(samples[:, at : at + 50_000])
    assert sum(page.sizes) <= player.PUSHED_BURST + 10 * player.PUSHED_BYTES_PER_S
    np.testing.assert_array_equal(page.whole(), samples)


def test_a_long_stream_forgets_its_beginning() -> None:
    samples = Samples(RATE, 1, kept_bytes=4 * 1000)
    for at in range(0, 100_000, 170):
        samples.append(np.arange(at, at + 170, dtype=np.float32)[None])
    assert samples.first > 0 and samples.frames - samples.first >= 1000
    kept = samples.read(samples.first, samples.frames)
    np.testing.assert_array_equal(kept[0], np.arange(samples.first, samples.frames))
    assert samples.read(samples.first - 1, 10).shape == (1, 0) and samples.read(samples.frames, 10).shape == (1, 0)


def test_wrong_sounds_are_refused() -> None:
    for arguments in ({}, {"sample_rate": 0}, {"sample_rate": RATE, "channels": 0}):
        with pytest.raises(InvalidSpecError, match="a stream needs its sample_rate"):
            PlayerWidget(**arguments)
    with pytest.raises(InvalidSpecError, match="sound is ndarray, whose rate is not known"):
        PlayerWidget(np.zeros(3))
    with pytest.raises(InvalidSpecError, match="has 16000 Hz, not 8000"):
        PlayerWidget(from_pcm(np.zeros(3), RATE), 8000)
    stream = PlayerWidget(sample_rate=RATE)
    with pytest.raises(ShapeError, match="has 2 channels, the player 1"):
        stream.push(np.zeros((2, 10), np.float32))
    with pytest.raises(InvalidSpecError, match="has 8000 Hz, the player 16000"):
        stream.push(from_pcm(np.zeros(10, np.float32), 8000))


def test_samples_and_their_rate_are_a_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.random.default_rng(1).uniform(-1, 1, (500, 2)).astype(np.float32)
    for widget in (PlayerWidget(samples, 44100), PlayerWidget(samples.ravel(), sample_rate=44100, channels=2)):
        assert repr(widget) == "PlayerWidget(0.011 s, 44100 Hz, 2 channels)"
        np.testing.assert_array_equal(Page(widget, monkeypatch).whole(), samples.T)
    stream = PlayerWidget(sample_rate=RATE, channels=2)
    for block in (samples[:300], samples.T[:, 300:499], samples[499:], samples[:2], samples.T[:, :2]):
        stream.push(block)
    assert stream.sound.to_numpy().shape == (2, 504)
    np.testing.assert_array_equal(stream.sound.to_numpy()[:, :500], samples.T)


def test_foreign_messages_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(PlayerWidget(from_pcm(np.zeros(10, np.float32), RATE)), monkeypatch)
    monkeypatch.setattr(page.widget._allowance, "take", lambda: True)
    for value in VALUES:
        for content in (
            value,
            {"type": value},
            {"type": "want", "at": value},
            {"type": "want", "at": value, "x": value},
        ):
            page.say(content)
    assert page.widget.dropped > 0


def test_a_sound_shows_as_one_player_with_a_picture_for_pages_without_a_kernel() -> None:
    sound = gp.ops.audio.AudioBuffer(gp.ones(1000), RATE)
    data, _ = sound._repr_mimebundle_()
    assert data["text/plain"] == repr(sound) and data["text/html"].startswith('<div class="gk-sound"')
    again, _ = sound._repr_mimebundle_()
    view = "application/vnd.jupyter.widget-view+json"
    assert data[view] == again[view] and again["text/html"] == data["text/html"]
    assert repr(PlayerWidget(sample_rate=RATE)) == "PlayerWidget(0.000 s so far, 16000 Hz, 1 channel)"
