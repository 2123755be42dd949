"""Generation: an answer as it comes, token by token, to be iterated over, awaited or stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from pygpukit.llm.engine.drafting import Drafting
from pygpukit.llm.engine.engine import Engine
from pygpukit.llm.engine.request import Terms
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.llm.engine.sequence import Constraint, Sequence, Standing
from pygpukit.llm.grammar import Grammar
from pygpukit.llm.text import AnswerText, Piece
from pygpukit.models.tokenizer.tokenizer import Tokenizer
from pygpukit.nn.linear.adapters import Adapter


@dataclass(frozen=True)
class Alternative:
    """A token that could have come: its text and the natural logarithm of its probability. raw: its bytes, which may be
    a part of a character."""

    token_id: int
    text: str
    logprob: float
    raw: bytes = b""


@dataclass(frozen=True)
class Token:
    """One token of an answer.

    text: what it adds to the answer, thinking: what it adds to the thinking; both may be "", where a character is not
    whole yet or a stop string may have begun. raw: its own bytes. logprob, margin (between the two largest logits) and
    top (the most probable tokens): where `top` was asked for, else None and (). seconds: since the request came.
    finish_reason: None, and of the last token "stop" (an end token or a stop string) or "length" (max_new_tokens, or
    the context is full). drafted: it had been proposed, and the model chose it, too.
    """

    token_id: int
    text: str
    thinking: str = ""
    index: int = 0
    seconds: float = 0.0
    logprob: float | None = None
    margin: float | None = None
    top: tuple[Alternative, ...] = ()
    finish_reason: str | None = None
    raw: bytes = b""
    drafted: bool = False


@dataclass(frozen=True)
class Completion:
    """A finished answer. str() is its text. finish_reason: as Token's, or "cancelled" by
    stop(), or "deadline"."""

    text: str
    thinking: str
    tokens: tuple[Token, ...]
    finish_reason: str
    prompt_tokens: int
    seed: int | None
    figures: Figures

    @property
    def token_ids(self) -> list[int]:
        """The ids of the answer's tokens, the end token too."""
        return [token.token_id for token in self.tokens]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Figures:
    """Cost of an answer so far. reused_tokens: tokens of the prompt that were in the cache already. Times in seconds:
    first_token since the request came, decode from the first token to the newest. kv_bytes: of this sequence. drafted:
    tokens that were proposed (`speculate=`), accepted: those of them that the model chose, too."""

    prompt_tokens: int
    reused_tokens: int
    new_tokens: int
    context: int
    kv_bytes: int
    first_token: float | None
    decode: float
    drafted: int = 0
    accepted: int = 0

    @property
    def tokens_per_second(self) -> float | None:
        """The rate after the first token; None before there are two."""
        return (self.new_tokens - 1) / self.decode if self.new_tokens > 1 and self.decode > 0 else None

    @property
    def context_used(self) -> int:
        """Tokens of prompt and answer."""
        return self.prompt_tokens + self.new_tokens


@dataclass(frozen=True)
class Limits:
    """When an answer ends: after so many tokens, at these tokens, at these strings."""

    max_new_tokens: int
    end_tokens: frozenset[int] = frozenset()
    stop: tuple[str, ...] = ()
    thinking: bool | None = None  # whether the prompt ends within a thinking block; None: there are none
    shown: tuple[str, ...] = ()  # control tokens that are text of the answer
    grammar: Grammar | None = None  # the form of the answer
    adapter: Adapter | None = None  # that its products have


@dataclass(eq=False)
class Answer:
    """One answer: its sequence on the engine, its text, and how it ended. tokenizer: None for token ids only."""

    engine: Engine
    sequence: Sequence
    tokenizer: Tokenizer | None
    limits: Limits
    started: float = field(default_factory=time.perf_counter)
    tokens: list[Token] = field(default_factory=list)
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        tokenizer, limits = self.tokenizer, self.limits
        self._text = None if tokenizer is None else AnswerText(tokenizer, limits.stop, limits.thinking, limits.shown)

    def take(self, choice: Choice) -> Token:
        """The token that was chosen, with its text; sets finish_reason where the answer ends."""
        ends = choice.token in self.limits.end_tokens
        piece = Piece() if self._text is None or ends else self._text.push(choice.token)
        if ends or piece.ended:
            self.finish_reason = "stop"
        elif len(self.tokens) + 1 >= self.sequence.max_new_tokens:
            self.finish_reason = "length"
        if self._text is not None and self.finish_reason is not None and not piece.ended:
            rest = self._text.finish()
            piece = Piece(piece.text + rest.text, piece.thinking + rest.thinking)
        token = Token(
            choice.token,
            piece.text,
            piece.thinking,
            len(self.tokens),
            time.perf_counter() - self.started,
            choice.logprob,
            choice.margin,
            tuple(self._alternative(number, logprob) for number, logprob in choice.top),
            self.finish_reason,
            self._bytes_of(choice.token),
            choice.drafted,
        )
        self.tokens.append(token)
        return token

    def _alternative(self, number: int, logprob: float) -> Alternative:
        text = "" if self.tokenizer is None else self.tokenizer.decode([number])
        return Alternative(number, text, logprob, self._bytes_of(number))

    def _bytes_of(self, token: int) -> bytes:
        return b"" if self.tokenizer is None else self.tokenizer.token_bytes(token)

    def figures(self) -> Figures:
        """Its cost so far."""
        sequence, tokens = self.sequence, self.tokens
        first = tokens[0].seconds if tokens else None
        drafting = sequence.drafting
        return Figures(
            len(sequence.prompt),
            sequence.reused,
            len(tokens),
            self.engine.context,
            self.engine.loop.cache.bytes_of(len(sequence.prompt) + len(tokens)),
            first,
            tokens[-1].seconds - tokens[0].seconds if tokens else 0.0,
            0 if drafting is None else drafting.drafted,
            0 if drafting is None else drafting.accepted,
        )

    @property
    def reason(self) -> str | None:
        """Why it ended, where stop() did not end it; None while it goes on."""
        return "deadline" if self.finish_reason is None and self.sequence.expired else self.finish_reason

    def completion(self) -> Completion:
        """The answer as far as it has come."""
        return Completion(
            "".join(token.text for token in self.tokens),
            "".join(token.thinking for token in self.tokens),
            tuple(self.tokens),
            self.reason or "cancelled",
            len(self.sequence.prompt),
            self.sequence.sampling.seed,
            self.figures(),
        )


class Generation:
    """An answer that comes token by token: iterate, or `async for`. A step is computed when its token is asked for, for
    all answers of the model that go on, and the next one begun with it where the device is not shared by turns.

    Any number may be open on one model: those that the KV cache has no room for wait their turn. stop(), from any
    thread, ends the iteration within one step. Leaving early, or close(), gives its room in the cache back; so does
    losing the last reference.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer | None,
        prompt: list[int],
        sampling: Sampling,
        limits: Limits,
        terms: Terms = Terms(),  # noqa: B008 - nothing of it can be changed
        constraint: Constraint | None = None,
        drafting: Drafting | None = None,
    ) -> None:
        count, ends = limits.max_new_tokens, limits.end_tokens
        sequence = engine.open(prompt, sampling, count, ends, terms, constraint, drafting, limits.adapter)
        try:
            self._loop, self._answer = engine.loop, Answer(engine, sequence, tokenizer, limits)
        except BaseException:  # nobody could close what was never constructed
            engine.loop.close(sequence)
            raise
        self._closed = False

    def __iter__(self) -> Iterator[Token]:
        return self

    def __next__(self) -> Token:
        answer = self._answer
        try:
            choice = None if self._closed else self._loop.next(answer.sequence)
            token = None if choice is None else answer.take(choice)
        except BaseException:
            self.close()
            raise
        if token is None:
            self.close()
            raise StopIteration
        if answer.finish_reason is not None:
            self.close()
        return token

    def __aiter__(self) -> AsyncIterator[Token]:
        return self

    async def __anext__(self) -> Token:
        token = await asyncio.to_thread(next, self, None)
        if token is None:
            raise StopAsyncIteration
        return token

    @property
    def has_news(self) -> bool:
        """True if there is a token without a step, or none will come."""
        return self._closed or self._answer.sequence.has_news

    def stop(self) -> None:
        """No further token. Safe from any thread."""
        self.close()

    def close(self) -> None:
        """Give its room in the cache back. The answer so far stays readable."""
        if not self._closed:
            self._closed = True
            self._loop.close(self._answer.sequence)

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            if (open_range := self._answer.sequence.open_range) is not None:
                open_range.leave()
            self.close()

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def complete(self) -> Completion:
        """The rest of the answer, all at once."""
        for _ in self:
            pass
        return self.completion

    @property
    def completion(self) -> Completion:
        """The answer as far as it has come."""
        return self._answer.completion()

    @property
    def finish_reason(self) -> str | None:
        """Why it ended: "stop", "length", "deadline" or "cancelled"; None while it goes on."""
        reason = self._answer.reason
        return reason if reason is not None else "cancelled" if self._closed else None

    @property
    def standing(self) -> Standing:
        """Its place: waiting or running, how many go before it, its tokens, and how long it waited."""
        return self._loop.standing(self._answer.sequence)

    @property
    def figures(self) -> Figures:
        """Counts and times so far."""
        return self._answer.figures()

    @property
    def seed(self) -> int | None:
        """The seed of this answer, drawn where none was given: with it the answer repeats."""
        return self._answer.sequence.sampling.seed
