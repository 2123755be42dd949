"""A kernel's parameters by their text: names for those that have none, and types without names."""

from __future__ import annotations

import re
from typing import NamedTuple

_KEYWORDS = frozenset(
    [
        "const",
        "volatile",
        "unsigned",
        "signed",
        "int",
        "long",
        "short",
        "char",
        "float",
        "double",
        "bool",
        "void",
        "auto",
    ]
    + ["struct", "class", "enum", "typename", "__restrict__", "__restrict", "restrict", "__grid_constant__"]
)
_POINTER = re.compile(r"\(\s*[*&]\s*(?P<name>[^\W\d]\w*)?")
_LAST = re.compile(r"(?P<name>[^\W\d]\w*)\s*(?P<extents>(?:\[[^\]]*\]\s*)*)$")


class Parameter(NamedTuple):
    """One parameter: its type without the name, the name ("" for none), whether it is a pack, and where in its text
    the name is, or would be."""

    type: str
    name: str
    pack: bool
    at: int


def split(text: str) -> list[tuple[int, str]]:
    """The parts of a list between its commas, each with where it begins."""
    parts, depth, angles, start = [], 0, 0, 0
    for index, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif depth:
            continue
        elif letter in "<>" and text[index - 1 : index] != "-":
            angles += 1 if letter == "<" else -1
        elif letter == "," and not angles:
            parts.append((start, text[start:index]))
            start = index + 1
    last = text[start:]
    return [*parts, (start, last)] if last.strip() or parts else parts


def parameter(text: str) -> Parameter:
    """One declaration of a list."""
    head = re.split(r"=(?!=)", text, maxsplit=1)[0]
    stripped = head.rstrip()
    pack = "..." in head
    if pointer := _POINTER.search(stripped):
        at = pointer.end()
        name = pointer["name"] or ""
        return Parameter(stripped[: at - len(name)] + stripped[at:], name, pack, at)
    if last := _LAST.search(stripped):
        before = stripped[: last.start()]
        words = [
            word
            for word in re.findall(r"[^\W\d]\w*", before)
            if word not in ("const", "volatile", "typename", "struct")
        ]
        named = last["name"] not in _KEYWORDS and (words or before.rstrip().endswith((">", "*", "&", "...", ")")))
        if named and not before.rstrip().endswith("::"):
            return Parameter(before + last["extents"], last["name"], pack, last.start())
        if last["extents"]:
            return Parameter(stripped, "", pack, len(stripped) - len(last["extents"]))
    return Parameter(stripped, "", pack, len(stripped))


def template_arguments(text: str) -> list[str]:
    """The arguments that name a template's own parameters: `<T, N, Ts...>`."""
    arguments = []
    for _, one in split(text):
        head = re.split(r"=(?!=)", one, maxsplit=1)[0].rstrip()
        words = re.findall(r"[^\W\d]\w*", head)
        unnamed = not words or words[-1] in ("class", "typename", *_KEYWORDS) or head.endswith((">", "..."))
        if unnamed:
            return []  # no way to name it: it is deduced
        arguments.append(words[-1] + ("..." if "..." in head else ""))
    return arguments
