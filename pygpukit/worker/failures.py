"""Exceptions over the border: described by their fields in the worker, made again in the process that gave the work."""

from __future__ import annotations

import builtins
import traceback
from dataclasses import asdict
from typing import Any

from ..core import errors
from ..core.errors import DriverError, GPUError
from ..core.faults import REMEDY
from ..core.text import words_of
from .errors import WorkerTaskError
from .travel import Receiver, Sender

_ROWS = {"findings": errors.Finding, "diagnostics": errors.Diagnostic, "launches": errors.Launch}


def describe(error: BaseException) -> dict[str, Any]:
    """An exception by its type's name, its arguments, its fields as far as they are plain values, and its traceback."""
    kind = type(error)
    fields = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    rows = {name: [asdict(row) for row in fields.pop(name)] for name in _ROWS if name in fields}
    return {
        "kind": kind.__name__,
        "home": kind.__module__,
        "message": _message(error),
        "args": _plain(error.args),
        "fields": {name: plain for name, value in fields.items() if (plain := _plain(value)) is not None},
        "rows": Sender().encode("rows", rows),
        "traceback": "".join(traceback.format_exception(kind, error, error.__traceback__)),
    }


def _message(error: BaseException) -> str:
    """Without the remedy for a process that has lost its own context, and the label that str() adds to some."""
    text = str(error.args[0]) if isinstance(error, GPUError) and error.args else words_of(error)
    return text.removesuffix(REMEDY).removesuffix(". ")


def _plain(value: Any) -> Any:
    """A value as it travels; None for one that does not."""
    try:
        return Sender().encode("", value)
    except (TypeError, RecursionError):
        return None


def rebuild(described: dict[str, Any], function: str, message: str | None = None) -> Exception:
    """The exception again when it is Python's own or this package's, else a WorkerTaskError that names it.

    Its cause is a WorkerTaskError with the worker's traceback. message: another one than the worker's.
    """
    kind, text = described["kind"], message or described["message"]
    remote = WorkerTaskError(f"{function}: {kind}: {text}", kind, described["traceback"])
    cause = WorkerTaskError(f"in the worker:\n{described['traceback']}", kind, described["traceback"])
    rebuilt: Exception = remote
    if described["home"] == errors.__name__:
        rebuilt = _own(described, text) or remote
    elif described["home"] == "builtins" and described["args"] is not None:
        rebuilt = _builtin(kind, Receiver((), ()).decode(described["args"])) or remote
    if rebuilt is not remote:
        rebuilt.__cause__ = cause
    return rebuilt


def _own(described: dict[str, Any], text: str) -> Exception | None:
    kind_of_error = getattr(errors, described["kind"], None)
    if not (isinstance(kind_of_error, type) and issubclass(kind_of_error, GPUError)):
        return None
    if kind_of_error is errors.ContextLostError:
        kind_of_error = DriverError  # the worker's context is lost, not that of this process
    data = Receiver((), ())
    rebuilt = kind_of_error(text)
    vars(rebuilt).update((name, data.decode(value)) for name, value in described["fields"].items())
    rows = data.decode(described["rows"])
    vars(rebuilt).update((name, [_ROWS[name](**row) for row in rows[name]]) for name in rows)
    return rebuilt


def _builtin(kind: str, args: tuple[Any, ...]) -> Exception | None:
    kind_of_error = getattr(builtins, kind, None)
    if not (isinstance(kind_of_error, type) and issubclass(kind_of_error, Exception)):
        return None  # SystemExit and the like are not this process's
    try:
        return kind_of_error(*args)
    except Exception:  # a type whose arguments are not what it was made of
        return None
