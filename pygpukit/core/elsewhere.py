"""Elsewhere: a method that lies in a module of its own, which is imported when the method is first asked for."""

from __future__ import annotations

from importlib import import_module
from types import MethodType
from typing import Any


class Elsewhere:
    """`name = Elsewhere("package.module")` in a class: the function `name` of that module as a method."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        function = getattr(import_module(self._module), self._name)
        return function if instance is None else MethodType(function, instance)
