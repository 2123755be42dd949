"""Ranges: cells, tasks and requests, told to whoever listens as they begin and end: NVTX, OpenTelemetry."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

Facts = Callable[[], dict[str, Any]]
End = Callable[[dict[str, Any], BaseException | None], None]


class Listener(Protocol):
    """Hears of a range: its kind ("cell", "task" or "request"), its name, and what is known of it then. What it returns
    is called at the end, with what is known by then and the error that ended it; None hears no more."""

    def __call__(self, kind: str, name: str, known: dict[str, Any]) -> End | None: ...


_listeners: tuple[Listener, ...] = ()
_left: deque[Callable[[], None]] = deque()


class Range:
    """A range under way."""

    def __init__(self, ends: list[End], facts: Facts) -> None:
        self._ends, self._facts = ends, facts

    def end(self, error: BaseException | None = None) -> None:
        """Tell that it has ended. Again does no harm."""
        ends, self._ends = self._ends, []
        known = self._facts() if ends else {}
        for end in reversed(ends):
            end(known, error)

    def leave(self) -> None:
        """end(), for a finalizer, which may stand in the middle of a listener: it is told with the next range."""
        _left.append(Range(self._ends, self._facts).end)
        self._ends = []


def begin(kind: str, name: str, facts: Facts) -> Range | None:
    """A range that begins now; None where nobody listens. facts: of the range, asked at its beginning and its end."""
    if not _listeners:
        return None
    flush()
    known = facts()
    return Range([end for listener in _listeners if (end := listener(kind, name, known)) is not None], facts)


def has_listeners() -> bool:
    """True where anybody listens."""
    return bool(_listeners)


def flush() -> None:
    """End the ranges that finalizers left."""
    while _left:
        _left.popleft()()


def listen(listener: Listener) -> None:
    """Tell it of every range that begins from now on."""
    global _listeners
    _listeners = (*_listeners, listener)


def unlisten(listener: Listener) -> None:
    """Tell it of no more; it still hears of the end of ranges under way."""
    global _listeners
    flush()
    _listeners = tuple(one for one in _listeners if one != listener)
