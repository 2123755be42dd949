"""The profile that ended last in this process, and who is told when another one has ended."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.profiling.trace import Profile

_latest: weakref.ref[Profile] | None = None
_subscribers: list[weakref.WeakMethod[Callable[[], None]]] = []


def latest() -> Profile | None:
    """The profile whose block ended last; None before the first, and when nobody keeps it any more."""
    return None if _latest is None else _latest()


def subscribe(call: Callable[[], None]) -> None:
    """Call a bound method whenever a profile has ended, on its thread, for as long as its object lives."""
    _subscribers.append(weakref.WeakMethod(call))


def note(profile: Profile) -> None:
    """The block of a profile has ended."""
    global _latest
    _latest = weakref.ref(profile)
    _subscribers[:] = [one for one in _subscribers if one() is not None]
    for one in list(_subscribers):
        call = one()
        if call is not None:
            call()
