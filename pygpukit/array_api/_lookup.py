"""Finding the package's operations by name, on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pygpukit


class MissingOperation(AttributeError):
    """The package has no operation of that name."""


@cache
def operation(name: str) -> Callable[..., Any]:
    """The operation of that name. Raises MissingOperation when there is none."""
    function = getattr(pygpukit, name, None)
    if not callable(function):
        raise MissingOperation(f"pygpukit has no operation {name!r}")
    return function
