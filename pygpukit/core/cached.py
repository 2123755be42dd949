"""cached_property as functools has it from Python 3.12 on: without a lock.

Before, a lock is held while a value is made, and all objects share it: a kernel that compiles would keep all others
from compiling, and a forked child waiting for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A value that an object makes when it is asked for it, and keeps. Threads that ask at the same time may each make
    one."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._make(instance)
        return value
