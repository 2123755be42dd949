"""The documented keywords and positions that librosa has otherwise: taken, with a warning that says what to use."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def keywords(positions: str = "", **now: str) -> Callable[[_F], _F]:
    """A decorator: old=new, each documented keyword and its name now; -1 stands for None, as it did.

    positions: the names now of the documented parameters in their order, for calls that give by position what is taken
    by keyword only. The function raises TypeError where one is given twice, and for more than there are.
    """

    def decorate(function: _F) -> _F:
        parameters = inspect.signature(function).parameters.values()
        own = sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
        order = positions.split()

        @wraps(function)
        def call(*args: Any, **fields: Any) -> Any:
            if len(args) > own and len(order) >= len(args):
                names = order[own : len(args)]
                for name, value in zip(names, args[own:], strict=True):
                    if name in fields or any(now.get(old) == name for old in fields):
                        raise TypeError(
                            f"{function.__name__}: {name} is given by position and by name; give it by name"
                        )
                    fields[name] = _meant(value)
                args = args[:own]
                warnings.warn(
                    f"{function.__name__}: give {', '.join(f'{name}=' for name in names)} by name",
                    DeprecationWarning,
                    stacklevel=2,
                )
            for old, new in now.items():
                if old in fields:
                    if new in fields:
                        raise TypeError(f"{function.__name__}: {old} is the documented name of {new}; give one of them")
                    warnings.warn(
                        f"{function.__name__}: the keyword {old} is now {new}", DeprecationWarning, stacklevel=2
                    )
                    fields[new] = _meant(fields.pop(old))
            return function(*args, **fields)

        return call  # type: ignore[return-value]

    return decorate


def _meant(value: Any) -> Any:
    return None if isinstance(value, (int, float)) and value == -1 else value


def without_effect(win_length: Any, name: str) -> None:
    """Warns, as librosa 0.11 does, where yin()'s or pyin()'s win_length was given."""
    if win_length is not None:
        warnings.warn(
            f"{name}: win_length has had no effect since librosa 0.11; leave it out", FutureWarning, stacklevel=3
        )
