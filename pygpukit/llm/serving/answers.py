"""Answers of OpenAI's protocol: whole ones, and pieces of a stream."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pygpukit.llm.serving.calls import Calls, Delta

if TYPE_CHECKING:
    from pygpukit.llm.generation import Alternative, Completion, Token
    from pygpukit.llm.serving.call_formats import CallFormat

CallTools: TypeAlias = "tuple[CallFormat, frozenset[str]]"  # how a model writes calls, and the names of the tools


class Written(Protocol):
    """An answer as a protocol writes it: at once, or in the pieces of a stream."""

    def complete(
        self, completions: Sequence[Completion], samples: int, prompts: Sequence[Sequence[Token]] = ()
    ) -> dict[str, Any]: ...

    def begin(self, index: int, prompt: Sequence[Token] = ()) -> Iterator[dict[str, Any]]: ...

    def token(self, index: int, token: Token) -> Iterator[dict[str, Any]]: ...

    def end(self, index: int, reason: str) -> Iterator[dict[str, Any]]: ...

    def usage(self, completions: Sequence[Completion], samples: int) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Answer:
    """The fields that all pieces of one answer share. chat: of /v1/chat/completions, else of /v1/completions.

    tools: how the model writes calls, and the names of the tools; None where calls are text.
    """

    chat: bool
    logprobs: bool
    model: str
    tools: CallTools | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    key: str = field(default_factory=lambda: secrets.token_hex(12))
    _calls: dict[int, Calls] = field(default_factory=dict)  # of the choices of a stream

    def complete(
        self, completions: Sequence[Completion], samples: int, prompts: Sequence[Sequence[Token]] = ()
    ) -> dict[str, Any]:
        """The answer at once: a choice for each completion. samples: those of each prompt. prompts: the tokens of each,
        where answers repeat them."""
        choices = [
            self._choice(index, completion, prompts[index // samples] if prompts else ())
            for index, completion in enumerate(completions)
        ]
        return self._body(choices, stream=False) | {"usage": usage(completions, samples)}

    def begin(self, index: int, prompt: Sequence[Token] = ()) -> Iterator[dict[str, Any]]:
        """The pieces before the first token of a choice. prompt: its tokens, where the answer repeats them."""
        if self.chat:
            yield self._piece(index, {"role": "assistant", "content": ""})
        if prompt:
            text = "".join(token.text for token in prompt)
            yield self._piece(index, {"content": text}, logprobs=self._logprobs(prompt))

    def token(self, index: int, token: Token) -> Iterator[dict[str, Any]]:
        """The piece that a token adds to a choice; nothing while its text is incomplete."""
        if token.thinking:
            yield self._piece(
                index, {"reasoning_content": token.thinking} if self.chat else {"content": token.thinking}
            )
        deltas: list[dict[str, Any]] = [{"content": token.text}] if token.text else []
        if self.tools is not None:
            calls = self._calls.setdefault(index, Calls(*self.tools))
            deltas = [_delta(delta) for delta in calls.push(token.text)]
        if self.logprobs:
            deltas = deltas or [{"content": ""}]
        for place, delta in enumerate(deltas):
            yield self._piece(index, delta, logprobs=None if place else self._logprobs([token]))

    def end(self, index: int, reason: str) -> Iterator[dict[str, Any]]:
        """The last pieces of a choice."""
        calls = self._calls.pop(index, None)
        if calls is not None:
            for delta in calls.finish():
                yield self._piece(index, _delta(delta))
        yield self._piece(index, {}, _reason(reason, calls))

    def usage(self, completions: Sequence[Completion], samples: int) -> dict[str, Any]:
        """The piece with the counts, after all choices."""
        return self._body([], stream=True) | {"usage": usage(completions, samples)}

    def _choice(self, index: int, completion: Completion, prompt: Sequence[Token]) -> dict[str, Any]:
        common = {
            "index": index,
            "finish_reason": completion.finish_reason,
            "logprobs": self._logprobs([*prompt, *completion.tokens]),
        }
        if not self.chat:
            text = "".join(token.text for token in prompt)
            return common | {"text": text + completion.thinking + completion.text}
        message: dict[str, Any] = {"role": "assistant", "content": completion.text, "refusal": None}
        if self.tools is not None:
            calls = Calls(*self.tools)
            message |= _gathered([*calls.push(completion.text), *calls.finish()])
            common["finish_reason"] = _reason(completion.finish_reason, calls)
        if completion.thinking:
            message["reasoning_content"] = completion.thinking
        return common | {"message": message}

    def _piece(
        self, index: int, delta: dict[str, Any], reason: str | None = None, logprobs: Any = None
    ) -> dict[str, Any]:
        content = {"delta": delta} if self.chat else {"text": delta.get("content", "")}
        choice = {"index": index, "finish_reason": reason, "logprobs": logprobs, **content}
        return self._body([choice], stream=True)

    def _body(self, choices: list[dict[str, Any]], stream: bool) -> dict[str, Any]:
        kind = ("chat.completion.chunk" if stream else "chat.completion") if self.chat else "text_completion"
        key = ("chatcmpl-" if self.chat else "cmpl-") + self.key
        return {"id": key, "object": kind, "created": self.created, "model": self.model, "choices": choices}

    def _logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        if not self.logprobs:
            return None
        if self.chat:
            return {"content": [_token_fields(token) for token in tokens], "refusal": None}
        offsets, length = [], 0
        for token in tokens:
            offsets.append(length)
            length += len(token.text)
        return {
            "tokens": [_text(token.raw) for token in tokens],
            "token_logprobs": [token.logprob for token in tokens],
            "top_logprobs": [
                None if token.logprob is None else {_text(one.raw): one.logprob for one in _possible(token)}
                for token in tokens
            ],
            "text_offset": offsets,
        }


def usage(completions: Sequence[Completion], samples: int = 1) -> dict[str, Any]:
    """Tokens of prompts, each once, and answers, `samples` to a prompt."""
    prompt = sum(completion.prompt_tokens for completion in completions[::samples])
    answer = sum(len(completion.tokens) for completion in completions)
    reused = sum(completion.figures.reused_tokens for completion in completions[::samples])
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": {"cached_tokens": reused},
    }


def _token_fields(token: Token) -> dict[str, Any]:
    others = [_entry(candidate.raw, candidate.logprob) for candidate in _possible(token)]
    return _entry(token.raw, token.logprob) | {"top_logprobs": others}


def _possible(token: Token) -> list[Alternative]:
    """The tokens that could have come, without those that a grammar left no probability."""
    return [candidate for candidate in token.top if candidate.logprob > -math.inf]


def _delta(delta: Delta) -> dict[str, Any]:
    """A piece of an answer with tools, as streams have it."""
    if delta.content:
        return {"content": delta.content}
    call: dict[str, Any] = {"index": delta.index}
    if delta.name:
        call |= {"id": delta.key, "type": "function"}
    named = {"name": delta.name} if delta.name else {}
    return {"tool_calls": [call | {"function": named | {"arguments": delta.arguments}}]}


def _gathered(deltas: Sequence[Delta]) -> dict[str, Any]:
    """The fields of a message that pieces make together."""
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        if delta.name:
            calls.append({"id": delta.key, "type": "function", "function": {"name": delta.name, "arguments": ""}})
        elif delta.arguments:
            calls[delta.index]["function"]["arguments"] += delta.arguments
    content = "".join(delta.content for delta in deltas)
    return {"content": content or None, "tool_calls": calls} if calls else {"content": content}


def _reason(reason: str, calls: Calls | None) -> str:
    """The reason why a choice ended: calls are one where nothing cut it off."""
    return "tool_calls" if calls is not None and calls.count and reason == "stop" else reason


def _entry(raw: bytes, logprob: float | None) -> dict[str, Any]:
    return {"token": _text(raw), "logprob": logprob, "bytes": list(raw)}


def _text(raw: bytes) -> str:
    """A token's bytes as text, U+FFFD for what is a part of a character."""
    return raw.decode(errors="replace")
