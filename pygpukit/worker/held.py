"""Segments of another process that this one maps, by the numbers of their owner's exports."""

from __future__ import annotations

import weakref
from typing import Any

Export = tuple[int, int]  # device there, number

_mapped: weakref.WeakKeyDictionary[Any, Export] = weakref.WeakKeyDictionary()


def hold(segment: Any, export: Export) -> None:
    """Count a mapped segment until it is gone."""
    _mapped[segment] = export


def held() -> list[Export]:
    """Exports whose segments are mapped here: the others' blocks may leave the owner's device again."""
    return sorted(set(_mapped.values()))
