"""/v1/audio by the openai client: played models that hear and speak, files that are none, bounds."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from llm.test_serving import MESSAGES, PATIENCE_S, PlayedModel

from pygpukit import asr, tts
from pygpukit.asr.results import TranscriptionResult, TranscriptionSegment, Word
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.serving import sounds
from pygpukit.llm.serving.server import serve
from pygpukit.ops.audio.buffer import AudioBuffer, from_pcm
from pygpukit.ops.audio.files import read
from pygpukit.tts.result import SynthesisResult


class Ear:
    """Hears how long a sound is."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def transcribe(self, sound: AudioBuffer, **settings: Any) -> TranscriptionResult:
        self.asked.append(settings)
        if settings.get("initial_prompt") == "too long":
            raise InvalidSpecError("the prompt has too many tokens", "initial_prompt")
        seconds = len(sound) / sound.sample_rate
        words = [Word(" Hi", 0.0, 0.5, 0.9)] if settings["word_timestamps"] else []
        segments = [
            TranscriptionSegment(" Hi --> there.", 0.0, 1.25, [5, 6], words=words),
            TranscriptionSegment(" Bye.", 3661.5, 3662.0),
        ]
        return TranscriptionResult.of(segments, "en", seconds)


class Mouth:
    """Speaks a ramp."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def synthesize(self, text: str, voice: str = "a", speed: float = 1.0) -> SynthesisResult:
        if voice not in ("a", "b"):
            raise InvalidSpecError(f"there is no voice {voice!r}; there are a, b", "voice")
        self.asked.append((text, voice, speed))
        audio = from_pcm(np.linspace(-1, 1, 24000, dtype=np.float32), 24000)
        return SynthesisResult(audio, text, "", 1.0)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> tuple[Ear, Mouth]:
    ear, mouth = Ear(), Mouth()
    monkeypatch.setattr(asr, "load", lambda source, *, name, progress: ear)
    monkeypatch.setattr(tts, "load", lambda source, *, progress: mouth)
    return ear, mouth


@pytest.fixture
def client(played: tuple[Ear, Mouth]) -> Iterator[openai.OpenAI]:
    model: Any = PlayedModel()
    with (
        serve(model, port=0, models=["ear", "mouth"]) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as made,
    ):
        yield made


def wav(seconds: float = 0.5) -> bytes:
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(2 * round(16000 * seconds)))
    return target.getvalue()


def test_a_sound_is_heard(client: openai.OpenAI, played: tuple[Ear, Mouth]) -> None:
    hear = client.audio.transcriptions.create
    assert hear(model="ear", file=("a.wav", wav())).text == "Hi --> there. Bye."
    assert played[0].asked[-1] == {"word_timestamps": False}
    whole = hear(
        model="ear", file=wav(2.0), language="en", prompt="Names", temperature=0.2,
        response_format="verbose_json", timestamp_granularities=["word"],
    )  # fmt: skip
    assert whole.duration == 2.0 and whole.language == "en" and whole.segments is not None and whole.words is not None
    assert [segment.end for segment in whole.segments] == [1.25, 3662.0] and whole.words[0].word == "Hi"
    assert played[0].asked[-1] == {
        "word_timestamps": True, "language": "en", "initial_prompt": "Names", "temperature": 0.2,
    }  # fmt: skip
    assert hear(model="ear", file=wav(), response_format="text") == "Hi --> there. Bye.\n"
    assert hear(model="ear", file=wav(), response_format="srt") == (
        "1\n00:00:00,000 --> 00:00:01,250\nHi -> there.\n\n2\n01:01:01,500 --> 01:01:02,000\nBye.\n"
    )
    assert hear(model="ear", file=wav(), response_format="vtt").startswith("WEBVTT\n\n00:00:00.000 --> 00:00:01.250\n")


def test_a_text_is_spoken(client: openai.OpenAI, played: tuple[Ear, Mouth], tmp_path: Path) -> None:
    speak = client.audio.speech.create
    raw = speak(model="mouth", input="Hello", voice="b", response_format="pcm", speed=1.5)
    samples = np.frombuffer(raw.content, "<i2")
    assert samples.size == 24000 and samples[0] == -32767 and samples[-1] == 32767
    assert played[1].asked == [("Hello", "b", 1.5)]
    for kind in ("wav", "flac", "mp3"):
        answer: Any = speak(model="mouth", input="Hello", voice="a", response_format=kind)  # type: ignore[arg-type]
        path = tmp_path / f"x.{kind}"
        path.write_bytes(answer.content)
        assert read(path).sample_rate == 24000 and answer.response.headers["content-type"].startswith("audio/")


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"input": ""}, "input"),
        ({"input": "x" * (sounds.MAX_CHARACTERS + 1)}, "input"),
        ({"voice": "alloy"}, "voice"),
        ({"response_format": "opus"}, "response_format"),
        ({"instructions": "Whisper."}, "instructions"),
        ({"model": "toy"}, "model"),
    ],
)
def test_what_cannot_be_spoken_is_named(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    body: Any = {"model": "mouth", "input": "Hello", "voice": "a"} | fields
    with pytest.raises(openai.BadRequestError) as caught:
        client.audio.speech.create(**body)
    assert caught.value.param == param


def test_what_cannot_be_heard_is_named(client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    hear: Any = client.audio.transcriptions.create
    wrong: list[tuple[dict[str, Any], str | None]] = [
        ({"file": b"no sound"}, "file"),
        ({"prompt": "too long"}, "prompt"),
        ({"response_format": "pdf"}, "response_format"),
        ({"temperature": "hot"}, "temperature"),
        ({"stream": True}, "stream"),
        ({"extra_body": {"colour": "red"}}, "colour"),
        ({"model": "toy"}, "model"),
        ({"model": "mouth"}, None),
    ]
    with pytest.raises(openai.BadRequestError, match="read: the file is no sound file that can be read"):
        hear(model="ear", file=b"no sound")
    for fields, param in wrong[:-1]:
        with pytest.raises(openai.BadRequestError) as caught:
            hear(**{"model": "ear", "file": wav(), **fields})
        assert caught.value.param == param, fields
    monkeypatch.setattr(sounds, "MAX_SAMPLES", 8000)
    assert hear(model="ear", file=wav(0.5)).text
    with pytest.raises(openai.BadRequestError, match="more than the 8000 samples that may be read") as long:
        hear(model="ear", file=wav(0.51))
    assert long.value.param == "file"
    with pytest.raises(openai.APIStatusError) as large:
        hear(model="ear", file=b"x" * (26 << 20))
    assert large.value.status_code == 413
    with pytest.raises(openai.BadRequestError, match="file must be a sound file"):
        client.post("/audio/transcriptions", body={"model": "ear"}, cast_to=object)
    hear(model="ear", file=wav())
    with pytest.raises(openai.BadRequestError, match="ear is a model that hears; here one is needed that writes"):
        client.chat.completions.create(model="ear", messages=MESSAGES)
