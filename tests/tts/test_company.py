"""Which sentences a Kokoro model speaks together, and whose sound is whose. What is computed is in test_batches.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops import host
from pygpukit.tts import model as models
from pygpukit.tts.batches import Sentence
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.tokenizer import KokoroTokenizer


class Tables:
    """Voices whose styles are one number each."""

    default = "one"

    def table(self, name: str) -> np.ndarray[Any, Any]:
        return np.full((510, 256), len(name), np.float32)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many sentences went into each pass; a sentence's samples say its tokens, its voice, its speed and its
    seed."""
    counts: list[int] = []

    def speak(network: Any, sentences: list[Sentence]) -> list[gp.GPUArray]:
        counts.append(len(sentences))
        told = [[*each.tokens, each.style[0], each.speed, each.seed] for each in sentences]
        return [gp.from_numpy(np.array(each, np.float32)) for each in told]

    monkeypatch.setattr(models, "speak", speak)
    monkeypatch.setattr(models, "Network", lambda *_: None)
    monkeypatch.setattr(host, "computes", lambda: False)
    return counts


def silent_model() -> gp.tts.KokoroModel:
    voices: Any = Tables()
    tokenizer = KokoroTokenizer()
    tokenizer.text_to_phonemes = lambda text: text.lower()  # type: ignore[method-assign]
    return gp.tts.KokoroModel(KokoroConfig(), {}, tokenizer, voices)


def test_a_stream_is_the_whole_in_growing_passes(passes: list[int]) -> None:
    model, text = silent_model(), " ".join(f"{letter}o." for letter in "BCDEFGHJKLMNOPQRSTU")
    whole = model.synthesize(text).to_numpy()
    assert passes == [19]
    parts = list(model.stream(text))
    assert passes[1:] == [1, 2, 4, 8, 4] and len(parts) == 19
    assert np.array_equal(np.concatenate([part.to_numpy() for part in parts]), whole)


def test_a_batch_keeps_voices_and_speeds_apart(passes: list[int]) -> None:
    model, texts = silent_model(), ["Do be. Be do.", "Me?"]
    together = model.synthesize_batch(texts, ["a", "three"], [2.0, 0.5], seed=3)
    assert passes == [3] and [each.text for each in together] == texts
    for each, voice, speed in zip(together, ("a", "three"), (2.0, 0.5), strict=True):
        alone = model.synthesize(each.text, voice, speed, seed=3)
        assert np.array_equal(each.to_numpy(), alone.to_numpy()) and each.phonemes == alone.phonemes
    assert len(model.synthesize_batch(["Me?"])) == 1
    assert model.synthesize_batch([]) == []


def test_what_is_wrong_with_one_text_is_found_before_any_is_spoken(passes: list[int]) -> None:
    model = silent_model()
    for texts, more, match in (
        (["Me.", ""], {}, "nothing to speak in ''"),
        (["Me.", "Do."], {"speed": [1.0]}, "speed has 1 for 2 texts"),
        (["Me.", "Do."], {"voice": ["one"] * 3}, "voice has 3 for 2 texts"),
        (["Me.", "Do."], {"speed": [1.0, 9.0]}, "speed is 9"),
    ):
        with pytest.raises(gp.InvalidSpecError, match=match):
            model.synthesize_batch(texts, **more)
    assert passes == []
