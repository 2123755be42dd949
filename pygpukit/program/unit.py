"""One .cu text as both sides see it: its declarations, its macros, and replacing parts of it line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pygpukit.jit.source.lines import Lines
from pygpukit.program.declarations import SPACES, Declaration, declarations

_OPAQUE = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
      | (?P<directive>^[ \t]*\#(?:\\\n|/\*.*?(?:\*/|\Z)|(?!//|/\*)[^\n])*)
      | (?P<text>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)
      | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?
      | (?<![\w'])(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_TEXT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|(?<![\w'])'(?:\\.|[^'\\\n])*'?""", re.DOTALL
)
DEFINE = re.compile(r"#[ \t]*define[ \t]+(?P<name>[^\W\d]\w*)(?P<arguments>\([^)]*\))?(?P<body>.*)", re.DOTALL)
DEVICE = frozenset(["__global__", "__device__", "__tile_global__"])
_WORD = re.compile(r"[^\W\d]\w*")


def blanks(text: str) -> str:
    """As many blanks, with the line breaks where they are."""
    return re.sub(r"[^\n]", " ", text)


@dataclass(frozen=True)
class Edit:
    """text[start:end] becomes `new`, followed by the line breaks that it had."""

    start: int
    end: int
    new: str = ""


@dataclass(frozen=True)
class Unit:
    """text: flat (pygpukit.program.flat). name: what messages call it."""

    text: str
    name: str
    known_spaces: Mapping[str, frozenset[str]] = field(default_factory=dict)  # macros of a text around this one

    @cached_property
    def code(self) -> str:
        """The text with comments, strings and directives blank; offsets stay."""
        return _OPAQUE.sub(lambda match: blanks(match.group()), self.text)

    @cached_property
    def directives(self) -> list[tuple[int, int]]:
        """Where the preprocessor's lines are."""
        return [match.span() for match in _OPAQUE.finditer(self.text) if match.lastgroup == "directive"]

    @cached_property
    def with_directives(self) -> str:
        """The text with comments and strings blank, in directives, too."""
        pieces, done = [], 0
        for start, end in self.directives:
            pieces += [self.code[done:start], _TEXT.sub(lambda match: blanks(match.group()), self.text[start:end])]
            done = end
        return "".join([*pieces, self.code[done:]])

    @cached_property
    def macros(self) -> dict[str, list[str]]:
        """Of each macro what the text defines it as."""
        bodies: dict[str, list[str]] = {}
        for start, end in self.directives:
            if match := DEFINE.search(self.with_directives[start:end]):
                bodies.setdefault(match["name"], []).append(match["body"])
        return bodies

    @cached_property
    def spaces(self) -> dict[str, frozenset[str]]:
        """The macros that stand for words such as __device__."""
        direct = {
            name: {word for body in bodies for word in _WORD.findall(body)} for name, bodies in self.macros.items()
        }
        short = {
            name for name, bodies in self.macros.items() if all(len(body) < 200 and "{" not in body for body in bodies)
        }
        result = dict(self.known_spaces)
        for name in short:
            seen, waiting = {name}, [name]
            while waiting:
                for word in direct.get(waiting.pop(), ()):
                    if word in short and word not in seen:
                        seen.add(word)
                        waiting.append(word)
            words = frozenset(word for one in seen for word in direct[one] if word in SPACES)
            if words:
                result[name] = words
        return result

    @cached_property
    def makers(self) -> frozenset[str]:
        """The macros with arguments that stand for whole declarations."""
        return frozenset(
            name
            for name, bodies in self.macros.items()
            if any("{" in body and body.count("{") == body.count("}") and body.rstrip()[-1] in "};" for body in bodies)
        )

    @cached_property
    def code_makers(self) -> frozenset[str]:
        """Of these those that make code of the device."""
        return frozenset(
            name for name in self.makers if any(self._spaces_in(body) & DEVICE for body in self.macros[name])
        )

    def _spaces_in(self, text: str) -> set[str]:
        """The words of SPACES in a text, and those that its macros stand for."""
        return {space for word in _WORD.findall(text) for space in (word, *self.spaces.get(word, ()))}

    @cached_property
    def declarations(self) -> list[Declaration]:
        return declarations(self.code, self.spaces, self.makers)

    def edited(self, edits: list[Edit]) -> str:
        """The text with the edits made; of those that overlap the outer one counts."""
        pieces, done = [], 0
        for one in sorted(edits, key=lambda edit: (edit.start, edit.end > edit.start, -edit.end)):
            if one.start < done:
                continue
            breaks = self.text.count("\n", one.start, one.end) - one.new.count("\n")
            pieces += [self.text[done : one.start], one.new, "\n" * breaks]
            done = one.end
        return "".join([*pieces, self.text[done:]])

    def erased(self, start: int, end: int) -> list[Edit]:
        """Edits that take away what is between two places, but for directives and columns."""
        edits, done = [], start
        for first, last in self.directives:
            if last <= start or first >= end:
                continue
            edits.append(Edit(done, first, blanks(self.text[done:first])))
            done = last
        return [*edits, Edit(done, end, blanks(self.text[done:end]))]

    def place(self, offset: int) -> tuple[str, int]:
        """The file and its line, from 1, that an offset of the flat text comes from."""
        return self._lines.origin(self.text.count("\n", 0, offset) + 1)

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text, self.name)
