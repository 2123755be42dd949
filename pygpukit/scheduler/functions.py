"""The callables of tasks, and the names that dashboards show for them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.text import storable

_MAX_NAME_BYTES = 256
# A call of such a function runs nothing of it.
_UNRUN = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def name_of(fn: Callable[..., Any]) -> str:
    """The name that dashboards show. Raises InvalidSpecError for what a task cannot call."""
    if type(fn) is FunctionType and not fn.__dict__:  # nothing wrapped or marked: the quick way
        refused, name = fn.__code__.co_flags & _UNRUN, fn.__name__
    else:
        inner = fn
        while isinstance(inner, functools.partial):
            inner = inner.func
        flags = getattr(getattr(inner, "__code__", None), "co_flags", 0)
        refused = not callable(fn) or inspect.iscoroutinefunction(fn) or flags & _UNRUN
        name = str(getattr(inner, "__name__", type(inner).__name__))
    if refused:
        raise InvalidSpecError(f"fn={fn!r}; give a function that is neither async nor a generator", "fn")
    if len(name) <= _MAX_NAME_BYTES // 4:
        return name
    return storable(name).encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
