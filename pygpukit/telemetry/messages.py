"""The messages of a trace, checked before anything is read from them: what each type holds is in docs/seams.md."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from pygpukit.telemetry.trace import TraceError

_Fields = Mapping[str, tuple[type, ...]]

_NUMBER, _TEXT = (int, float), (str,)
_INTEGER_LIMIT = 1 << 64
_TASK: _Fields = {"number": (int,)}
_PROMISE: _Fields = {"sharePpm": (int,), "memoryBytes": (int,)}  # may be missing
_CELL: _Fields = {"launches": (int,), "kept": (int,), "leaked": (int,)}
_HOLDING: _Fields = {"cache": _TEXT, "holder": _TEXT, "blocks": (int,), "shared": (int,), "bytes": (int,)}
_LINK: _Fields = {"from": (int,), "to": (int,), "kind": _TEXT, "directBytes": (int,), "hostBytes": (int,)}
_READING: _Fields = {"label": _TEXT, "unit": _TEXT, "note": _TEXT, "value": (*_NUMBER, type(None))}


def check(content: Mapping[str, Any]) -> str:
    """The message's type. Raises TraceError where it has none, or lacks what a message of that type holds."""
    kind = content.get("type")
    if not isinstance(kind, str):
        raise TraceError(f"the trace has a message without a type, with {sorted(content)[:8]}")
    if kind in _CHECKS:
        try:
            _CHECKS[kind](content)
        except KeyError as error:
            raise TraceError(f"the trace has a {kind} message without {error}") from None
        except (TypeError, ValueError) as error:
            raise TraceError(f"the trace has a {kind} message that cannot be read: {error}") from None
    return kind


def _tasks(rows: Any) -> None:
    _rows(rows, _TASK, _PROMISE)


def _snapshot(content: Mapping[str, Any]) -> None:
    _rows([content], {"seq": (int,)})
    _numbers(content["segments"], 2)
    _numbers(content["blocks"], 8)
    _tasks(content["tasks"])


def _rows(rows: Any, required: _Fields, optional: _Fields | None = None) -> None:
    for row in _listed(rows):
        if not isinstance(row, dict):
            raise TypeError(f"a row is a {type(row).__name__}, not an object")
        present = {name: kinds for name, kinds in (optional or {}).items() if name in row}
        for name, kinds in {**required, **present}.items():
            value = row[name]
            if not isinstance(value, kinds) or (isinstance(value, _NUMBER) and not abs(value) <= _INTEGER_LIMIT):
                raise TypeError(f"{name} is {reprlib.repr(value)}")


def _numbers(rows: Any, length: int) -> None:
    """Rows of so many whole numbers."""
    for row in _listed(rows):
        if len(_listed(row)) != length or not all(
            isinstance(value, int) and 0 <= value <= _INTEGER_LIMIT for value in row
        ):
            raise ValueError(f"a row is {reprlib.repr(row)}, not {length} whole numbers")


def _listed(rows: Any) -> list[Any]:
    if not isinstance(rows, list):
        raise TypeError(f"a list was expected, not {reprlib.repr(rows)}")
    return rows


_CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "snapshot": _snapshot,
    "tasks": lambda content: _tasks(content.get("rows", [])),
    "names": lambda content: _numbers(content.get("rows", []), 3),
    "contexts": lambda content: _rows(content.get("rows", []), {}, _PROMISE),
    "caches": lambda content: _rows(content.get("rows", []), _HOLDING),
    "cells": lambda content: _rows(content.get("rows", []), _CELL),
    "links": lambda content: _rows(content.get("rows", []), _LINK),
    "device": lambda content: _rows(content.get("fields", []), _READING),
}
