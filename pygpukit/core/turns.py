"""Turns: what waits for the result of each of its steps asks for one before each. Without a scheduler nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Giver = Callable[[], AbstractContextManager[None]]
_giver: Giver = nullcontext


def turn() -> AbstractContextManager[None]:
    """`with turn():` around the launches of one step and the wait for its result."""
    return _giver()


def is_free(ends: AbstractContextManager[None]) -> bool:
    """True where nobody waits for this turn's end, so that what is likely to be asked for next may be begun in it."""
    return isinstance(ends, nullcontext)


def set_giver(giver: Giver) -> None:
    """From now on giver() says when the running code's turn is: the scheduler brings it."""
    global _giver
    _giver = giver
