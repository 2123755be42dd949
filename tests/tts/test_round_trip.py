"""What Kokoro says is what Whisper tiny.en hears: the short form of tools/speech_round_trip.py."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")


@pytest.mark.skipif(find_spec("hibari") is None, reason="hibari-tts is not installed")
def test_whisper_writes_down_what_kokoro_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "tools"))
    from speech_round_trip import errors, words

    said = "The dog waited patiently beside the front door."
    spoken = gp.tts.load(progress=False).synthesize(said)
    heard = gp.asr.load("whisper-tiny.en", progress=False).transcribe(spoken.to_numpy(), 24000, beam_size=1).text
    assert errors(words(said), words(heard)) <= 1, heard


def test_words_are_counted_without_case_marks_and_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "tools"))
    from speech_round_trip import SENTENCES, errors, words

    assert words("At 7:15, TWENTY-one; it\u2019s 42!") == [
        "at",
        "seven",
        "fifteen",
        "twenty",
        "one",
        "it's",
        "forty",
        "two",
    ]
    assert errors(words("a b c"), words("A, b c.")) == 0 and errors(["a"], []) == 1
    assert errors(words("a b c d"), words("b x d e")) == 3
    assert len(SENTENCES) == 50
