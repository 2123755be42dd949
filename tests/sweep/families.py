"""All families of the sweep: those that the files sweep_*.py, each beside the tests of its operation, have in their
FAMILIES. Between them they have every source of the catalogue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from sweep.engine import Family

_TESTS = Path(__file__).resolve().parents[1]


def _families() -> Iterator[Family]:
    for file in sorted(_TESTS.glob("**/sweep_*.py"), key=lambda file: file.stem):
        if str(file.parent) not in sys.path:  # as pytest does for its tests
            sys.path.append(str(file.parent))
        yield from import_module(file.stem).FAMILIES


FAMILIES: tuple[Family, ...] = tuple(_families())
