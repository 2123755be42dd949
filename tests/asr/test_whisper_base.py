"""Whisper base, a real multilingual model, in float32, against faster-whisper: a clip of each voice. Fetched once
into the model cache (146 MB). tools/whisper_parity.py compares all clips."""

from __future__ import annotations

import pytest
from asr.sounds import GOLDENS, clip

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")


def test_text_tokens_times_and_language_are_those_of_faster_whisper() -> None:
    base = gp.asr.load("whisper-base", progress=False, dtype="float32")
    for name, beams, language in (("letter", 1, None), ("short", 5, "en")):
        golden = GOLDENS["whisper-base"][name][f"beam{beams}"]
        found = base.transcribe(clip(name), language=language, beam_size=beams, temperature=0.0)
        assert found.language == golden["language"] == "en"
        assert [one.tokens for one in found.segments] == [one["tokens"] for one in golden["segments"]]
        assert [one.text for one in found.segments] == [one["text"] for one in golden["segments"]]
        for one, other in zip(found.segments, golden["segments"], strict=True):
            assert (one.start, one.end) == pytest.approx((other["start"], min(other["end"], found.duration)), abs=1e-6)
            assert one.average_logprob == pytest.approx(other["average_logprob"], abs=1e-3)
