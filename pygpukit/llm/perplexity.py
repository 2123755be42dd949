"""Perplexity: how well a model predicts a text, and what rounding its weights to few bits has changed of that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.llm.model import CausalTransformerModel

    Array = np.ndarray[Any, Any]

_ROWS = 32  # of logits at a time: 20 MB of a vocabulary of 150000
PASSAGE = Path(__file__).with_name("passage.txt")  # three paragraphs of plain English, about 350 tokens


@dataclass(frozen=True)
class TextError:
    """The change that few bits make to the predictions of a text, beside the same model with other weights.

    Parameters
    ----------
    tokens
        Tokens that were predicted: all but the first of each window.
    perplexity, reference
        Of this model, and of the other.
    divergence
        The Kullback-Leibler divergence of this model's probabilities from the other's, in nats a token.
    agreement
        The share of the tokens for which both hold the same one for the most probable.
    """

    tokens: int
    perplexity: float
    reference: float
    divergence: float
    agreement: float

    def __repr__(self) -> str:
        return (
            f"perplexity {self.perplexity:.4g} after {self.reference:.4g} over {self.tokens} tokens "
            f"({self.perplexity / self.reference - 1:+.2%}), divergence {self.divergence:.3g} nats a token, the same "
            f"best token in {self.agreement:.1%}"
        )


def perplexity(model: CausalTransformerModel, text: str | Sequence[int] | None) -> float:
    """The perplexity of a text; see model.perplexity()."""
    ids = _ids(model, text)
    return math.exp(
        sum(-float(_of(rows, ids, first).sum()) for first, rows in _logprobs(model, ids)) / _count(model, ids)
    )


def text_error(
    model: CausalTransformerModel, reference: CausalTransformerModel, text: str | Sequence[int] | None
) -> TextError:
    """The predictions of one model beside another's; see model.text_error()."""
    ids = _ids(model, text)
    if reference.config.vocab_size != model.config.vocab_size or _ids(reference, text) != ids:
        raise InvalidSpecError(f"text_error: {reference.name} has other tokens than {model.name}", "reference")
    if (windows := _window(reference)) != _window(model):
        raise InvalidSpecError(
            f"text_error: {reference.name} reads windows of {windows} tokens, {model.name} of {_window(model)}; load "
            "both with the same context",
            "reference",
        )
    ours = theirs = divergence = same = 0.0
    for (first, own), (_, other) in zip(_logprobs(model, ids), _logprobs(reference, ids), strict=True):
        ours -= float(_of(own, ids, first).sum())
        theirs -= float(_of(other, ids, first).sum())
        divergence += float(_divergence(other, own))
        same += float((own.argmax(-1) == other.argmax(-1)).sum())
    count = _count(model, ids)
    return TextError(count, math.exp(ours / count), math.exp(theirs / count), divergence / count, same / count)


def _ids(model: CausalTransformerModel, text: str | Sequence[int] | None) -> list[int]:
    ids = model.token_ids(PASSAGE.read_text("utf-8") if text is None else text)
    if len(ids) < 2:
        raise InvalidSpecError(f"a text of {len(ids)} tokens predicts none; give one of two or more", "text")
    window = _window(model)
    for start in range(0, len(ids), window):
        model.engine.check(ids[start : start + window])
    return ids


def _window(model: CausalTransformerModel) -> int:
    """Tokens that are read together."""
    return max(min(model.context - 1, 2048), 2)


def _count(model: CausalTransformerModel, ids: list[int]) -> int:
    return len(ids) - -(-len(ids) // _window(model))


def _logprobs(model: CausalTransformerModel, ids: list[int]) -> Iterator[tuple[int, Array]]:
    """The place of a token, and float64 (tokens, vocabulary) of it and those after it."""
    import numpy as np

    window = _window(model)
    for start in range(0, len(ids), window):
        part = ids[start : start + window]
        if len(part) < 2:
            return
        hidden = model.engine.hidden(part)
        for first in range(0, len(part) - 1, _ROWS):
            logits = model.get_logits(hidden[first : min(first + _ROWS, len(part) - 1)]).to_numpy().astype(np.float64)
            logits -= logits.max(-1, keepdims=True)
            yield start + first + 1, logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def _of(rows: Array, ids: list[int], first: int) -> Array:
    """The logprobs of the text's own tokens."""
    import numpy as np

    return rows[np.arange(len(rows)), ids[first : first + len(rows)]]


def _divergence(reference: Array, own: Array) -> Array:
    import numpy as np

    with np.errstate(all="ignore"):
        terms = np.exp(reference) * (reference - own)
    return np.where(np.isneginf(reference), 0.0, terms).sum()
