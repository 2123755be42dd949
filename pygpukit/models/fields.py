"""The fields of a model's configuration: read with their types; what nobody here reads is refused, or reported once.

The same for a folder's config.json and for the metadata of a GGUF file.
"""

from __future__ import annotations

import math
import reprlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pygpukit.core.backend import frames_inside_package
from pygpukit.core.errors import InvalidSpecError

_INTEGER_LIMIT = 1 << 31


@dataclass(frozen=True)
class FieldTable:
    """The fields that an architecture's reference reads.

    read: fields that are implemented. neutral: fields that would change the arithmetic, and the values of them that
    change nothing. harmless: fields that have nothing to do with it. defaults: of fields that may be left out.
    """

    read: frozenset[str]
    neutral: Mapping[str, tuple[Any, ...]]
    harmless: frozenset[str]
    defaults: Mapping[str, Any] = field(default_factory=dict)


class Fields:
    """Fields with the values that they must have. where names their file in errors, which are InvalidSpecError.

    A field whose value is null counts as one that is not there.
    """

    def __init__(self, values: Mapping[str, Any], where: str = "config.json") -> None:
        self._values, self._where = values, where

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def get(self, *names: str) -> Any:
        """The first of these that is there; None where none is."""
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def name_of(self, *names: str) -> str:
        """The name of what get() gives."""
        return next((name for name in names if self._values.get(name) is not None), names[0])

    def integer(self, *names: str, minimum: int = 1) -> int | None:
        """A whole number, least or above."""
        value = self.get(*names)
        if value is None:
            return None
        if type(value) is not int or not minimum <= value < _INTEGER_LIMIT:
            raise self.error(f"must be a whole number of {minimum} or more", *names)
        return value

    def number(self, *names: str, minimum: float = 0.0) -> float | None:
        """A finite number above least."""
        value = self.get(*names)
        if value is None:
            return None
        if type(value) not in (int, float) or not minimum < value < math.inf:
            raise self.error(f"must be a number above {minimum:g}", *names)
        return float(value)

    def numbers(self, *names: str) -> list[float] | None:
        """A list of finite numbers above 0."""
        value = self.get(*names)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) in (int, float) and 0 < item < math.inf for item in value):
            raise self.error("must be a list of numbers above 0", *names)
        return [float(item) for item in value]

    def flag(self, *names: str) -> bool | None:
        """True or false."""
        value = self.get(*names)
        if value is not None and not isinstance(value, bool):
            raise self.error("must be true or false", *names)
        return value

    def text(self, *names: str) -> str | None:
        """A text."""
        value = self.get(*names)
        if value is not None and not isinstance(value, str):
            raise self.error("must be a text", *names)
        return value

    def object(self, *names: str) -> Mapping[str, Any] | None:
        """An object of further fields."""
        value = self.get(*names)
        if value is not None and not isinstance(value, Mapping):
            raise self.error("must be an object", *names)
        return value

    def error(self, must: str, *names: str) -> InvalidSpecError:
        """An error that names a field and its value."""
        name = self.name_of(*names)
        return InvalidSpecError(f"{self._where}: {name} is {reprlib.repr(self.get(*names))}, {must}", name)

    def missing(self, what: str, *names: str) -> InvalidSpecError:
        """An error that names a field that is needed."""
        return InvalidSpecError(f"{self._where} has no {names[0]!r}, which {what} needs", names[0])


def check_fields(fields: Mapping[str, Any], table: FieldTable, where: str, what: str) -> None:
    """Raises InvalidSpecError for a field that would change the arithmetic; tells those that nobody knows, once."""
    unknown = []
    for name, value in fields.items():
        if value is None or name in table.read or name in table.harmless:
            continue
        if name not in table.neutral:
            unknown.append(name)
        elif not any(
            value == neutral and isinstance(value, bool) == isinstance(neutral, bool) for neutral in table.neutral[name]
        ):
            known = " or ".join(map(repr, table.neutral[name]))
            raise InvalidSpecError(
                f"{where}: {name} is {reprlib.repr(value)}, which is not there yet for {what} models"
                + (f"; it may be {known}" if known else "; it may be left out"),
                name,
            )
    new = [name for name in unknown if (what, name) not in _reported]
    _reported.update((what, name) for name in new[:_MAX_REPORTED])
    if new:
        some = ", ".join(map(repr, new[:_MAX_NAMED])) + (", ..." if len(new) > _MAX_NAMED else "")
        warnings.warn(
            f"{where}: fields that {what} models are not known to have change nothing here: {some}",
            stacklevel=frames_inside_package(),
        )


_MAX_NAMED, _MAX_REPORTED = 10, 1000
_reported: set[tuple[str, str]] = set()
