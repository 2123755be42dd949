"""Fields of a request's JSON object: read with their types, and refused by name."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pygpukit.llm.serving.errors import RequestError, shown


def parsed(raw: bytes, known: Collection[str], refused: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The fields of a request that are not null; `model` is one of them, and a text.

    known: their names. refused: those that are known and not there, with the values that ask for nothing. Raises
    RequestError.
    """
    try:
        written = raw.decode(json.detect_encoding(raw))  # json.loads() takes halves of characters in bytes for letters
        body = json.loads(written, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the request is no valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise RequestError(f"the request must be an object, it is a {type(body).__name__}")
    if "\\u" in written and not _is_well_formed(body):
        raise RequestError("a text has half of a surrogate pair; send whole characters, a pair or UTF-8")
    for name, value in body.items():
        if name in known or value is None:
            continue
        if name not in refused:
            raise RequestError(f"there is no field {shown(name)}; there are {', '.join(sorted(known))}", name[:64])
        if not any(value == nothing and type(value) is type(nothing) for nothing in refused[name]):
            raise RequestError(f"{name} is not there yet; leave it out", name, code="unsupported_parameter")
    if not isinstance(body.get("model"), str):
        model_name = shown(body.get("model"))
        raise RequestError(f"model is {model_name}, must be the name of a model; see /v1/models", "model")
    return {name: value for name, value in body.items() if value is not None}


def number(body: Mapping[str, Any], name: str, *, whole: bool = False) -> Any:
    """A finite number, or None where the field is not there."""
    value = body.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int if whole else int | float)):
        raise RequestError(f"{name} is {shown(value)}, must be a {'whole ' if whole else ''}number", name)
    if value in (math.inf, -math.inf):  # what JSON's 1e999 becomes
        raise RequestError(f"{name} is {value}, must be finite", name)
    return value


def boolean(body: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """True or false."""
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise RequestError(f"{name} is {shown(value)}, must be true or false", name)
    return value


def text(body: Mapping[str, Any], name: str, longest: int, default: str | None = None) -> str:
    """A text of up to `longest` characters; default: where the field is not there, None for none."""
    value = body.get(name, default)
    if not isinstance(value, str) or len(value) > longest:
        raise RequestError(f"{name} is {shown(value)}, must be a text of up to {longest} characters", name)
    return value


def one_of(body: Mapping[str, Any], name: str, choices: Sequence[str], default: str) -> str:
    """One of several texts."""
    value = body.get(name, default)
    if not isinstance(value, str) or value not in choices:
        raise RequestError(f"{name} is {shown(value)}, must be one of {', '.join(choices)}", name)
    return value


def mapping(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object; an empty one where the field is not there."""
    value = body.get(name, {})
    if not isinstance(value, dict):
        raise RequestError(f"{name} is {shown(value)}, must be an object", name)
    return value


def finite(value: Any) -> float:
    """A finite number. Raises ValueError and TypeError."""
    converted = float(value)
    if not math.isfinite(converted):
        raise ValueError
    return converted


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


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
