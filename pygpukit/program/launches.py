"""Launches `k<<<grid, block, shared, stream>>>(arguments)` as plain C++: `pk_configure(...), k(arguments)`.

What is called stays an expression of C++, so that overloads, deduced templates and pointers to kernels mean what they
mean to nvcc. Macros and templates are served as well: only the text of the launch itself is looked at.
"""

from __future__ import annotations

import re

from pygpukit.program.declarations import closed
from pygpukit.program.unit import Edit, Unit

_LAUNCH = re.compile(r"<<<")
_COMMENTS = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/", re.DOTALL)
_CONTINUED = re.compile(r"\\?\n")


def launches(unit: Unit, start: int = 0, end: int | None = None) -> list[Edit]:
    """The edits for every launch between two places."""
    code = unit.with_directives
    edits: list[Edit] = []
    for match in _LAUNCH.finditer(code, start, len(code) if end is None else end):
        close = _end(code, match.end())
        callee = _callee(code, match.start())
        if close is None or callee is None:
            continue
        configuration = _COMMENTS.sub(" ", unit.text[match.end() : close - 3])
        one_line = _CONTINUED.sub(" ", configuration).strip()
        gap = "".join(_CONTINUED.findall(unit.text[match.start() : close]))
        edits += [Edit(callee, callee, f"pk_configure({one_line}), "), Edit(match.start(), close, gap)]
    return edits


def _end(code: str, at: int) -> int | None:
    """Just after the `>>>`, or None."""
    while at < len(code):
        if code[at] in "([{":
            at = closed(code, at)
        elif code.startswith(">>>", at):
            while code.startswith(">>>", at + 1):
                at += 1
            return at + 3
        elif code[at] in ";}":
            return None
        else:
            at += 1
    return None


def _callee(code: str, at: int) -> int | None:
    """Where the expression begins that ends at `at`: a name with qualifiers and template arguments, a call, a
    pointer."""
    first: int | None = None
    while True:
        at = _before_blanks(code, at)
        if at and code[at - 1] == ">" and code[at - 2 : at] != "->":
            opened = _opened_angle(code, at)
            if opened is None:
                return first
            at = _before_blanks(code, opened)
        while at and code[at - 1] in ")]":
            opened = _opened(code, at)
            if opened is None:
                return first
            first = opened
            at = _before_blanks(code, opened)
        word = at
        while word and (code[word - 1].isalnum() or code[word - 1] == "_"):
            word -= 1
        if word == at:
            return first
        first = word
        before = _before_blanks(code, word)
        if code[before - 2 : before] == "##":  # a name that a macro puts together
            at = before - 2
        elif code[before - 2 : before] == "::":
            qualifier = _before_blanks(code, before - 2)
            if not qualifier or not (code[qualifier - 1].isalnum() or code[qualifier - 1] in "_>"):
                return before - 2
            at = before - 2
        elif code[before - 2 : before] == "->":
            at = before - 2
        elif code[before - 1 : before] == ".":
            at = before - 1
        else:
            return first


def _before_blanks(code: str, at: int) -> int:
    while at and (code[at - 1].isspace() or code[at - 2 : at] == "\\\n"):
        at -= 1
    return at


def _opened(code: str, at: int) -> int | None:
    """Where the bracket was opened that is closed just before `at`."""
    closing = code[at - 1]
    opening = {")": "(", "]": "["}[closing]
    depth = 0
    for index in range(at - 1, -1, -1):
        depth += (code[index] == closing) - (code[index] == opening)
        if not depth:
            return index
    return None


def _opened_angle(code: str, at: int) -> int | None:
    depth, index = 0, at - 1
    while index >= 0:
        letter = code[index]
        if letter in ")]":
            opened = _opened(code, index + 1)
            if opened is None:
                return None
            index = opened
        elif letter in ";{}":
            return None
        else:
            depth += (letter == ">" and code[index - 1] != "-") - (letter == "<")
            if not depth:
                return index
        index -= 1
    return None
