"""A model without weights that answers as a script says, with the interface that chats need."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

from pygpukit.llm.generation import Alternative, Figures, Token


class StubGeneration:
    """The words of an answer as tokens. gate: a semaphore that each token waits for, or None."""

    def __init__(self, words: list[str], prompt: int, most: int | None, gate: threading.Semaphore | None) -> None:
        self._words = iter(enumerate(words))
        self._prompt, self._most, self._gate = prompt, most, gate
        self._stopped = threading.Event()
        self.count, self.closed = 0, False
        self.finish_reason: str | None = None

    def __iter__(self) -> Iterator[Token]:
        return self

    def __next__(self) -> Token:
        while self._gate is not None and not self._stopped.is_set() and not self._gate.acquire(timeout=0.02):
            pass
        if self._stopped.is_set():
            self.finish_reason = "cancelled"
            raise StopIteration
        try:
            index, word = next(self._words)
        except StopIteration:
            self.finish_reason = "stop"
            raise
        if self._most is not None and index >= self._most:
            self.finish_reason = "length"
            raise StopIteration
        self.count = index + 1
        top = (Alternative(index, word, math.log(0.75)), Alternative(0, "else", math.log(0.25)))
        thinking = word.startswith("?")
        return Token(
            index, "" if thinking else word, word[1:] if thinking else "", index, 0.1, math.log(0.75), 1.0, top
        )

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        self.closed = True

    @property
    def figures(self) -> Figures:
        return Figures(self._prompt, 0, self.count, 512, 1024 * (self._prompt + self.count), 0.1, self.count / 100)


class StubModel:
    """answer(messages) gives the words of an answer. gated: each token waits for release(), so that tests say when."""

    name = "stub"

    def __init__(self, answer: Any = None, gated: bool = False) -> None:
        self._answer = answer or (lambda messages: [f"echo {len(messages)}: ", *messages[-1]["content"].split(" ")])
        self._gate = threading.Semaphore(0) if gated else None
        self.asked: list[list[dict[str, str]]] = []
        self.settings: dict[str, Any] = {}
        self.generations: list[StubGeneration] = []

    def release(self, count: int = 1) -> None:
        """Let so many tokens come."""
        assert self._gate is not None
        self._gate.release(count)

    def chat(self, messages: Any, max_new_tokens: int | None = None, **settings: Any) -> StubGeneration:
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        self.asked.append(list(messages))
        self.settings = settings
        prompt = sum(len(one["content"].split()) for one in messages)
        made = StubGeneration(list(self._answer(messages)), prompt, max_new_tokens, self._gate)
        self.generations.append(made)
        return made
