"""DecodeStrategy: the base of the documented strategies, each bound to a model and its fixed caches."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.compat.decoding.fixed_cache import init_missing, layers_of
from pygpukit.compat.decoding.hand import GREEDY, Hand, hand_of
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.engine.sampling import Sampling

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.compat.decoding.buffers import DecodeBuffers
    from pygpukit.llm.model import CausalTransformerModel


class DecodeStrategy(ABC):
    """Steps of one sequence whose caller gives tokens and positions.

    Keys and values lie in the fixed caches of the model's layers (`attn.init_fixed_cache()`), which all strategies of a
    model share. Logits and tokens have the bits that the model's own answers have: `generate()` and `stream()` run the
    same steps, for many sequences at once, and are what new code should call.

    Examples
    --------
    >>> m1 = gp.llm.DecodeM1()                                  # doctest: +SKIP
    >>> m1.bind(model)                                          # doctest: +SKIP
    >>> for block in model.blocks:                              # doctest: +SKIP
    ...     block.attn.init_fixed_cache(512)
    >>> token, position = m1.prefill(prompt), len(prompt)       # doctest: +SKIP
    >>> hidden = m1.step(token, position, position + 1, None)   # doctest: +SKIP
    >>> logits = model.get_logits(hidden)                       # doctest: +SKIP
    """

    _model: CausalTransformerModel | None = None
    _sampling = GREEDY

    @property
    def model(self) -> CausalTransformerModel:
        """The model. Raises InvalidSpecError before bind()."""
        if self._model is None:
            raise InvalidSpecError(f"{type(self).__name__} has no model; call bind(model) first", "model")
        return self._model

    def bind(self, model: CausalTransformerModel, **settings: Any) -> None:
        """Step this model. settings: temperature, seed and the others of gp.llm.Sampling, by which prefill() and steps
        choose tokens; greedy without. Raises InvalidSpecError naming one that cannot be."""
        unknown = sorted(set(settings) - set(Sampling.__dataclass_fields__) | set(settings) & {"top"})
        if unknown:
            raise InvalidSpecError(f"there is no setting {unknown[0]!r} of steps by hand", unknown[0])
        self._model, self._sampling = model, Sampling(**settings).seeded() if settings else GREEDY

    def prefill(self, token_ids: Sequence[int]) -> int:
        """Read a prompt into the fixed caches, whose positions 0 to len(token_ids) - 1 are confirmed then.

        Returns the token that follows. Raises InvalidSpecError without fixed caches, or where they have no room.
        """
        token = self._hand.prefill(token_ids, self._sampling)
        for layer in layers_of(self.model):
            layer.set_confirmed_pos(len(token_ids))
        return token

    @abstractmethod
    def step(self, token_id: int, position: int, context_len: int, buffers: DecodeBuffers | None) -> GPUArray:
        """The last layer's output, float32 (1, hidden), for a token at a position; it is there until the next step.

        context_len: position + 1, what the token sees. buffers: written where they are given, see DecodeBuffers.
        Raises InvalidSpecError for a position whose predecessors were not computed, or beyond the caches.
        """

    def init_graph(self, max_seq_len: int = 512) -> None:
        """Capture what the strategy steps by; fixed caches of max_seq_len positions are made where there are none.

        Raises InvalidSpecError for a strategy without graphs.
        """
        raise InvalidSpecError(f"{type(self).__name__} has no graph; DecodeM1Graph and DecodeBatch have", "max_seq_len")

    def has_graph(self) -> bool:
        """True if init_graph() has captured one."""
        return False

    @property
    def _hand(self) -> Hand:
        return hand_of(self.model)

    def _begin(self, token_id: int, position: int, context_len: int, rows: int = 1) -> Hand:
        """The sequence, with that token at its end."""
        place = whole(position, "position", "a whole number of 0 or more")
        expected = f"{place + rows}, the positions up to the last token"
        if whole(context_len, "context_len", expected) != place + rows:
            raise InvalidSpecError(f"context_len={context_len!r}; give {expected}", "context_len")
        hand = self._hand
        hand.begin(token_id, place, self._sampling)
        return hand

    def _captured(self, rows: int, max_seq_len: int) -> Hand:
        expected = f"a whole number of 1 to the context, {self.model.context}"
        if not 1 <= whole(max_seq_len, "max_seq_len", expected) <= self.model.context:
            raise InvalidSpecError(f"max_seq_len={max_seq_len!r}; give {expected}", "max_seq_len")
        init_missing(layers_of(self.model), operator.index(max_seq_len))
        hand = self._hand
        hand.capture(rows)
        return hand
