"""Which mention of an array in a line a finding is about: told by its index, and by whether it is read or written."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from typing import NamedTuple

from pygpukit.core.errors import Finding

_BUILT_IN = re.compile(r"\b(threadIdx|blockIdx)\s*\.\s*([xyz])\b")
_NUMBER = re.compile(r"\b(\d+)[uUlL]*\b")
_PLAIN = re.compile(r"[\d\s+\-*/%()]{1,200}")
_ASSIGNED = re.compile(r"\s*(?:(=)(?!=)|(?:<<|>>|[+\-*/%&|^])=|\+\+|--)")
_STEPS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,  # of C's integers that are not negative
    ast.Mod: operator.mod,
}


class Mention(NamedTuple):
    """One mention: columns from 0, the text in its brackets ("" for none or several pairs), how it is used."""

    start: int
    end: int
    subscript: str
    reads: bool
    writes: bool


def mentions(text: str, array: str) -> list[Mention]:
    """Every mention of the array in a line's code, from left to right."""
    code = text.partition("//")[0]
    return list(_mentions(code, array)) if array else []


def meant(text: str, one: Finding) -> list[Mention]:
    """The mentions that a finding can be about: those with its index, else those whose index is not known, else all."""
    candidates = mentions(text, one.array)
    verb = re.search(r"\b(reads|writes)\b", one.message)  # the first is the finding's own thread's
    if verb:
        candidates = [mention for mention in candidates if getattr(mention, verb[1])] or candidates
    if one.index is None or len(candidates) < 2:
        return candidates
    indices = {mention: _index(mention.subscript, one) for mention in candidates}
    same = [mention for mention in candidates if indices[mention] == one.index]
    return same or [mention for mention in candidates if indices[mention] is None] or candidates


def _mentions(code: str, array: str) -> Iterator[Mention]:
    for match in re.finditer(rf"(?<!\w){re.escape(array)}(?!\w)", code):
        brackets = []
        at = match.end()
        while code[at:].lstrip().startswith("[") and (end := _closing(code, code.index("[", at))):
            brackets.append(code[code.index("[", at) + 1 : end])
            at = end + 1
        assigned = _ASSIGNED.match(code, at)
        yield Mention(
            match.start(),
            match.end(),
            brackets[0] if len(brackets) == 1 else "",
            assigned is None or assigned[1] is None,
            assigned is not None or code[: match.start()].rstrip().endswith(("++", "--", "&")),
        )


def _closing(code: str, start: int) -> int:
    """Where the bracket at `start` is closed; 0 where it is not in this line."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] == "[") - (code[at] == "]")
        if depth == 0:
            return at
    return 0


def _index(subscript: str, one: Finding) -> int | None:
    """The value of a subscript of the finding's thread, where numbers and places of threads tell it."""
    places = {"threadIdx": one.thread, "blockIdx": one.block}
    text = _BUILT_IN.sub(lambda match: str(places[match[1]]["xyz".index(match[2])]), subscript)
    text = _NUMBER.sub(r"\1", text)
    if not _PLAIN.fullmatch(text):
        return None
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _STEPS:
        return int(_STEPS[type(node.op)](_value(node.left), _value(node.right)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    raise ValueError(f"{ast.dump(node)} is no index")
