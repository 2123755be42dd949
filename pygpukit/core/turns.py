"""Turns: what works in steps asks for one before each. Without a scheduler nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Turn(Protocol):
    """`with turn:` around the launches of one step, and the wait for its result, or go_on()."""

    def __enter__(self) -> Turn: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def go_on(self) -> Callable[[], None]:
        """Let the next launch behind the `with`, where what was launched goes on. Returns what is to be called when
        that has ended, or nobody waits for it any more; a second call does nothing."""


class _Free:
    """Of code that shares the device with nobody who promised anything."""

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def go_on(self) -> Callable[[], None]:
        return _nothing


def _nothing() -> None:
    pass


FREE: Turn = _Free()
Giver = Callable[[bool], Turn | None]


def _free(waits: bool) -> Turn | None:
    return FREE


_giver: Giver = _free


def turn() -> Turn:
    """The turn for a step; entering it waits until it has come."""
    return _giver(True) or FREE


def turn_ahead() -> Turn | None:
    """The turn for a step behind one that has not ended, which is to be entered at once; None where it is another's."""
    return _giver(False)


def set_giver(giver: Giver) -> None:
    """From now on giver(waits) gives the turns of the running code: the scheduler brings it."""
    global _giver
    _giver = giver
