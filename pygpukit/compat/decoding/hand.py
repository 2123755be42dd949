"""Hand: one sequence of a model whose tokens and positions a caller gives, over the fixed caches of its layers."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pygpukit.compat.decoding.fixed_cache import FixedCache, fixed_cache, layers_of
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.event import Event
from pygpukit.core.sizes import whole
from pygpukit.core.turns import turn
from pygpukit.llm.engine.drafting import Asked, Source
from pygpukit.llm.engine.prefill import Part, Prefill
from pygpukit.llm.engine.room import BLOCK
from pygpukit.llm.engine.rows import Line
from pygpukit.llm.engine.sampling import Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.llm.engine.step import DecodeSteps, Launched
from pygpukit.nn.kv_cache import KVCache

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.drafts.network import OwnLayers
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.nn.transformer import Transformer

_CHUNK = 512  # tokens of a prompt that go through the layers at once
GREEDY = Sampling().seeded()


class Hand:
    """Steps of the engine for rows of one sequence. A position is computed once all before it are, and again whenever
    it is given again: what lay behind it is forgotten then."""

    def __init__(self, network: Transformer, caches: list[FixedCache]) -> None:
        self.network, self.caches = network, caches
        self.count = min(network.positions, *(cache.count for cache in caches))
        self._blocks = list(range(min(cache.blocks for cache in caches)))
        layers = [cache.layer for cache in caches]
        self._cache = KVCache(network.config, len(self._blocks), BLOCK, caches[0].dtype, "fixed", layers)
        self._steps = {graphs: DecodeSteps(network, self._cache, len(self._blocks), graphs) for graphs in (False, True)}
        self._prefill = Prefill(network, self._cache, min(_CHUNK, self.count), len(self._blocks))
        self._sequence: Sequence | None = None
        self._ahead: tuple[DecodeSteps, int, int] | None = None  # a step has left this token for this position
        self._own_layers: dict[int, OwnLayers] = {}

    def prefill(self, tokens: Several[int], sampling: Sampling) -> int:
        """Keys of a prompt, from position 0 on, by the passes that the engine reads prompts by; the token behind it."""
        prompt = self._checked(tokens)
        self._check_room(0, len(prompt), len(prompt))
        self._begin(prompt, sampling)
        steps, x = self._steps[False], None
        steps.forget()
        with turn():
            for start in range(0, len(prompt), _CHUNK):
                part = prompt[start : start + _CHUNK]
                x = self._prefill.compute([Part(part, start, self._blocks)])[len(part) - 1 : len(part)]
            assert x is not None and self._sequence is not None  # a prompt has a token
            line = Line(self._sequence, len(prompt) - 1, self._blocks)
            [token] = _tokens(steps.launch_first([line], [x]))
        self._ahead = None
        self._wrote(len(prompt))
        return token

    def begin(self, token: int, position: int, sampling: Sampling) -> None:
        """Let the sequence end with a token at a position, whose predecessors are known."""
        [token] = self._checked([token])
        self._check_room(position, 1, position + 1)
        sequence = self._sequence
        known = 0 if sequence is None else sequence.known
        if position > known:
            raise InvalidSpecError(
                f"position={position}, and {known} tokens are known before it; give them", "position"
            )
        if sequence is None or position < len(sequence.prompt) or sequence.sampling is not sampling:
            before = [] if sequence is None else [sequence.token_at(i) for i in range(position)]
            self._begin([*before, token], sampling)
        else:
            del sequence.answer[position - len(sequence.prompt) :]
            sequence.answer.append(token)

    def step(self, drafts: Several[int] = (), *, graphs: bool = True) -> list[int]:
        """Compute the last token of the sequence, and drafts behind it as rows of the same step: the token that the
        model chooses behind each. Which of them count is keep()'s to say."""
        sequence, own = self._ended(), tuple(self._checked(drafts))
        position = sequence.known - 1
        self._check_room(position, 1 + len(own), position + 1 + len(own))
        steps = self._steps[graphs]
        if self._ahead != (steps, position, sequence.token_at(position)):
            steps.forget()
        lines = [Line(sequence, position + i, self._blocks, own[:i]) for i in range(len(own) + 1)]
        with turn():
            chosen = _tokens(steps.launch(lines))
        self._ahead = None if own else (steps, position + 1, chosen[0])
        self._last = steps
        self._wrote(position + 1 + len(own))
        return chosen

    def keep(self, tokens: Several[int]) -> None:
        """Drafts of the last step that belong to the sequence; keys of the others are forgotten."""
        sequence = self._ended()
        sequence.answer += tokens
        self._wrote(sequence.known)

    def room(self, count: int) -> int:
        """Drafts that there is room for behind the last token, at most `count`."""
        return max(min(count, self.count - self._ended().known), 0)

    def propose(self, source: Source, count: int) -> list[int]:
        """Up to `count` drafts of a source, as far as there is room."""
        room = self.room(count)
        return list(source.propose([Asked(self._ended(), self._blocks, room)])[0])[:room] if room else []

    def own_layers(self, layers: int) -> OwnLayers:
        """Drafts by the first layers of the model. Raises InvalidSpecError where it has no more than these."""
        from pygpukit.llm.drafts.network import OwnLayers

        total = self.network.config.num_layers
        expected = f"1 to {total - 1}, fewer than the model has"
        if not 1 <= whole(layers, "draft_layers", expected) < total:
            raise InvalidSpecError(f"draft_layers={layers!r}; give {expected}", "draft_layers")
        if layers not in self._own_layers:
            self._own_layers[layers] = OwnLayers(self.network, self._cache, layers)
        return self._own_layers[layers]

    def outputs(self, count: int) -> GPUArray:
        """The last layer's output of the last step's rows, float32 (count, hidden), until the next step."""
        return self._last.outputs()[:count]

    def logits(self, count: int) -> GPUArray:
        """The logits of the last step's rows, float32 (count, vocabulary), until the next step."""
        return self._last.logits()[:count]

    def capture(self, rows: int) -> None:
        """Capture the graph of a step of so many rows now."""
        self._steps[True].capture(rows)

    def _begin(self, tokens: list[int], sampling: Sampling) -> None:
        if self._sequence is not None:
            self._sequence.state = "ended"  # sources forget it
        self._sequence = Sequence(tokens, max(self.count - len(tokens), 1))
        self._sequence.sampling = sampling
        self._ahead = None

    def _ended(self) -> Sequence:
        if self._sequence is None:
            raise InvalidSpecError(
                "no token was given yet; give one at position 0, or a prompt to prefill()", "token_id"
            )
        return self._sequence

    def _wrote(self, end: int) -> None:
        for cache in self.caches:
            cache.wrote(end)

    def _check_room(self, position: int, rows: int, context_len: int) -> None:
        for cache in self.caches:
            cache.check(position, rows, context_len)
        if position + rows > self.count:
            raise InvalidSpecError(
                f"position {position + rows - 1} is beyond the context, {self.count} positions", "position"
            )

    def _checked(self, tokens: Several[int]) -> list[int]:
        count = self.network.config.vocab_size
        expected = f"token ids of 0 to {count - 1}"
        ids = [whole(token, "token_id", expected) for token in tokens]
        for token in ids:
            if not 0 <= token < count:
                raise InvalidSpecError(f"token_id={token}; give {expected}", "token_id")
        return ids


def _tokens(launched: Launched) -> list[int]:
    """The tokens that a step chose, when it has ended."""
    end = Event(timing=False)
    end.record()
    end.synchronize()
    return [choice.token for choice in launched.read()]


_HANDS: WeakKeyDictionary[CausalTransformerModel, Hand] = WeakKeyDictionary()


def hand_of(model: CausalTransformerModel) -> Hand:
    """The sequence of a model's fixed caches. Raises InvalidSpecError where a layer has none."""
    caches = [fixed_cache(layer) for layer in layers_of(model)]
    hand = _HANDS.get(model)
    if hand is None or hand.caches != caches:
        hand = _HANDS[model] = Hand(model.engine.network, caches)
    return hand
