"""Value of a preprocessor condition: True, False, or None when it depends on something that is not in the source."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

_Value = int | None

_BINARY: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: _divided(a, b)[0], "%": lambda a, b: _divided(a, b)[1]},
)
_DOUBLED = {"=": "==", "!": "!=", "<": "<=", ">": ">=", "&": "&&", "|": "||"}
_DEPTH_LIMIT = 16


def evaluate(words: Sequence[str], macros: Mapping[str, Sequence[str]], complete: bool) -> bool | None:
    """The condition's value. `complete`: `macros` holds every macro there can be, apart from reserved names."""
    value = _value(words, macros, complete)
    return None if value is None else bool(value)


def number(words: Sequence[str], macros: Mapping[str, Sequence[str]]) -> int | None:
    """The value of an integer constant expression, None when it has names or operators that are not known here."""
    return _value(words, macros, False)


def _value(words: Sequence[str], macros: Mapping[str, Sequence[str]], complete: bool) -> int | None:
    reader = _Reader(_joined(words), macros, complete, 0)
    try:
        value = reader.logical_or()
    except (_Unreadable, RecursionError):
        return None
    return None if reader.rest() else value


def _divided(dividend: int, divisor: int) -> tuple[int, int]:
    """Quotient and remainder as C has them: the quotient is cut off towards zero."""
    if divisor == 0:
        raise _Unreadable
    quotient = abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)
    return quotient, dividend - quotient * divisor


class _Unreadable(Exception):
    """The expression has a form that this reader does not know."""


def _joined(words: Sequence[str]) -> list[str]:
    """Two-character operators as one word; the lexer gives single marks."""
    out: list[str] = []
    for word in words:
        pair = out[-1] + word if out else ""
        if pair in _DOUBLED.values():
            out[-1] = pair
        else:
            out.append(word)
    return out


class _Reader:
    """Recursive descent over the words, lowest precedence first. An unknown operand makes most results unknown."""

    def __init__(self, words: list[str], macros: Mapping[str, Sequence[str]], complete: bool, depth: int) -> None:
        self._words, self._macros, self._complete, self._depth = words, macros, complete, depth
        self._at = 0

    def rest(self) -> list[str]:
        return self._words[self._at :]

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def logical_or(self) -> _Value:
        value = self._logical_and()
        while self._peek() == "||":
            self._take()
            right = self._logical_and()
            value = 1 if value or right else (None if None in (value, right) else 0)
        return value

    def _logical_and(self) -> _Value:
        value = self._binary(0)
        while self._peek() == "&&":
            self._take()
            right = self._binary(0)
            value = 0 if 0 in (value, right) else (None if None in (value, right) else 1)
        return value

    def _binary(self, level: int) -> _Value:
        if level == len(_BINARY):
            return self._unary()
        value = self._binary(level + 1)
        while (apply := _BINARY[level].get(self._peek())) is not None:
            self._take()
            right = self._binary(level + 1)
            value = None if value is None or right is None else int(apply(value, right))
        return value

    def _unary(self) -> _Value:
        word = self._take()
        if word == "!":
            value = self._unary()
            return None if value is None else int(not value)
        if word == "-":
            value = self._unary()
            return None if value is None else -value
        if word == "(":
            value = self.logical_or()
            if self._take() != ")":
                raise _Unreadable
            return value
        if word == "defined":
            return self._defined()
        if word[:1].isdigit():
            try:
                return int(word.replace("'", "").rstrip("uUlL"), 0)
            except ValueError:
                raise _Unreadable from None
        if word[:1].isalpha() or word[:1] == "_":
            return self._macro(word)
        raise _Unreadable

    def _defined(self) -> _Value:
        name = self._take()
        if name == "(":
            name = self._take()
            if self._take() != ")":
                raise _Unreadable
        if name in self._macros:
            return 1
        return 0 if self._certain(name) else None

    def _macro(self, name: str) -> _Value:
        if name not in self._macros:
            return 0 if self._certain(name) else None
        if self._depth >= _DEPTH_LIMIT:
            raise _Unreadable
        inner = _Reader(_joined(self._macros[name]), self._macros, self._complete, self._depth + 1)
        value = inner.logical_or()
        return None if inner.rest() else value

    def _certain(self, name: str) -> bool:
        """An absent macro is certainly absent, unless headers were read or the compiler may define it."""
        return self._complete and not name.startswith("_")
