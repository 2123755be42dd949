"""`__shared__ alignas(16) float x[4];` in the order that host compilers take: alignas first. Offsets after it stay."""

from __future__ import annotations

import re

_MISPLACED = re.compile(
    r"(?P<words>\b(?:(?:static|volatile|const|constexpr|inline|__shared__|__constant__|__device__|__managed__)\s+)+)"
    r"(?P<alignas>alignas\s*\((?:[^()]|\([^()]*\))*\)\s*)"
)


def ordered(source: str, code: str) -> str:
    """The source with each alignas in front of the words that stand before it. code: the source without comments,
    strings and preprocessor lines, of the same length."""
    if "alignas" not in source:
        return source
    pieces, done = [], 0
    for match in _MISPLACED.finditer(code):
        if "\n" not in match.group() and match.group() == source[match.start() : match.end()]:
            pieces += [source[done : match.start()], match["alignas"].rstrip() + " ", match["words"].rstrip()]
            space = len(match.group()) - len(pieces[-1]) - len(pieces[-2])
            pieces.append(" " * space)
            done = match.end()
    return "".join(pieces) + source[done:]
