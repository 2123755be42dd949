"""Long work, named while it is done: said by who does it, heard by who waits for it on the same thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_heard: ContextVar[Callable[[str], object] | None] = ContextVar("doing", default=None)


def say(what: str) -> None:
    """Say what begins now, in a few words: "Compiling scale". Nothing happens where nobody waits."""
    hear = _heard.get()
    if hear is not None:
        hear(what)


@contextmanager
def heard_by(hear: Callable[[str], object]) -> Iterator[None]:
    """hear(what) is called of what is said on this thread until the end of the block."""
    token = _heard.set(hear)
    try:
        yield
    finally:
        _heard.reset(token)
