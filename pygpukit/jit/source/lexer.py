"""Tokens of CUDA C++ source, with inactive preprocessor branches left out where their conditions are plain.

This is no preprocessor: macros are recorded, not expanded, and a condition that depends on headers or on the compiler
counts as "may hold", so that both of its branches are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pygpukit.jit.source.condition import evaluate


class Token(NamedTuple):
    """One token; strings and characters keep their quotes. certain: no condition that it stands under is in doubt."""

    text: str
    line: int
    certain: bool = True


# A digit separator (1'000) must not open a character literal, and a raw string may hold anything: both come early.
_TOKEN = re.compile(
    r"""
      (?P<space>(?:\s|\\\r?\n)+)
    | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<directive>\#(?:\\\r?\n|/\*.*?(?:\*/|\Z)|(?!//|/\*)[^\n])*)
    | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z))
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
    | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
    | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    | (?P<word>[^\W\d]\w*)
    | (?P<mark>::|->|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"#\s*(\w+)\s*(.*)", re.DOTALL)
_DEFINE = re.compile(r"([^\W\d]\w*)(\()?\s*(.*)", re.DOTALL)
_INCLUDE = re.compile(r'(?:"([^"]+)"|<([^>]+)>)')
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@dataclass
class Unit:
    """Result of lex(). macros: object-like macros only, name to replacement tokens. functions: names of the others."""

    tokens: list[Token] = field(default_factory=list)
    macros: dict[str, list[str]] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    quoted_includes: list[str] = field(default_factory=list)
    angled_includes: list[str] = field(default_factory=list)


def words_of(text: str) -> list[str]:
    """The token texts of a piece of source without directives."""
    kept = (match for match in _TOKEN.finditer(text) if match.lastgroup not in ("space", "comment", "directive"))
    return [match.group() for match in kept]


def lex(source: str, defines: Mapping[str, str] | None = None) -> Unit:
    """Tokens, object-like macros and includes of the active parts of `source`; `defines` are macros from outside."""
    unit = Unit(macros={name: words_of(value) for name, value in (defines or {}).items()})
    branches = _Branches()
    line = 1
    for match in _TOKEN.finditer(source):
        text, kind = match.group(), match.lastgroup
        if kind == "directive":
            _directive(_COMMENT.sub(" ", text.replace("\\\r\n", " ").replace("\\\n", " ")), unit, branches)
        elif kind not in ("space", "comment") and branches.active:
            unit.tokens.append(Token(text, line, branches.certain))
        line += text.count("\n")
    return unit


class _Branches:
    """The stack of open #if groups. A group is (active, taken, in doubt): taken means that an earlier branch certainly
    held, in doubt that the value of a condition so far is not known."""

    def __init__(self) -> None:
        self._groups: list[tuple[bool, bool, bool]] = []
        self.active = True
        self.certain = True

    def change(self, name: str, holds: bool | None) -> None:
        """`holds` is the condition's value, None when it is not known."""
        groups = self._groups
        if name in ("if", "ifdef", "ifndef"):
            groups.append((holds is not False, holds is True, holds is None))
        elif groups and name in ("elif", "elifdef", "elifndef"):
            _, taken, in_doubt = groups[-1]
            groups[-1] = (not taken and holds is not False, taken or holds is True, in_doubt or holds is None)
        elif groups and name == "else":
            groups[-1] = (not groups[-1][1], True, groups[-1][2])
        elif groups and name == "endif":
            groups.pop()
        self.active = all(active for active, _, _ in groups)
        self.certain = not any(in_doubt for _, _, in_doubt in groups)


def _directive(text: str, unit: Unit, branches: _Branches) -> None:
    match = _DIRECTIVE.match(text)
    if match is None:
        return
    name, rest = match.group(1), match.group(2).strip()
    complete = not (unit.quoted_includes or unit.angled_includes)  # after an #include, any macro may exist
    if name in ("if", "elif"):
        branches.change(name, evaluate(words_of(rest), unit.macros, complete))
    elif name.endswith(("ifdef", "elifdef")):
        branches.change(name, evaluate(["defined", *words_of(rest)[:1]], unit.macros, complete))
    elif name.endswith("ndef"):
        branches.change(name, evaluate(["!", "defined", *words_of(rest)[:1]], unit.macros, complete))
    elif name in ("else", "endif"):
        branches.change(name, None)
    elif not branches.active:
        return
    elif name == "define" and (define := _DEFINE.match(rest)):
        if define.group(2) is None:
            unit.macros[define.group(1)] = words_of(define.group(3))
        else:
            unit.functions.add(define.group(1))
    elif name == "undef":
        unit.macros.pop(rest, None)
    elif name == "include" and (include := _INCLUDE.match(rest)):
        (unit.quoted_includes if include.group(1) else unit.angled_includes).append(
            include.group(1) or include.group(2)
        )
