"""Faults that a host compiler finds and NVRTC's front end passes over.

NVRTC reads the body of a function template where it is instantiated: before that it is a row of words in braces. So
bodies in which the host compiler finds a fault are left out, and one that is asked for after all is put back, with its
faults. And NVRTC lets a member's name hide a type's, as a template finds names that are declared after it; g++ does
where it is told to be permissive, and takes much else then, so it is told only where it finds nothing but these.

A source without a fault is compiled once.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection

from pygpukit.jit.compile.bounded import Outcome
from pygpukit.jit.compile.sim_source import FAULTY_PTX, back_to, blank
from pygpukit.jit.source.lines import Lines
from pygpukit.jit.source.templates import Body, bodies, fault_where_used

FLAG = "-fpermissive"
_ERROR = re.compile(
    r"^(?P<file>[^\s:][^\n]*?):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE
)
_LENIENT = re.compile(
    r"(?:there are no arguments to '[^']*' that depend on a template parameter"
    r"|declaration of '[^\n]*' changes meaning of)[^\n]* \[-fpermissive\]$"
)
_MAX_ERRORS = 20  # g++ is told to stop there: what it would have said next is not known
_MAX_RUNS = 12  # each finds the faults behind the former's 20
_ASKED_FOR = re.compile(r"\bstatic assertion failed.*: pk_sim_left_out (?P<number>\d+)$")
_VALUE = re.compile(r"\breturn\b(?!\s*;)")


def compiled(text: str, run: Callable[[str, bool], Outcome]) -> Outcome:
    """The outcome of run(text, permissive), which compiles, or of it with what NVRTC passes over left out."""
    first = outcome = run(text, False)
    places: _Places | None = None
    permissive, left_out, kept = False, frozenset[int](), frozenset[int]()
    outcomes = {(permissive, left_out): first}
    for _ in range(_MAX_RUNS):
        if not outcome.status or outcome.exceeded:
            return outcome
        if only_lenient(outcome.messages) and not permissive:
            permissive = True
        else:
            places = places or _Places(text)
            faults = [places.body_of(one) for one in _ERROR.finditer(outcome.messages) if not _is_lenient(one)]
            faulty = frozenset(body for body in faults if body is not None)
            asked_for, fresh = faulty & left_out, faulty - left_out - kept
            if None in faults or not (asked_for or fresh):
                break
            left_out, kept = (left_out | fresh) - asked_for, kept | asked_for
        state = (permissive, left_out)
        if state not in outcomes:
            outcomes[state] = run(places.without(left_out) if places else text, permissive)
        outcome = outcomes[state]
    return outcome if _faulty_lines(outcome.messages) <= _faulty_lines(first.messages) else first


def only_lenient(log: str) -> bool:
    """True where g++ refused a source for nothing but what a permissive one takes as NVRTC does."""
    errors = list(_ERROR.finditer(log))
    return 0 < len(errors) < _MAX_ERRORS and all(map(_is_lenient, errors))


def _is_lenient(error: re.Match[str]) -> bool:
    return _LENIENT.match(error["text"]) is not None


def _faulty_lines(log: str) -> set[tuple[str, str]]:
    """The lines with faults."""
    return {(match["file"], match["line"]) for match in _ERROR.finditer(log)}


class _Places:
    """Where the bodies of a text's templates are, by the lines that its #line directives tell."""

    def __init__(self, text: str) -> None:
        self._text, self._bodies = text, bodies(blank(text))
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._lines = Lines(text, "")
        self._ranges = [(self._place(one.start), self._place(one.end)) for one in self._bodies]

    def _place(self, offset: int) -> tuple[str, int, int]:
        before = bisect_left(self._breaks, offset)
        file, line = self._lines.origin(before + 1)
        return file, line, offset - (self._breaks[before - 1] if before else -1)

    def body_of(self, error: re.Match[str]) -> int | None:
        """The number of the body that a fault stands in, or that was left out and is asked for. None for a fault that
        is sure: it stands nowhere else, or in inline PTX that an instantiation has come to."""
        if asked_for := _ASKED_FOR.search(error["text"]):
            return int(asked_for["number"])
        if FAULTY_PTX.match(error["text"]):
            return None
        at = error["file"], int(error["line"]), int(error["column"] or 1)
        return next((number for number, (start, end) in enumerate(self._ranges) if start <= at <= end), None)

    def without(self, numbers: Collection[int]) -> str:
        """The text without these bodies: what instantiates one finds a fault in its place."""
        pieces, done = [], 0
        for number in sorted(numbers):
            body = self._bodies[number]
            # A constexpr function that has a value must return one, of whatever type.
            value = "return __PRETTY_FUNCTION__;" if self._returns(body) else ""
            back = back_to(self._text, body.start, body.end, self._lines)
            pieces += [
                self._text[done : body.start],
                "{",
                fault_where_used(f"pk_sim_left_out {number}"),
                value,
                "}",
                back,
            ]
            done = body.end
        return "".join(pieces) + self._text[done:]

    def _returns(self, body: Body) -> bool:
        return body.constant and _VALUE.search(self._text, body.start, body.end) is not None
