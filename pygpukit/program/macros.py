"""Macros that make device code: edits of the declarations in their bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pygpukit.program.declarations import Declaration
from pygpukit.program.unit import DEFINE, Edit, Unit

_JOINT = "\u00aa"  # a letter that no program has
_WORD = re.compile(r"[^\W\d]\w*")


def in_macro(unit: Unit, start: int, end: int, edits: Callable[[Unit, Declaration], Sequence[Edit]]) -> list[Edit]:
    """The edits of each declaration that the #define between two places makes; none where it makes no device code."""
    definition = DEFINE.search(unit.with_directives, start, end)
    if definition is None or definition["name"] not in unit.code_makers:
        return []
    at = definition.start("body")
    body = unit.with_directives[at:end].replace("\\\n", "  ")
    joined = re.sub(r"\s*##\s*", lambda match: _JOINT * len(match.group()), body)  # what ## joins is one name
    inside = Unit(joined, unit.name, unit.spaces)
    return [_put_back(unit, at, edit) for one in inside.declarations for edit in edits(inside, one)]


def _put_back(unit: Unit, at: int, edit: Edit) -> Edit:
    """The edit in the text around, where each line but the last goes on with a backslash."""
    start, end = at + edit.start, at + edit.end
    return Edit(start, end, re.sub(f"{_JOINT}+", "##", edit.new) + "\\\n" * unit.text.count("\n", start, end))
