"""Choices that follow from arguments and the current device: kept by device, forgotten when a kernel is lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

from pygpukit._core import native

_Result = TypeVar("_Result")
_kept: list[Callable[[], None]] = []


def by_device(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Decorator of a function whose result follows from its arguments, the current device and what can be compiled.

    The results are kept; cache_clear() of what it gives forgets them. Arguments are hashable.
    """

    @lru_cache(maxsize=4096)
    def cached(_: int, *args: Any, **kwargs: Any) -> _Result:
        return function(*args, **kwargs)

    @wraps(function)
    def choose(*args: Any, **kwargs: Any) -> _Result:
        return cached(native.current_device(), *args, **kwargs)

    choose.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
    _kept.append(cached.cache_clear)
    return choose


def forget() -> None:
    """Every choice is made anew."""
    for clear in _kept:
        clear()
