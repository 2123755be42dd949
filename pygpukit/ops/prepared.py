"""Prepared calls: what an operation checks, plans and packs is worked out once for a signature.

The first call with a signature (types, shapes, strides, places in memory, shared memory, numbers, device) runs as
written and is recorded: the arrays it makes, its launches, copies and fills. The next ones repeat that, with the
arrays of theirs. A call that waits, transfers, reads an address or touches other arrays is not kept, nor one that
raises: it runs as written each time. So does all of a stream that is captured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from pygpukit._core import native
from pygpukit.core import pretended
from pygpukit.kernels.lost import replanned

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Plan = TypeVar("_Plan", bound=Any)
Exchange = Callable[[Callable[[Callable[..., Any]], Callable[..., Any]] | None], None]


def prepared(function: _Function) -> _Function:
    """Decorator of an operation whose work follows from its arguments alone.

    What a call does must not depend on anything else that changes: not on values of arrays, not on settings. An array
    that comes from elsewhere, such as a stream's report of errors, is given by native.supplied().
    """
    built_in = native.Prepared(function)
    call: Callable[..., Any] = built_in

    @replanned
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return (call if pretended.current is None else function)(*args, **kwargs)

    def exchange(wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None) -> None:
        nonlocal call
        call = built_in if wrap is None else wrap(built_in)
        run.replacement = getattr(wrap, "__self__", wrap)  # type: ignore[attr-defined]
        native.forget_prepared()  # of operations that call this one, too

    run.exchange, run.replacement = exchange, None  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def exchangeable(function: _Function) -> _Function:
    """Decorator of an operation that a plugin can replace and that is not prepared as a whole, but its parts."""
    call: Callable[..., Any] = function

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    def exchange(wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None) -> None:
        nonlocal call
        call = function if wrap is None else wrap(function)
        run.replacement = getattr(wrap, "__self__", wrap)  # type: ignore[attr-defined]
        native.forget_prepared()

    run.exchange, run.replacement = exchange, None  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def exchange_of(operation: Any) -> Exchange | None:
    """The setter of what a prepared operation runs, None for any other: it takes a function that makes, of the built-in
    one, the one to run instead; None puts the built-in one back. Calls that are not exchanged pay nothing for it."""
    exchange: Exchange | None = getattr(operation, "exchange", None)
    return exchange


def replacement_of(operation: Any) -> Any:
    """The plugin that stands in for an operation; None where that is the built-in one."""
    return getattr(operation, "replacement", None)


def as_replaced(plan: _Plan, operation: Any) -> _Plan:
    """The plan of an operation, with fields backend and reason, as it is while a plugin may stand in for that."""
    plugin = replacement_of(operation)
    if plugin is None:
        return plan
    return replace(plan, backend="plugin", reason=f"{plugin}, in the place of {plan.backend}: {plan.reason}")
