"""The choice of the next token: settings of a request, and the choice among rows of logits on the device."""

from __future__ import annotations

import math
import secrets
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import factor, whole
from pygpukit.llm.engine.masks import TokenMasks
from pygpukit.memory.pinned import pinned_empty
from pygpukit.ops import host
from pygpukit.ops.nn import sampling as operations

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.nn.batch import Batch

SOURCE = kernels.KernelSpec(__file__, "sampling.cu")
_THREADS, _ADJUST_THREADS = 1024, 256
MAX_TOP = 20
# sampling.cu: Request
_REQUEST = struct.Struct("<4Q6f8x")
REQUEST_BYTES = _REQUEST.size
_IN_PROMPT = 1 << 30


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that a choice can ask for."""
    yield "pk::adjust", "pk::choose_tokens", "pk::tell"


@dataclass(frozen=True)
class Sampling:
    """Settings by which tokens of one request are chosen. Checked when made: InvalidSpecError names the setting.

    First the penalties and the bias change the logits: those of tokens of prompt or answer are divided by
    repetition_penalty (multiplied where negative); presence_penalty, and frequency_penalty times how often, are taken
    from those of tokens of the answer; logit_bias is added to those of its tokens. temperature divides them; 0 takes
    the first of the largest. min_p keeps tokens with at least that share of the largest probability, top_k (0: all) the
    most probable, top_p the fewest that have that share together. seed and request: which random numbers (Philox, by
    seed, request and position), so that a token depends on neither batch nor time. seed None: one is drawn.
    top: how many of the most probable tokens to tell with each, 0 to 20; None: no logprobs at all, which is fastest.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    request: int = 0
    top: int | None = None

    def __post_init__(self) -> None:
        operations.check_settings(self.temperature, self.top_k, self.top_p, self.min_p)
        factor(self.repetition_penalty, "repetition_penalty", positive=True)
        for name in ("presence_penalty", "frequency_penalty"):
            factor(getattr(self, name), name)
        if not isinstance(self.logit_bias, Mapping):
            raise InvalidSpecError(
                f"logit_bias={self.logit_bias!r}; give a dict of token ids and numbers", "logit_bias"
            )
        for token, bias in self.logit_bias.items():
            if whole(token, "logit_bias: token", "token ids and numbers") < 0:
                raise InvalidSpecError(f"logit_bias has {token}: {bias}, must be token ids and numbers", "logit_bias")
            if bias not in (math.inf, -math.inf):  # always, or never
                factor(bias, f"logit_bias[{token}]")
        for name, value, maximum in (
            ("seed", 0 if self.seed is None else self.seed, 2**64 - 1),
            ("request", self.request, 2**64 - 1),
            ("top", 0 if self.top is None else self.top, MAX_TOP),
        ):
            expected = f"a whole number of 0 to {maximum}"
            if not 0 <= whole(value, name, expected) <= maximum:
                raise InvalidSpecError(f"{name}={value!r}; give {expected}", name)

    @cached_property
    def adjusts(self) -> bool:
        """True if the logits are changed before a token is chosen."""
        neutral = (1.0, 0.0, 0.0)
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != neutral or bool(
            self.logit_bias
        )

    def seeded(self) -> Sampling:
        """Itself, with a seed."""
        return self if self.seed is not None else replace(self, seed=secrets.randbits(63))

    def packed(self) -> bytes:
        """As kernels read it."""
        share = operations.share_of(self.top_p)
        log_min_p = math.log(self.min_p) if self.min_p else -math.inf
        penalties = (self.repetition_penalty, self.presence_penalty, self.frequency_penalty)
        random = (self.seed or 0, self.request)
        return _REQUEST.pack(*random, share, min(self.top_k, 2**63 - 1), self.temperature, log_min_p, *penalties, 0.0)


@dataclass(frozen=True)
class Choice:
    """One chosen token. logprob: of the adjusted logits, at temperature 1. margin: between the two largest logits.
    top: (token, logprob) of the most probable. All but the token None and () where they were not asked for. drafted: it
    had been proposed before it was chosen."""

    token: int
    logprob: float | None = None
    margin: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    drafted: bool = field(default=False, compare=False)


class SamplerRows:
    """Device memory of samplers of up to `rows` rows, each of which takes the first of them. Parts that only some
    requests need are made with the first of those."""

    def __init__(self, rows: int, vocab: int) -> None:
        self._rows, self._vocab = rows, vocab
        self.logits = factory.zeros((rows, vocab))
        self.requests = factory.zeros((rows, REQUEST_BYTES), "uint8")

    @cached_property
    def counts(self) -> GPUArray:
        """Occurrences of each token in the answer, plus 2^30 where the prompt has it."""
        return factory.zeros((self._rows, self._vocab), "int32")

    @cached_property
    def bias(self) -> GPUArray:
        """Numbers that are added to the logits."""
        return factory.zeros((self._rows, self._vocab))

    @cached_property
    def masks(self) -> TokenMasks:
        """The tokens that may be chosen."""
        return TokenMasks(self._rows, self._vocab)

    @cached_property
    def figures(self) -> GPUArray:
        """Logprob and margin, and MAX_TOP + 1 tokens (as int32) with their logprobs."""
        return factory.zeros((self._rows, 2 + 2 * (MAX_TOP + 1)))


class Sampler:
    """Chooses a token of each of R rows of logits, on the device, with the rows' requests in device memory.

    adjusts: whether any request has penalties, a bias or a mask. top: how many of the most probable tokens are told,
    with logprob and margin of the sampled one; 0 for none of that, which is fastest. shared: rows that others use, too,
    at other times.
    """

    def __init__(self, rows: int, vocab: int, adjusts: bool, top: int, shared: SamplerRows | None = None) -> None:
        shared = shared or SamplerRows(rows, vocab)
        self._top = top
        self.logits, self.requests = shared.logits[:rows], shared.requests[:rows]
        self.counts = shared.counts[:rows] if adjusts else None
        self.bias = shared.bias[:rows] if adjusts else None
        self.masks = shared.masks if adjusts else None
        # The tokens of even and of odd positions: a device writes them into the host's memory.
        self._pinned = None if is_sim() else pinned_empty((2, rows), "int32")
        self._tokens = factory.zeros((2, rows), "int32") if self._pinned is None else device_view(self._pinned)
        self.figures = shared.figures[:rows] if top else None

    def load(self, row: int, sampling: Sampling, prompt: list[int], answer: list[int]) -> None:
        """Set the request of a row and its answer so far."""
        import numpy as np

        native.copy_from_host(self.requests[row], np.frombuffer(sampling.packed(), np.uint8))
        if self.counts is None or self.bias is None:
            return
        vocab = self.logits.shape[1]
        counts = np.bincount(np.asarray(answer, np.int64), minlength=vocab).astype(np.int32)
        counts[np.asarray(prompt, np.int64)] |= _IN_PROMPT
        native.copy_from_host(self.counts[row], counts)
        native.copy_from_host(self.bias[row], _bias(sampling, vocab))

    def choose(self, rows: Batch, bests: GPUArray | None = None) -> None:
        """The token after each row: tokens[i] is replaced by it, positions[i] goes up by one.

        bests: what LinearBF16.project() left there with these logits, of one row; a greedy choice then reads no logits.
        """
        if not host.computes():
            self._on_device(rows, None if self.counts is not None else bests)
            return
        words = None if self.masks is None else self.masks.words
        extra = [x for x in (self.counts, self.bias, words, self.figures) if x is not None]
        arrays = [self.logits, self.requests, rows.tokens, rows.positions, self._tokens, *extra]
        native.host_launch("sample", lambda: self._on_host(rows), arrays)

    def read(self, rows: Batch, tops: list[int | None]) -> list[Choice]:
        """The chosen tokens; waits for them. tops: Sampling.top of each row."""
        tokens = rows.tokens.to_numpy().tolist()
        if self.figures is None:
            return [Choice(token) for token in tokens]
        figures = self.figures.to_numpy()
        numbers = figures.view("int32")[:, 2 : 3 + MAX_TOP]
        return [
            Choice(token)
            if top is None
            else Choice(
                token,
                float(row[0]),
                float(row[1]),
                tuple((int(n), float(p)) for n, p in zip(numbers[i][:top], row[3 + MAX_TOP :][:top], strict=True)),
            )
            for i, (token, top, row) in enumerate(zip(tokens, tops, figures, strict=True))
        ]

    @property
    def adjusts(self) -> bool:
        """True if it changes logits before a token is chosen."""
        return self.counts is not None

    @property
    def is_plain(self) -> bool:
        """True if tokens_at() is all that there is to read."""
        return self.figures is None

    def tokens_at(self, positions: list[int]) -> list[Choice]:
        """The tokens chosen for a position of each row, once that is done; kept until the second choice after it."""
        tokens = (self._tokens.to_numpy() if self._pinned is None else self._pinned).tolist()
        return [_plain(tokens[position & 1][row]) for row, position in enumerate(positions)]

    def _on_device(self, rows: Batch, bests: GPUArray | None) -> None:
        count, vocab = self.logits.shape
        block_bests = 0 if bests is None else bests.size
        call = struct.pack("<q4i", vocab, self.counts is not None, self._top, block_bests, 0)  # sampling.cu: ChooseCall
        block, state = (_THREADS, 1, 1), (rows.tokens, rows.positions)
        if self.counts is not None and self.bias is not None and self.masks is not None:
            grid = -(-vocab // _ADJUST_THREADS), count, 1
            changed = self.logits, self.requests, self.counts, self.bias, self.masks.words
            kernels.launch(SOURCE.of("pk::adjust"), grid, (_ADJUST_THREADS, 1, 1), *changed, call)
        counts = rows.tokens if self.counts is None else self.counts
        operands = self.logits, self.requests, *state, counts, rows.tokens if bests is None else bests, self._tokens
        kernels.launch(SOURCE.of("pk::choose_tokens", overlapping=True), (count, 1, 1), block, *operands, call)
        if self.figures is not None:
            kernels.launch(SOURCE.of("pk::tell"), (count, 1, 1), block, self.logits, rows.tokens, self.figures, call)

    def _on_host(self, rows: Batch) -> None:
        import numpy as np

        tokens, positions = host.memory(rows.tokens), host.memory(rows.positions)
        logits, packed = host.memory(self.logits), host.memory(self.requests)
        for row in range(rows.count):
            seed, request, share, top_k, *numbers = _REQUEST.unpack(packed[row].tobytes())
            temperature, log_min_p, repetition, presence, frequency, _ = numbers
            values = np.where(np.isnan(logits[row]), np.float32(-np.inf), logits[row])
            if self.counts is not None and self.bias is not None and self.masks is not None:
                counts = host.memory(self.counts)[row]
                values = _adjusted(values, counts, host.memory(self.bias)[row], repetition, presence, frequency)
                values = np.where(self.masks.allowed(row, values.size), values, np.float32(-np.inf))
            bits = operations.random_bits(seed, int(positions[row]) + 1, request) if temperature else 0
            token = operations.choice_on_host(values, temperature, top_k, share, log_min_p, bits)
            if self.counts is not None:
                host.memory(self.counts)[row, token] += 1
            if self.figures is not None:
                report(values, token, self._top, host.memory(self.figures)[row])
            tokens[row] = token
            positions[row] += 1
            host.memory(self._tokens)[positions[row] & 1, row] = token


@lru_cache(1 << 16)
def _plain(token: int) -> Choice:
    return Choice(token)


def device_view(memory: np.ndarray[Any, Any]) -> GPUArray:
    """Pinned memory as the device has it."""
    return native.wrap(memory.ctypes.data, memory.nbytes, memory.shape, memory.dtype, memory)


def _bias(sampling: Sampling, vocab: int) -> np.ndarray[Any, Any]:
    """The numbers that a request adds to the logits."""
    import numpy as np

    bias = np.zeros(vocab, np.float32)
    for token, value in sampling.logit_bias.items():
        if token >= vocab:
            raise InvalidSpecError(f"logit_bias: there is no token {token}, the model has {vocab}", "logit_bias")
        bias[token] = value
    return bias


def _adjusted(logits: Any, counts: Any, bias: Any, repetition: float, presence: float, frequency: float) -> Any:
    import numpy as np

    often = (counts & np.int32(_IN_PROMPT - 1)).astype(np.float32)
    factor = np.float32(repetition)
    repeated = np.where(logits > 0, logits / factor, logits * factor)
    result = np.where(counts != 0, repeated, logits)
    result = result - np.where(often > 0, np.float32(presence), np.float32(0)) - np.float32(frequency) * often
    return result + bias


def report(logits: Any, token: int, top: int, figures: Any) -> None:
    """Logprob of the token, margin of the two largest logits, and the most probable tokens, ties by index."""
    import numpy as np

    count = min(top, logits.size)
    part = np.argpartition(-logits, count - 1)[:count]
    part = np.flatnonzero(logits >= logits[part].min()) if count < logits.size else part
    best = part[np.lexsort((part, -logits[part]))][:count]
    largest = logits[best[0]]
    total = largest + np.log(np.exp(logits - largest, dtype=np.float32).sum(dtype=np.float64)).astype(np.float32)
    figures[0] = logits[token] - total
    figures[1] = largest - logits[best[1]] if count > 1 else np.inf
    figures.view(np.int32)[2 : 2 + count] = best
    figures[3 + MAX_TOP : 3 + MAX_TOP + count] = logits[best] - total
