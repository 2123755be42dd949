"""Mutants of a kernel source: each barrier removed, each bounds check dropped, each index and thread number shifted.

Of code that the preprocessor leaves out on the simulated device there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pygpukit.jit.compile.sim_source import MACROS, blank
from pygpukit.jit.source.lexer import lex

_BARRIER = re.compile(
    r"\b__(?:syncthreads|syncwarp|threadfence|threadfence_block|threadfence_system)\s*\([^()]*\)|\b\w+\.sync\(\)"
)
_VOTE = re.compile(r"\b__syncthreads_(?:count|and|or)(?=\()")  # what is left of one is the thread's own predicate
_THREAD = re.compile(r"\b(?:threadIdx|blockIdx)\.[xyz]\b")
_IF = re.compile(r"\bif\s*(?=\()")
_LEAVES = re.compile(r"\s*(?:return|continue|break)\b")
_RELATION = re.compile(r"(?<![<>-])[<>](?![<>])=?")
_NO_TYPE = frozenset(("return", "else", "case", "do", "throw", "goto"))
_OPEN, _CLOSE = "([{", ")]}"


class Edit(NamedTuple):
    start: int
    end: int
    text: str
    kind: str


@dataclass(frozen=True)
class Mutant:
    """One change. line and column (from 1) say where; mutation: what became of it; source: the whole changed text."""

    file: str
    line: int
    column: int
    kind: str
    mutation: str
    source: str

    @property
    def key(self) -> tuple[str, int, int, str]:
        return self.file, self.line, self.column, self.mutation

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.kind}: {self.mutation}"


def mutants(file: str, source: str) -> list[Mutant]:
    """Every mutant of a source, in the order of their places; each differs from the source by one change."""
    code = blank(source)
    found = sorted({*_barriers(code), *_checks(code), *_indices(code), *_threads(code)})
    active = {token.line for token in lex(source, MACROS).tokens}
    out: dict[str, Mutant] = {}
    for start, end, text, kind in found:
        changed = source[:start] + text + source[end:]
        line, column = source.count("\n", 0, start) + 1, start - source.rfind("\n", 0, start)
        if line not in active:
            continue
        mutation = f"{' '.join(source[start:end].split())} -> {text or 'nothing'}"
        out.setdefault(changed, Mutant(file, line, column, kind, mutation, changed))
    return list(out.values())


def _barriers(code: str) -> Iterator[Edit]:
    for match in _BARRIER.finditer(code):
        yield Edit(match.start(), match.end(), "", "barrier")
    for match in _VOTE.finditer(code):
        yield Edit(match.start(), match.end(), "(int)", "barrier")


def _threads(code: str) -> Iterator[Edit]:
    for match in _THREAD.finditer(code):
        if code[match.start() - 1] == "[" and code[match.end()] == "]":
            continue  # shifted as an index
        for sign in "+-":
            yield Edit(match.start(), match.end(), f"({match.group()} {sign} 1)", "thread index")


def _indices(code: str) -> Iterator[Edit]:
    for match in re.finditer(r"(?<=[\w\])])\[", code):
        start, end = match.end(), _closing(code, match.start())
        text = code[start:end].strip()
        if text and not _declares(code, match.start()):
            for sign in "+-":
                changed = f"{text} {sign} 1" if re.fullmatch(r"[\w.]+", text) else f"({text}) {sign} 1"
                yield Edit(start, end, changed, "index")


def _declares(code: str, bracket: int) -> bool:
    """Whether the bracket belongs to `type name[...]`."""
    at = bracket
    while code[at - 1] == "]":
        at = _opening(code, at - 1)
    before = re.search(r"(\w+)[ \t\n]+\w+$", code[:at])
    return before is not None and before.group(1) not in _NO_TYPE


def _checks(code: str) -> Iterator[Edit]:
    for match in _IF.finditer(code):
        end = _closing(code, match.end())
        leaves = _LEAVES.match(code, end + 1) is not None
        yield from _terms(code, match.end() + 1, end, "false" if leaves else "true")
    for match in re.finditer(r"\?", code):
        yield from _terms(code, _condition(code, match.start()), match.start(), "true")


def _terms(code: str, start: int, end: int, value: str) -> Iterator[Edit]:
    """Each comparison among the condition's terms; a condition that makes a thread leave is dropped by `false`."""
    depth, first = 0, start
    for at in range(start, end + 1):
        depth += (at < end and code[at] in _OPEN) - (at < end and code[at] in _CLOSE)
        if at == end or (depth == 0 and code[at : at + 2] in ("&&", "||")):
            text = code[first:at]
            if _RELATION.search(re.sub(r"<[\w\s,]*>\(", "(", text)):
                space = len(text) - len(text.lstrip())
                yield Edit(first + space, first + len(text.rstrip()), value, "bounds check")
            first = at + 2


def _condition(code: str, question: int) -> int:
    """Where the condition before a question mark begins."""
    depth, at = 0, question
    while at > 0:
        at -= 1
        if code[at] in _CLOSE:
            depth += 1
        elif code[at] in _OPEN:
            if depth == 0:
                return at + 1
            depth -= 1
        elif depth == 0 and (
            code[at] in ",;?:" or (code[at] == "=" and code[at - 1] not in "=!<>" and code[at + 1] != "=")
        ):
            return at + 1
        elif depth == 0 and code.startswith("return", at):
            return at + len("return")
    return 0


def _closing(code: str, at: int) -> int:
    """The bracket that closes the one at `at`."""
    depth = 0
    for position in range(at, len(code)):
        depth += (code[position] in _OPEN) - (code[position] in _CLOSE)
        if depth == 0:
            return position
    raise ValueError(f"the bracket at offset {at} is not closed")


def _opening(code: str, at: int) -> int:
    """The bracket that the one at `at` closes."""
    depth = 0
    for position in range(at, -1, -1):
        depth += (code[position] in _CLOSE) - (code[position] in _OPEN)
        if depth == 0:
            return position
    raise ValueError(f"the bracket at offset {at} is not opened")
