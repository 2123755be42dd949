"""The small JSON files beside a model's weights, read with limits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pygpukit.core.errors import ModelFileError

_LARGEST = 256 << 20  # bytes; the largest tokenizers have some 30 MB


def read_text(path: Path) -> str:
    """A small file's text. Raises ModelFileError where it is too large or no UTF-8, OSError where it is not there."""
    with path.open("rb") as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ModelFileError(f"{path}: it is larger than {_LARGEST >> 20} MiB, more than any such file has", str(path))
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path}: it is no UTF-8 text ({error.reason} at byte {error.start})", str(path)) from None


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object. Raises ModelFileError where the file holds anything else."""
    return parse_object(read_text(path), str(path))


def parse_object(text: str | bytes, where: str) -> dict[str, Any]:
    """text as a JSON object without repeated keys; where names it in errors."""

    def unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"the key {key!r} is there twice")
            found[key] = value
        return found

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise ModelFileError(f"{where}: it is nested too deeply", where) from None
    except ValueError as error:
        raise ModelFileError(f"{where}: it is no valid JSON: {error}", where) from None
    if not isinstance(value, dict):
        raise ModelFileError(f"{where}: it must hold an object, but holds a {type(value).__name__}", where)
    return value
