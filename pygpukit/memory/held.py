"""Arrays that a shell holds behind the user's back: in its output history, the last traceback, the last result."""

from __future__ import annotations

import re
import sys
import traceback
from types import ModuleType
from typing import Any

from pygpukit._core import native

_NUMBERED = re.compile(r"_\d+")
_MAX_OBJECTS = 10_000  # looked at in one result
_LAST_ERROR = ("last_exc", "last_value", "last_traceback", "last_type")


def release(shell: Any) -> None:
    """Make the shell let go of every array. Its other results stay where they are."""
    history = shell.user_ns.get("_oh", {})
    for number in [n for n, value in history.items() if holds_array(value)]:
        del history[number]
    for name in [n for n, value in shell.user_ns.items() if _NUMBERED.fullmatch(n) and holds_array(value)]:
        del shell.user_ns[name]
        shell.user_ns_hidden.pop(name, None)
    for name in ("_", "__", "___"):
        kept = getattr(shell.displayhook, name, "")
        if holds_array(kept):
            setattr(shell.displayhook, name, "")
            if shell.user_ns.get(name) is kept:  # else the name is a variable of the user's
                shell.push({name: ""}, interactive=False)
    _forget_error(shell)
    shell.last_execution_result = None


def _forget_error(shell: Any) -> None:
    """Local variables of the frames of the last error, and the shell's references to it."""
    error = getattr(sys, "last_value", None)
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    for name in _LAST_ERROR:
        if hasattr(sys, name):
            delattr(sys, name)
    for formatter in (shell.InteractiveTB, shell.SyntaxTB):
        if getattr(formatter, "tb", None) is not None:
            formatter.tb = None


def holds_array(value: Any) -> bool:
    """True where a value is an array, or reaches one through containers and attributes."""
    seen: set[int] = set()
    pending = [value]
    while pending and len(seen) < _MAX_OBJECTS:
        one = pending.pop()
        if isinstance(one, native.ArrayBase):
            return True
        if id(one) in seen or isinstance(one, (type, ModuleType, str, bytes)):
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            pending += one
        else:
            pending += getattr(one, "__dict__", {}).values()
    return False
