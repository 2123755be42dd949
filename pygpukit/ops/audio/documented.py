"""The documented keywords that librosa calls otherwise: taken, with a warning that says the name to use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def keywords(**now: str) -> Callable[[_F], _F]:
    """A decorator: old=new, each documented keyword and its name now; -1 stands for None, as it did.

    The function raises TypeError where both names are given.
    """

    def decorate(function: _F) -> _F:
        @wraps(function)
        def call(*args: Any, **fields: Any) -> Any:
            for old, new in now.items():
                if old in fields:
                    if new in fields:
                        raise TypeError(f"{function.__name__}: {old} is the documented name of {new}; give one of them")
                    warnings.warn(
                        f"{function.__name__}: the keyword {old} is now {new}", DeprecationWarning, stacklevel=2
                    )
                    value = fields.pop(old)
                    fields[new] = None if isinstance(value, (int, float)) and value == -1 else value
            return function(*args, **fields)

        return call  # type: ignore[return-value]

    return decorate


def without_effect(win_length: Any, name: str) -> None:
    """Warns, as librosa 0.11 does, where yin()'s or pyin()'s win_length was given."""
    if win_length is not None:
        warnings.warn(
            f"{name}: win_length has had no effect since librosa 0.11; leave it out", FutureWarning, stacklevel=3
        )
