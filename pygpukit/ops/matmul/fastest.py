"""Who asks for products that may give up invariance for speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

__all__ = ["fastest_products"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_asked: ContextVar[bool] = ContextVar("pygpukit_fastest_products", default=False)


@contextmanager
def fastest_products() -> Iterator[None]:
    """Within it gp.matmul(), gp.matmul_plan() and a @ b are invariant=False, where a call does not say otherwise.

    For this thread and what it awaits. All else keeps its bits: gp.linear, gp.einsum, gp.dot, models.
    """
    token = _asked.set(True)
    try:
        yield
    finally:
        _asked.reset(token)


def by_context(function: _Function) -> _Function:
    """Decorator of what has an argument `invariant`, by name: within fastest_products() it is False."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _asked.get() and kwargs.get("invariant") is None:
            kwargs["invariant"] = False
        return function(*args, **kwargs)

    return run  # type: ignore[return-value]
