"""A server of a model without weights, for browser tests: it says its address and key, and is told, a line each, the
number of a question, from 1, and how many tokens of its answer may come."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import model_files

from pygpukit.core.errors import GPUError
from pygpukit.llm.generation import Completion, Figures, Token
from pygpukit.llm.serving.server import serve
from pygpukit.models.tokenizer.tokenizer import Tokenizer


class GatedGeneration:
    """The words of a question again, each when it may come; the word "fail" fails."""

    def __init__(self, model: GatedModel, question: int, words: list[str]) -> None:
        self._model, self._question, self._words = model, question, words
        self._given: list[Token] = []
        self._stopped = threading.Event()

    @property
    def has_news(self) -> bool:
        count = len(self._given)
        return self._stopped.is_set() or count == len(self._words) or self._model.allowed[self._question] > count

    def __next__(self) -> Token:
        index = len(self._given)
        if self._stopped.is_set() or index == len(self._words):
            raise StopIteration
        word = self._words[index]
        if word == "fail":
            raise GPUError("the device fell off the bus")
        reason = "stop" if index + 1 == len(self._words) else None
        self._given.append(Token(index, f"{word} ", index=index, finish_reason=reason, raw=word.encode()))
        return self._given[-1]

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        pass

    @property
    def completion(self) -> Completion:
        reason = "stop" if len(self._given) == len(self._words) else "cancelled"
        text = "".join(token.text for token in self._given)
        return Completion(
            text, "", tuple(self._given), reason, 3, None, Figures(3, 0, len(self._given), 64, 0, 0.0, 0.0)
        )


class GatedModel:
    """What a server uses of a model. It says how many messages it was asked with, then the last one's words."""

    name, context = "stub", 4096

    def __init__(self) -> None:
        self.allowed: Counter[int] = Counter()  # tokens that may come, by the number of a question
        self._questions = 0
        self.tokenizer = Tokenizer.from_json(model_files.tokenizer_json())
        self.tokenizer.chat_template = "{{ messages }}"

    def check(self, prompt: Any) -> None:
        pass

    def run_until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            time.sleep(0.005)

    def stream(self, prompt: Any, limit: int, **settings: Any) -> GatedGeneration:
        self._questions += 1
        return GatedGeneration(self, self._questions, [str(len(prompt)), *prompt[-1]["content"].split()])


if __name__ == "__main__":
    model: Any = GatedModel()
    with serve(model, port=0, models=["all-minilm-l6-v2", "whisper-base", "smollm2-135m-instruct"]) as server:
        print(server.url.removesuffix("v1"), server.token, flush=True)
        for line in sys.stdin:
            question, count = map(int, line.split())
            model.allowed[question] += count
