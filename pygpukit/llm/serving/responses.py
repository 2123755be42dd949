"""/v1/responses: requests as chats, and answers as the items and events of that protocol."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.serving import fields
from pygpukit.llm.serving.answers import usage
from pygpukit.llm.serving.calls import Calls, Delta
from pygpukit.llm.serving.errors import RequestError, shown
from pygpukit.llm.serving.requests import Asked, chat_of

if TYPE_CHECKING:
    from pygpukit.llm.generation import Completion, Token
    from pygpukit.llm.serving.answers import CallTools

_SAME = ("model", "temperature", "top_p", "stream", "user", "parallel_tool_calls", "reasoning")
_OWN = ("top_k", "min_p", "seed", "speculate")  # beyond the protocol
_KNOWN = {*_SAME, *_OWN, "input", "instructions", "max_output_tokens", "tools", "tool_choice", "text"}
# Fields that say how it is kept, billed or watched; and, of those that are not there, the values that ask for nothing.
_IGNORED = {"metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "stream_options"}
_REFUSED: dict[str, tuple[Any, ...]] = {
    "previous_response_id": (),
    "conversation": (),
    "background": (False,),
    "include": ([],),
    "prompt": (),
    "max_tool_calls": (),
    "truncation": ("disabled",),
    "top_logprobs": (0,),
}
_TEXTS = ("input_text", "output_text", "text")
_CALLED = {
    "messages": "input",
    "response_format": "text",
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning",
}


def parsed(raw: bytes) -> tuple[Asked, dict[str, Any]]:
    """A request of /v1/responses as a chat, and the fields that its answer repeats. Raises RequestError."""
    body = fields.parsed(raw, _KNOWN | _IGNORED, _REFUSED)
    text = fields.mapping(body, "text")
    chat: dict[str, Any] = {name: body[name] for name in (*_SAME, *_OWN) if name in body}
    chat["messages"] = _messages(body)
    if "max_output_tokens" in body:
        chat["max_completion_tokens"] = body["max_output_tokens"]
    if text.get("format") is not None:
        chat["response_format"] = text["format"]
    if "tools" in body:
        chat["tools"] = _tools(body["tools"])
    if "tool_choice" in body:
        chat["tool_choice"] = body["tool_choice"]
    try:
        asked = replace(chat_of(chat), usage=True)
    except RequestError as error:
        raise renamed(error) from None
    repeated = {
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata", {}),
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "reasoning": body.get("reasoning"),
        "temperature": body.get("temperature"),
        "text": {"format": text.get("format") or {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": body.get("top_p"),
    }
    return asked, repeated


def renamed(error: RequestError) -> RequestError:
    """An error of a chat, with the name that the field has in a request of /v1/responses."""
    first = (error.param or "").partition("[")[0]
    return RequestError(str(error), _CALLED.get(first, error.param), error.status, error.code, error.retry_s)


class ResponseItems:
    """An answer as items, and as the events of a stream; see Answer, whose methods these are."""

    def __init__(self, repeated: Mapping[str, Any], model: str, tools: CallTools | None) -> None:
        self._fields = {"model": model, **repeated}
        self._key, self._created = _key("resp"), int(time.time())
        self._calls = None if tools is None else Calls(*tools)
        self._output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None  # the item that grows
        self._number = 0  # of events
        self._reason = ""

    def complete(
        self, completions: Sequence[Completion], samples: int, prompts: Sequence[Sequence[Token]] = ()
    ) -> dict[str, Any]:
        """The answer at once."""
        (completion,) = completions
        for token in completion.tokens:
            list(self.token(0, token))
        list(self.end(0, completion.finish_reason))
        return self._body(completions)

    def begin(self, index: int, prompt: Sequence[Token] = ()) -> Iterator[dict[str, Any]]:
        """The events before the first token."""
        yield self._event("created", response=self._body(None))
        yield self._event("in_progress", response=self._body(None))

    def token(self, index: int, token: Token) -> Iterator[dict[str, Any]]:
        """The events of a token."""
        if token.thinking:
            yield from self._grow("reasoning", token.thinking)
        deltas = [Delta(token.text)] if self._calls is None else self._calls.push(token.text)
        yield from self._deltas(deltas)

    def end(self, index: int, reason: str) -> Iterator[dict[str, Any]]:
        """The events that end the last item."""
        if self._calls is not None:
            yield from self._deltas(self._calls.finish())
        yield from self._close()
        self._reason = reason

    def usage(self, completions: Sequence[Completion], samples: int) -> dict[str, Any]:
        """The last event, with the whole answer and the counts."""
        body = self._body(completions)
        return self._event(body["status"], response=body)

    def _deltas(self, deltas: Sequence[Delta]) -> Iterator[dict[str, Any]]:
        for delta in deltas:
            if delta.content:
                yield from self._grow("message", delta.content)
            elif delta.name:
                yield from self._close()
                yield from self._start("function_call", call_id=delta.key, name=delta.name, arguments="")
            elif delta.arguments and self._open is not None:
                self._open["arguments"] += delta.arguments
                yield self._at("function_call_arguments.delta", delta=delta.arguments)

    def _grow(self, kind: str, text: str) -> Iterator[dict[str, Any]]:
        """Text of a message, or of the thinking before it."""
        item = self._open
        if item is None or item["type"] != kind:
            yield from self._close()
            if kind == "message":
                yield from self._start(kind, role="assistant", content=[])
                part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            else:
                yield from self._start(kind, summary=[], content=[])
                part = {"type": "reasoning_text", "text": ""}
            assert self._open is not None
            self._open["content"].append(part)
            yield self._at("content_part.added", content_index=0, part=dict(part))
            item = self._open
        part = item["content"][0]
        part["text"] += text
        more: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
        yield self._at(f"{part['type']}.delta", content_index=0, delta=text, **more)

    def _start(self, kind: str, **more: Any) -> Iterator[dict[str, Any]]:
        prefix = {"message": "msg", "reasoning": "rs", "function_call": "fc"}[kind]
        self._open = {"type": kind, "id": _key(prefix), "status": "in_progress", **more}
        self._output.append(self._open)
        yield self._event("output_item.added", output_index=len(self._output) - 1, item=dict(self._open))

    def _close(self) -> Iterator[dict[str, Any]]:
        """The item that grows is whole."""
        item = self._open
        if item is None:
            return
        if item["type"] == "function_call":
            yield self._at("function_call_arguments.done", name=item["name"], arguments=item["arguments"])
        else:
            part = item["content"][0]
            more: dict[str, Any] = {"logprobs": []} if item["type"] == "message" else {}
            yield self._at(f"{part['type']}.done", content_index=0, text=part["text"], **more)
            yield self._at("content_part.done", content_index=0, part=part)
        item["status"] = "completed"
        yield self._event("output_item.done", output_index=len(self._output) - 1, item=item)
        self._open = None

    def _at(self, kind: str, **more: Any) -> dict[str, Any]:
        """An event of the item that grows."""
        assert self._open is not None
        return self._event(kind, item_id=self._open["id"], output_index=len(self._output) - 1, **more)

    def _event(self, kind: str, **more: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": f"response.{kind}", "sequence_number": self._number - 1, **more}

    def _body(self, completions: Sequence[Completion] | None) -> dict[str, Any]:
        """The response as far as it has come; completions: None while it goes on."""
        is_cut = self._reason == "length"
        return {
            "id": self._key,
            "object": "response",
            "created_at": self._created,
            "status": "in_progress" if completions is None else "incomplete" if is_cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": list(self._output),
            "previous_response_id": None,
            "store": False,
            "truncation": "disabled",
            "usage": None if completions is None else _counts(completions),
            **self._fields,
        }


def _counts(completions: Sequence[Completion]) -> dict[str, Any]:
    counts = usage(completions)
    thought = sum(bool(token.thinking) for completion in completions for token in completion.tokens)
    return {
        "input_tokens": counts["prompt_tokens"],
        "input_tokens_details": counts["prompt_tokens_details"],
        "output_tokens": counts["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": counts["total_tokens"],
    }


def _messages(body: Mapping[str, Any]) -> list[Any]:
    """The messages of a chat that `instructions` and `input` make."""
    messages: list[Any] = []
    instructions = body.get("instructions")
    if instructions is not None:
        if not isinstance(instructions, str):
            raise RequestError(f"instructions is {shown(instructions)}, must be a text", "instructions")
        messages.append({"role": "system", "content": instructions})
    items = body.get("input")
    if isinstance(items, str):
        return [*messages, {"role": "user", "content": items}]
    if not isinstance(items, list) or not items:
        raise RequestError("input must be a text, or a list of at least one item", "input")
    for place, item in enumerate(items):
        kind = item.get("type", "message") if isinstance(item, dict) else item
        if kind == "message":
            messages.append({"role": item.get("role"), "content": _content(item.get("content"))})
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            output = _content(item.get("output"))
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
        elif kind != "reasoning":  # the thinking of an earlier answer is not read again
            raise RequestError(f"input[{place}] is of type {shown(kind)}, which is not understood", "input")
    return messages


def _content(content: Any) -> Any:
    """Content with its parts as a chat calls them."""
    if not isinstance(content, list):
        return content
    return [
        {**part, "type": "text"} if isinstance(part, dict) and part.get("type") in _TEXTS else part for part in content
    ]


def _tools(tools: Any) -> Any:
    """Tools as a chat has them, their function in a field of its own."""
    if not isinstance(tools, list):
        return tools
    return [
        {"type": tool.get("type"), "function": {key: value for key, value in tool.items() if key != "type"}}
        if isinstance(tool, dict) and "function" not in tool
        else tool
        for tool in tools
    ]


def _key(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"
