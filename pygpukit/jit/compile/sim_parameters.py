"""`const __grid_constant__ T p` as `const T &&p`: such a parameter lies where the launch has it, beside the one before.
Columns of names stay."""

from __future__ import annotations

import re

_WORD = re.compile(r"\b__grid_constant__\b")
_NAME = re.compile(r"[^\W\d]\w*\Z")
_QUALIFIERS = re.compile(r"\b(?:const|struct|class|typename|enum|__restrict__)\b")
_OPEN, _CLOSE = "(<[{", ")>]}"
_LONGEST = 1000  # characters of a parameter on either side of the word


def grid_constants(source: str, code: str) -> str:
    """The source with those parameters as references. code: the source without comments, strings and preprocessor
    lines, of the same length."""
    if "__grid_constant__" not in source:
        return source
    pieces, done = [], 0
    for match in _WORD.finditer(code):
        begin, end = _bounds(code, match.start(), match.end())
        after = code[match.end() : end].rstrip()
        if begin < done or not after:
            continue
        named = _NAME.search(after)
        kind = code[begin : match.start()] + " " + after[: named.start() if named else 0]
        if named is None or kind.rstrip().endswith("::") or not _QUALIFIERS.sub("", kind).strip():
            name = match.end() + len(after)  # it has none
        else:
            name = match.end() + named.start()
        between = source[match.end() : name].rstrip()
        shifted = "\n" not in between and not between.lstrip().startswith("//")
        reference = "&&__restrict "
        room = " " * (name - match.start() - len(between) - len(reference)) if shifted else ""
        blanks = "" if shifted else " " * len(match.group())
        pieces += [source[done : match.start()], blanks, between, room, reference]
        done = name
    return "".join(pieces) + source[done:]


def _bounds(code: str, start: int, end: int) -> tuple[int, int]:
    """Where the parameter begins and ends that has the word."""
    depth, first, last = 0, max(start - _LONGEST, 0), min(end + _LONGEST, len(code))
    while start > first and not (depth == 0 and code[start - 1] in "(,"):
        start -= 1
        depth += (code[start] in _CLOSE) - (code[start] in _OPEN)
    depth = 0
    while end < last and not (depth == 0 and code[end] in "),"):
        depth += (code[end] in _OPEN) - (code[end] in _CLOSE)
        end += 1
    return start, end
