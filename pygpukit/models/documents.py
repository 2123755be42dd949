"""The small JSON files beside a model's weights, read with limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.core.regular import opened

_LARGEST = 64 << 20  # bytes; the largest tokenizers have some 35 MB, the largest indices 20
# What Python takes, in bytes, for an object, a list, and what follows a comma and a colon: more than it ever is.
_COSTS = {"{": 300, "[": 100, ",": 90, ":": 130}
_ROOM = 180 << 20
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character in two parts


def read_text(path: Path) -> str:
    """A small file's text. Raises ModelFileError where it is too large or no UTF-8, OSError where it is not there."""
    return _decoded(_read(path, _LARGEST), str(path))


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object. Raises ModelFileError where the file holds anything else."""
    return parse_object(_read(path, _LARGEST // 2), str(path))


def _read(path: Path, max_bytes: int) -> bytes:
    with opened(path) as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ModelFileError(f"{path}: it is larger than {max_bytes >> 20} MiB, more than any such file has", str(path))
    return raw


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{where}: it is no UTF-8 text ({error.reason} at byte {error.start})", where) from None


def parse_object(text: str | bytes, where: str) -> dict[str, Any]:
    """text as a JSON object without repeated keys; where names it in errors.

    What it would take of memory is bounded before it is read.
    """

    if isinstance(text, bytes):
        text = _decoded(text, where)
    cost = sum(text.count(mark) * each for mark, each in _COSTS.items())
    if cost > _ROOM - len(text):
        raise ModelFileError(f"{where}: it is too large: reading it could take {cost >> 20} MiB of memory", where)

    def unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, value in pairs:
            if key in members:
                raise ValueError(f"the key {key!r} is there twice")
            members[key] = value
        return members

    try:
        value = json.loads(text, object_pairs_hook=unique)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ModelFileError(f"{where}: it is nested too deeply", where) from None
    except UnicodeEncodeError:
        raise ModelFileError(f"{where}: it has half a character, a surrogate without its other half", where) from None
    except ValueError as error:
        raise ModelFileError(f"{where}: it is no valid JSON: {error}", where) from None
    if not isinstance(value, dict):
        raise ModelFileError(f"{where}: it must hold an object, but holds a {type(value).__name__}", where)
    return value
