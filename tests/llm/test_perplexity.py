"""The perplexity of a text and what few bits change of it, beside a float64 reading of the same weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from llm import reference, speaking, tiny
from llm.test_scoring import logprobs_of
from llm.tiny import MemoryCheckpoint
from llm.tiny_weights import CONFIGS, tensors

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.perplexity import PASSAGE
from pygpukit.llm.weights import from_checkpoint, load
from pygpukit.models.quantised.quantise import NAMES, QuantisingCheckpoint

CONFIG = {**CONFIGS["llama"], "intermediate_size": 64}
IDS = np.random.default_rng(3).integers(0, 99, 150).tolist()


def logprobs(weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """float64 (tokens - 1, vocabulary), of the formula."""
    logits = reference.logits(CONFIG, weights, ids)[:-1]
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def surprise(rows: np.ndarray, ids: list[int]) -> float:
    return -float(rows[np.arange(len(rows)), ids[1:]].sum())


@pytest.mark.parametrize("length", [2, 3, 33, 64, 150])
def test_perplexity_is_that_of_float64(length: int) -> None:
    model = tiny.model("llama", intermediate_size=64, context=256)
    expected = math.exp(surprise(logprobs(tensors(CONFIG), IDS[:length]), IDS[:length]) / (length - 1))
    assert model.perplexity(IDS[:length]) == pytest.approx(expected, rel=1e-5)


def test_a_long_text_is_read_in_windows() -> None:
    model = tiny.model("llama", intermediate_size=64, context=61)  # windows of 60, the last of 30
    parts = [IDS[start : start + 60] for start in range(0, 150, 60)]
    total = sum(surprise(logprobs(tensors(CONFIG), part), part) for part in parts)
    assert model.perplexity(IDS) == pytest.approx(math.exp(total / 147), rel=1e-5)
    assert model.perplexity(IDS[:61]) == model.perplexity(IDS[:60])  # what is alone in its window is not predicted


@pytest.mark.parametrize("quantize", NAMES)
def test_the_error_of_few_bits_is_that_of_float64(quantize: str) -> None:
    """Weights as rounded, in float64, beside the whole ones."""
    whole = tensors(CONFIG)
    checkpoint = QuantisingCheckpoint(MemoryCheckpoint(CONFIG, whole), quantize)
    rounded = {name: checkpoint.read(name) for name in whole}
    ours, theirs = logprobs(rounded, IDS), logprobs(whole, IDS)
    model, plain = (
        from_checkpoint(MemoryCheckpoint(CONFIG, whole), quantize=name, context=256) for name in (quantize, None)
    )
    error = model.text_error(IDS, plain)
    assert error.tokens == 149
    assert error.perplexity == model.perplexity(IDS)
    assert error.perplexity == pytest.approx(math.exp(surprise(ours, IDS) / 149), rel=1e-4)  # x is rounded, too
    assert error.reference == pytest.approx(math.exp(surprise(theirs, IDS) / 149), rel=1e-5)
    divergence = float((np.exp(theirs) * (theirs - ours)).sum() / 149)
    assert error.divergence == pytest.approx(divergence, rel=5e-2, abs=5e-6) and divergence > 0
    assert error.agreement == pytest.approx((ours.argmax(-1) == theirs.argmax(-1)).mean(), abs=2 / 149)
    assert f"over {error.tokens} tokens" in repr(error)
    same = plain.text_error(IDS, plain)
    assert (same.perplexity, same.divergence, same.agreement) == (same.reference, 0.0, 1.0)


def test_a_model_that_was_rounded_finds_its_own_whole_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object, **__: object) -> MemoryCheckpoint:
        return MemoryCheckpoint(CONFIG, tensors(CONFIG), "tiny")

    monkeypatch.setattr("pygpukit.models.checkpoint.open_checkpoint", opened)
    model = load(".", quantize="int4", context=128, progress=False)
    plain = load(".", context=128, progress=False)
    assert model.text_error(IDS[:100]) == model.text_error(IDS[:100], plain)
    assert model.text_error(IDS[:100]).divergence > 1e-5
    with pytest.raises(InvalidSpecError, match="was not rounded when it was loaded; give reference="):
        plain.text_error(IDS[:100])


def test_without_a_text_it_is_the_passage() -> None:
    model = speaking.model(context=512)
    ids = model.token_ids(PASSAGE.read_text("utf-8"))
    total, count = 0.0, 0
    for start in range(0, len(ids), 511):
        part = ids[start : start + 511]
        rows = logprobs_of(model, part)
        total -= sum(float(rows[place, token]) for place, token in enumerate(part[1:]))
        count += len(part) - 1
    assert model.perplexity() == pytest.approx(math.exp(total / count), rel=1e-6)
    assert len(PASSAGE.read_text("ascii").split()) > 200


def test_what_cannot_be_compared_is_named() -> None:
    model = tiny.model("llama", context=64)
    with pytest.raises(InvalidSpecError, match="a text of 1 tokens predicts none"):
        model.perplexity([5])
    with pytest.raises(InvalidSpecError, match="the model 99 tokens"):
        model.perplexity([1] * 70 + [99])
    with pytest.raises(InvalidSpecError, match="other tokens than"):
        model.text_error(IDS, tiny.model("llama", vocab_size=100, context=64))
    with pytest.raises(InvalidSpecError, match="windows of 31 tokens, tiny of 63"):
        model.text_error(IDS, tiny.model("llama", context=32))
