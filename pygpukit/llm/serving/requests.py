"""Requests of OpenAI's protocol: what they ask of a model, and a clear refusal of what is not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pygpukit.llm.drafts.speculation import METHODS
from pygpukit.llm.serving import fields
from pygpukit.llm.serving.errors import RequestError as RequestError
from pygpukit.llm.serving.errors import shown
from pygpukit.llm.serving.forms import Form, form_of
from pygpukit.llm.serving.messages import messages_of, prompts_of
from pygpukit.llm.serving.thinking import effort_of
from pygpukit.llm.serving.tools import Tools, tools_of

# Fields that Sampling has by the same name.
_NUMBERS = (
    *("temperature", "top_p", "min_p", "top_k", "repetition_penalty"),
    *("presence_penalty", "frequency_penalty", "seed"),
)
_INTEGERS = {"top_k", "seed"}
# They say how it is kept or billed, and nothing about the answer.
_IGNORED = {"metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}
# Field: the values that ask for nothing.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "suffix": ("",),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "verbosity": (),
    "web_search_options": (),
}
_GENERATION = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")  # of generation_config.json
_DEFAULTS = {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05}
_COMMON = {
    *("model", "user", "n", "stream", "stream_options", "stop", "max_tokens", "logit_bias", "logprobs"),
    *("response_format", "speculate", *_NUMBERS),
}
_CHAT = {
    *("messages", "max_completion_tokens", "top_logprobs", "chat_template_kwargs", "reasoning", "reasoning_effort"),
    *("tools", "tool_choice", "parallel_tool_calls"),
}
_COMPLETION = {"prompt", "echo", "best_of"}
SOURCES = tuple(method for method in METHODS if method != "model")  # of drafts
MAX_TOP_LOGPROBS = 20
MAX_STOP_CHARACTERS = 4096  # characters of all stop strings
MAX_USER_CHARACTERS = 256
MAX_SAMPLES = 128


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
    echo: bool = False  # the prompt before each answer
    variables: dict[str, Any] = field(default_factory=dict)  # of the chat template
    tools: Tools | None = None
    form: Form | None = None
    effort: str | None = None  # of thinking, "none" for no thinking; None: as the template has it


def chat(raw: bytes) -> Asked:
    """A request of /v1/chat/completions. Raises RequestError."""
    return chat_of(fields.parsed(raw, _COMMON | _CHAT | _IGNORED, _REFUSED))


def chat_of(body: Mapping[str, Any]) -> Asked:
    """A request of its fields. Raises RequestError."""
    logprobs = fields.boolean(body, "logprobs")
    top = fields.number(body, "top_logprobs", whole=True)
    if top is not None and not logprobs:
        raise RequestError("top_logprobs needs logprobs to be true", "top_logprobs")
    settings = _settings(body)
    if logprobs:
        settings["top"] = _within(top or 0, "top_logprobs")
    limit = _limit(body, "max_completion_tokens")
    tools = tools_of(body)
    if form_of(body) is not None and tools is not None and tools.required:
        raise RequestError("a call that must come has a form already: leave response_format out", "response_format")
    return _asked(
        body,
        tools=tools,
        prompts=(messages_of(body),),
        settings=settings,
        max_new_tokens=limit if limit is not None else _limit(body, "max_tokens"),
        logprobs=logprobs,
        variables=fields.mapping(body, "chat_template_kwargs"),
        effort=effort_of(body),
    )


def completion(raw: bytes) -> Asked:
    """A request of /v1/completions. Raises RequestError."""
    body = fields.parsed(raw, _COMMON | _COMPLETION | _IGNORED, _REFUSED)
    best = fields.number(body, "best_of", whole=True)
    if best not in (None, _samples(body)):
        raise RequestError(f"best_of is {shown(best)}, but n is {_samples(body)}: give all of them", "best_of")
    settings, echo = _settings(body), fields.boolean(body, "echo")
    top = body.get("logprobs")
    if top is not None:
        if type(top) is not int:
            raise RequestError(f"logprobs is {shown(top)}, must be a whole number", "logprobs")
        settings["top"] = _within(top, "logprobs")
    limit = _limit(body, "max_tokens", 0 if echo else 1)
    return _asked(
        body,
        prompts=prompts_of(body),
        settings=settings,
        max_new_tokens=16 if limit is None else limit,
        logprobs=top is not None,
        echo=echo,
    )


def _asked(body: Mapping[str, Any], **more: Any) -> Asked:
    stream, options = fields.boolean(body, "stream"), fields.mapping(body, "stream_options")
    return Asked(
        body["model"],
        form=form_of(body),
        stop=_stop(body),
        stream=stream,
        usage=stream and fields.boolean(options, "include_usage"),
        user=fields.text(body, "user", MAX_USER_CHARACTERS, ""),
        samples=_samples(body),
        **more,
    )


def defaults(model: Any) -> dict[str, Any]:
    """Sampling defaults of a model for requests that set none: as its own configuration has it, else a little
    varied, without the tail of unlikely tokens."""
    generation = getattr(model, "generation", None) or {}
    own = {name: generation[name] for name in _GENERATION if generation.get(name) is not None}
    if generation.get("do_sample") is False:
        return {name: value for name, value in own.items() if name == "repetition_penalty"} | {"temperature": 0.0}
    return own or dict(_DEFAULTS)


def _settings(body: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name in _NUMBERS:
        value = fields.number(body, name, whole=name in _INTEGERS)
        if value is not None:
            settings[name] = value % (1 << 64) if name == "seed" else value
    if "speculate" in body:
        settings["speculate"] = fields.one_of(body, "speculate", SOURCES, "")
    bias = body.get("logit_bias")
    if bias is not None:
        try:
            settings["logit_bias"] = {int(token): fields.finite(value) for token, value in bias.items()}
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise RequestError("logit_bias must be an object of token ids and finite numbers", "logit_bias") from None
    return settings


def _limit(body: Mapping[str, Any], name: str, minimum: int = 1) -> int | None:
    limit: int | None = fields.number(body, name, whole=True)
    if limit is not None and limit < minimum:
        raise RequestError(f"{name} is {shown(limit)}, must be {minimum} or more", name)
    return limit


def _samples(body: Mapping[str, Any]) -> int:
    count: int = fields.number(body, "n", whole=True) or 1
    if not 1 <= count <= MAX_SAMPLES or body.get("n") == 0:
        raise RequestError(f"n is {shown(body['n'])}, must be of 1 to {MAX_SAMPLES}", "n")
    return count


def _within(top: int, name: str) -> int:
    if not 0 <= top <= MAX_TOP_LOGPROBS:
        raise RequestError(f"{name} is {shown(top)}, must be of 0 to {MAX_TOP_LOGPROBS}", name)
    return top


def _stop(body: Mapping[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop", [])
    texts = [stop] if isinstance(stop, str) else stop
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts) or len(texts) > 16:
        raise RequestError(f"stop is {shown(stop)}, must be a text or up to 16 of them, none empty", "stop")
    if sum(map(len, texts)) > MAX_STOP_CHARACTERS:
        raise RequestError(f"the texts of stop have more than {MAX_STOP_CHARACTERS} characters together", "stop")
    return tuple(texts)
