"""Requests of OpenAI's protocol: what they ask of a model, and a clear refusal of what is not there."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Field: what it is called in Sampling.
_NUMBERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "min_p": "min_p",
    "top_k": "top_k",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
}
_INTEGERS = {"top_k", "seed", "max_tokens", "max_completion_tokens", "n", "best_of", "top_logprobs"}
# They say how it is kept or billed, and nothing about the answer.
_IGNORED = {"metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "parallel_tool_calls"}
# Field: the values that ask for nothing.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": (),
    "verbosity": (),
    "web_search_options": (),
}
_DEFAULTS = {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05}
_COMMON = {"model", "user", "n", "stream", "stream_options", "stop", "max_tokens", "logit_bias", "logprobs", *_NUMBERS}
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
MAX_TOP_LOGPROBS = 20
MAX_STOP_CHARACTERS = 4096  # characters of all stop strings
MAX_USER_CHARACTERS = 256
MAX_SAMPLES = 128


class RequestError(Exception):
    """An error of a request. status: of the HTTP answer; param and code as OpenAI's errors have them."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        status: int = 400,
        code: str | None = None,
        retry_s: int | None = None,
    ) -> None:
        super().__init__(message.encode("utf-8", "replace").decode())  # whatever it quotes can be sent
        self.param, self.status, self.code, self.retry_s = param, status, code, retry_s

    def body(self) -> dict[str, Any]:
        """The error as the protocol has it."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


@dataclass(frozen=True)
class Asked:
    """A request that was understood. prompts: messages of a chat, or one or more texts or lists of token ids."""

    model: str
    prompts: tuple[Any, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    max_new_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    usage: bool = False  # a last piece of a stream with the counts
    logprobs: bool = False
    user: str = ""  # among whom turns are shared
    samples: int = 1  # answers to each prompt


def chat(raw: bytes) -> Asked:
    """A request of /v1/chat/completions. Raises RequestError."""
    body = _object(raw, _COMMON | {"messages", "max_completion_tokens", "top_logprobs"})
    logprobs = _boolean(body, "logprobs")
    top = _number(body, "top_logprobs")
    if top is not None and not logprobs:
        raise RequestError("top_logprobs needs logprobs to be true", "top_logprobs")
    settings = _settings(body)
    if logprobs:
        settings["top"] = _within(top or 0, "top_logprobs")
    limit = _number(body, "max_completion_tokens")
    return _asked(
        body, (_messages(body),), settings, limit if limit is not None else _number(body, "max_tokens"), logprobs
    )


def completion(raw: bytes) -> Asked:
    """A request of /v1/completions. Raises RequestError."""
    body = _object(raw, _COMMON | {"prompt"})
    settings = _settings(body)
    top = body.get("logprobs")
    if top is not None:
        if type(top) is not int:
            raise RequestError(f"logprobs is {_shown(top)}, must be a whole number", "logprobs")
        settings["top"] = _within(top, "logprobs")
    limit = _number(body, "max_tokens")
    return _asked(body, _prompts(body), settings, 16 if limit is None else limit, top is not None)


def _object(raw: bytes, known: set[str]) -> dict[str, Any]:
    try:
        body = json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the request is no valid JSON: {_shown(str(error))}") from None
    if not isinstance(body, dict):
        raise RequestError(f"the request must be an object, it is a {type(body).__name__}")
    if b"\\u" in raw and not _is_well_formed(body):
        raise RequestError("a text has half of a surrogate pair; send whole characters, a pair or UTF-8")
    for name, value in body.items():
        if name in known or name in _IGNORED or value is None:
            continue
        if name not in _REFUSED:
            raise RequestError(f"there is no field {_shown(name)}; there are {', '.join(sorted(known))}", name[:64])
        if not any(value == nothing and type(value) is type(nothing) for nothing in _REFUSED[name]):
            raise RequestError(f"{name} is not there yet; leave it out", name, code="unsupported_parameter")
    if not isinstance(body.get("model"), str):
        model_name = _shown(body.get("model"))
        raise RequestError(f"model is {model_name}, must be the name of a model; see /v1/models", "model")
    return {name: value for name, value in body.items() if value is not None}


def _asked(
    body: Mapping[str, Any], prompts: tuple[Any, ...], settings: dict[str, Any], limit: int | None, logprobs: bool
) -> Asked:
    if limit is not None and limit < 1:
        raise RequestError(f"max_tokens is {_shown(limit)}, must be 1 or more", "max_tokens")
    stream = _boolean(body, "stream")
    options = body.get("stream_options", {})
    if not isinstance(options, dict):
        raise RequestError(f"stream_options is {_shown(options)}, must be an object", "stream_options")
    usage = stream and options.get("include_usage") is True
    return Asked(
        body["model"], prompts, settings, limit, _stop(body), stream, usage, logprobs, _user(body), _samples(body)
    )


def defaults(model: Any) -> dict[str, Any]:
    """Sampling defaults of a model for requests that set none: as its own configuration has it, else a little
    varied, without the tail of unlikely tokens."""
    generation = getattr(model, "generation", None) or {}
    if generation.get("do_sample") is False:
        return {"temperature": 0.0}
    settings = {name: generation[name] for name in ("temperature", "top_p", "top_k", "min_p") if name in generation}
    if "repetition_penalty" in generation:
        settings["repetition_penalty"] = generation["repetition_penalty"]
    return settings or dict(_DEFAULTS)


def _settings(body: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, ours in _NUMBERS.items():
        value = _number(body, name)
        if value is not None:
            settings[ours] = value % (1 << 64) if name == "seed" else value
    bias = body.get("logit_bias")
    if bias is not None:
        try:
            settings["logit_bias"] = {int(token): _finite(value) for token, value in bias.items()}
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise RequestError("logit_bias must be an object of token ids and finite numbers", "logit_bias") from None
    return settings


def _number(body: Mapping[str, Any], name: str) -> Any:
    value = body.get(name)
    is_integer = name in _INTEGERS
    if value is not None and (isinstance(value, bool) or not isinstance(value, int if is_integer else int | float)):
        raise RequestError(f"{name} is {_shown(value)}, must be a {'whole ' if is_integer else ''}number", name)
    if value in (math.inf, -math.inf):  # what JSON's 1e999 becomes
        raise RequestError(f"{name} is {value}, must be finite", name)
    return value


def _boolean(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise RequestError(f"{name} is {_shown(value)}, must be true or false", name)
    return value


def _samples(body: Mapping[str, Any]) -> int:
    count: int = _number(body, "n") or 1
    if not 1 <= count <= MAX_SAMPLES or body.get("n") == 0:
        raise RequestError(f"n is {_shown(body['n'])}, must be of 1 to {MAX_SAMPLES}", "n")
    return count


def _user(body: Mapping[str, Any]) -> str:
    user = body.get("user", "")
    if not isinstance(user, str) or len(user) > MAX_USER_CHARACTERS:
        raise RequestError(f"user is {_shown(user)}, must be a text of up to {MAX_USER_CHARACTERS} characters", "user")
    return user


def _within(top: int, name: str) -> int:
    if not 0 <= top <= MAX_TOP_LOGPROBS:
        raise RequestError(f"{name} is {_shown(top)}, must be of 0 to {MAX_TOP_LOGPROBS}", name)
    return top


def _stop(body: Mapping[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop", [])
    texts = [stop] if isinstance(stop, str) else stop
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts) or len(texts) > 16:
        raise RequestError(f"stop is {_shown(stop)}, must be a text or up to 16 of them, none empty", "stop")
    if sum(map(len, texts)) > MAX_STOP_CHARACTERS:
        raise RequestError(f"the texts of stop have more than {MAX_STOP_CHARACTERS} characters together", "stop")
    return tuple(texts)


def _messages(body: Mapping[str, Any]) -> list[dict[str, str]]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be a list of at least one message", "messages")
    checked = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        role = message.get("role") if isinstance(message, dict) else message
        if not isinstance(message, dict) or not isinstance(role, str) or role not in _ROLES:
            raise RequestError(f"{where} has the role {_shown(role)}, must be one of {', '.join(_ROLES)}", where)
        content = message.get("content")
        if content is None and role == "assistant":
            content = ""  # as clients keep an answer that was a call of a tool, or was refused
        checked.append({"role": _ROLES[role], "content": _content(content, where)})
    return checked


def _content(content: Any, where: str) -> str:
    """A text, or the parts that make one."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        other = next((part.get("type") for part in content if part.get("type") != "text"), None)
        if other is None and all(isinstance(part.get("text"), str) for part in content):
            return "".join(part["text"] for part in content)
        if other is not None:
            raise RequestError(f"{where} has a part of type {_shown(other)}; only text is understood", where)
    raise RequestError(f"{where} has no content that is a text", where)


def _prompts(body: Mapping[str, Any]) -> tuple[Any, ...]:
    prompt = body.get("prompt")
    if isinstance(prompt, str) or _ids(prompt):
        return (prompt,)
    if isinstance(prompt, list) and prompt and all(isinstance(text, str) or _ids(text) for text in prompt):
        return tuple(prompt)
    raise RequestError("prompt must be a text, a list of token ids, or a list of either", "prompt")


def _shown(value: Any) -> str:
    """A value of a request in a message: bounded, whatever was sent."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of thousands of digits"


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _is_well_formed(value: Any) -> bool:
    """True if all texts in it are characters, without half surrogate pairs."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += [*node.keys(), *node.values()]
        elif isinstance(node, list):
            waiting += node
        elif isinstance(node, str) and any("\ud800" <= letter <= "\udfff" for letter in node):
            return False
    return True


def _ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)
