"""Turns: what waits for the result of each of its steps asks for one before each. Without a scheduler nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Giver = Callable[[], AbstractContextManager[None]]
_FREE = nullcontext()
_givers: list[Giver] = []


def turn() -> AbstractContextManager[None]:
    """`with turn():` around the launches of one step and the wait for its result."""
    return _givers[-1]() if _givers else _FREE


def given_by(giver: Giver) -> None:
    """From now on giver() says when the running code's turn is: the scheduler brings it."""
    _givers.append(giver)
