"""Methods of CausalTransformerModel that decode by hand, over the fixed caches of its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.compat.decoding.fixed_cache import init_missing, layers_of
from pygpukit.compat.decoding.hand import hand_of
from pygpukit.compat.decoding.jacobi import DecodeJacobi, Guess
from pygpukit.compat.decoding.speculative import DecodeSpeculative
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.drafts.speculation import MAX_TOKENS

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel


def init_jacobi_decode(self: CausalTransformerModel, lookahead_k: int = 4, max_seq_len: int = 512) -> None:
    """Prepare steps of lookahead_k tokens by hand: fixed caches of max_seq_len positions, at most the context, for
    layers that have none or a smaller one, and the graph of such a step.

    Raises InvalidSpecError for numbers that cannot be.
    """
    expected = f"a whole number of 1 to {MAX_TOKENS}"
    if not 1 <= whole(lookahead_k, "lookahead_k", expected) <= MAX_TOKENS:
        raise InvalidSpecError(f"lookahead_k={lookahead_k!r}; give {expected}", "lookahead_k")
    if whole(max_seq_len, "max_seq_len", "a whole number of 1 or more") < 1:
        raise InvalidSpecError(f"max_seq_len={max_seq_len!r}; give a whole number of 1 or more", "max_seq_len")
    init_missing(layers_of(self), min(max_seq_len, self.context))
    hand_of(self).capture(lookahead_k)


def decode_step_self_speculative_lookahead(
    self: CausalTransformerModel, token_id: int, max_draft_tokens: int = 4, draft_layers: int = 8
) -> tuple[list[int], dict[str, int]]:
    """DecodeSpeculative.step_lookahead() of this model, greedy."""
    strategy = DecodeSpeculative(max_draft_tokens, draft_layers)
    strategy.bind(self)
    return strategy.step_lookahead(token_id)


def decode_step_jacobi_lookahead(
    self: CausalTransformerModel,
    token_id: int,
    n_tokens: int = 8,
    max_iter: int = 3,
    init_strategy: Guess = "repeat",
) -> tuple[list[int], dict[str, Any]]:
    """DecodeJacobi.step_lookahead() of this model, greedy."""
    strategy = DecodeJacobi(n_tokens, max_iter, init_strategy)
    strategy.bind(self)
    return strategy.step_lookahead(token_id)


def set_lookahead_confirmed_pos(self: CausalTransformerModel, pos: int) -> None:
    """attn.set_confirmed_pos() of every layer."""
    for layer in layers_of(self):
        layer.set_confirmed_pos(pos)


def reset_lookahead_all(self: CausalTransformerModel) -> None:
    """attn.reset_lookahead() of every layer."""
    for layer in layers_of(self):
        layer.reset_lookahead()


def commit_lookahead_all(self: CausalTransformerModel, n_accepted: int) -> None:
    """attn.commit_lookahead() of every layer."""
    for layer in layers_of(self):
        layer.commit_lookahead(n_accepted)


def get_lookahead_confirmed_pos(self: CausalTransformerModel) -> int:
    """The number of positions that all layers have confirmed."""
    return min(layer.get_confirmed_pos() for layer in layers_of(self))
