"""The probabilities of a prompt's own tokens, and vectors of texts: passes over whole prompts, without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.engine.sampling import MAX_TOP, report
from pygpukit.llm.generation import Alternative, Token

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.llm.model import CausalTransformerModel

_ROWS = 32  # of logits at a time: 20 MB of a vocabulary of 150000
Pooling: TypeAlias = Literal["mean", "last"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def prompt_tokens(model: CausalTransformerModel, prompt: list[int], top: int | None = None) -> list[Token]:
    """The tokens of a prompt, each with its logprob after those before it; of the first it is None.

    top: how many of the most probable tokens to tell with each, 0 to 20; None: no logprobs at all, and nothing is
    computed. Raises InvalidSpecError for what cannot be a prompt.
    """
    import numpy as np

    model.engine.check(prompt)
    stream = None if model.tokenizer is None else model.tokenizer.stream(skip_special_tokens=False)
    texts = ["" if stream is None else stream.push(number) for number in prompt]
    if stream is not None:
        texts[-1] += stream.finish()
    figures = np.zeros((len(prompt), 2 + 2 * (MAX_TOP + 1)), np.float32)
    if top is not None and len(prompt) > 1:
        hidden = model.engine.hidden(prompt)
        for start in range(0, len(prompt) - 1, _ROWS):
            end = min(start + _ROWS, len(prompt) - 1)
            for row, logits in enumerate(model.get_logits(hidden[start:end]).to_numpy(), start + 1):
                report(logits, prompt[row], max(top, 2), figures[row])
    tokens = []
    for place, (number, text) in enumerate(zip(prompt, texts, strict=True)):
        has_logprob = top is not None and place > 0
        own = figures[place]
        numbers = own.view(np.int32)[2 : 2 + (top or 0)].tolist() if has_logprob else []
        others = zip(numbers, own[3 + MAX_TOP :].tolist(), strict=False)
        alternatives = tuple(Alternative(n, model.text_of(n), logprob, model.bytes_of(n)) for n, logprob in others)
        logprob = float(own[0]) if has_logprob else None
        tokens.append(Token(number, text, index=place, logprob=logprob, top=alternatives, raw=model.bytes_of(number)))
    return tokens


def embed(
    model: CausalTransformerModel, prompts: Sequence[str | Sequence[int]], pooling: Pooling = "mean"
) -> np.ndarray[Any, Any]:
    """The vectors of texts or lists of token ids, float32 (prompts, hidden), of length 1; see model.embed()."""
    import numpy as np

    if pooling not in POOLINGS:
        raise InvalidSpecError(f"pooling={pooling!r}; give one of {', '.join(POOLINGS)}", "pooling")
    encoded = [model.token_ids(prompt) for prompt in prompts]
    for ids in encoded:
        model.engine.check(ids)
    vectors = np.zeros((len(encoded), model.config.hidden_size), np.float32)
    for place, ids in enumerate(encoded):
        hidden = model.engine.hidden(ids)
        with model.engine.network.at_home():
            states = model.final_norm(hidden if pooling == "mean" else hidden[len(ids) - 1 :]).to_numpy()
        vectors[place] = unit(states.astype(np.float64).mean(axis=0))
    return vectors


def unit(vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A vector scaled to length 1; zeros stay zeros."""
    import numpy as np

    length = np.linalg.norm(vector)
    return vector / length if length else vector
