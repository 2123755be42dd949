"""asm statements in CUDA C++ text: where they are, and their parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pygpukit.jit.ptx.fault import PtxFault

KEYWORD = re.compile(r"\b(?:asm|__asm__|__asm)\b")
OPERAND = 0xE000  # the character that stands for operand 0 in a template; those of the others follow it
_MAX_OPERANDS = 512
_QUALIFIERS = frozenset(("volatile", "__volatile__", "__volatile", "inline", "__inline__", "__inline"))
_SPACE = re.compile(r"(?:\s|\\\r?\n|//[^\n]*|/\*.*?\*/|#pragma[^\n]*\n|__extension__)+", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*")
_RAW = re.compile(r'(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\((?P<text>.*?)\)(?P=delimiter)"', re.DOTALL)
_STRING = re.compile(r'(?:u8)?"(?P<text>(?:\\.|[^"\\\n])*)"', re.DOTALL)
_CHARACTER = re.compile(r"(?<![\w'])'(?:\\.|[^'\\\n])+'")
_ESCAPE = re.compile(r"\\(?:\r?\n|x[0-9a-fA-F]+|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b", "0": "\0"}
_INTEGER = re.compile(r"[\s(]*(?P<digits>0[xX][0-9a-fA-F]+|0|[1-9]\d*)[uUlL]*[\s)]*")
_NAME = re.compile(r"\[\s*(?P<name>[^\W\d]\w*)\s*\]")
# A letter before a digit or a bracket asks for another form of an operand; %tid.x and the like are PTX's own.
_REFERENCE = re.compile(
    r"%(?:(?P<number>\d+)|\[(?P<name>\w+)\]|(?P<own>[A-Za-z_$](?![\d\[]))|(?P<plain>.)?)", re.DOTALL
)
# An expression up to its bracket, with nothing in it that could hide one.
_PLAIN = re.compile(r"((?:[^][(){}\"'/\\]|\[[^][(){}\"'/\\]*\])*)\)")
# An operand as most are, with the comma after it.
_USUAL = re.compile(r'\s*"(?P<constraint>[=+&]*[A-Za-z])"\s*\(' + _PLAIN.pattern + r"\s*(?P<comma>,?)")
# Sums of a product, a hundred and more in a row.
_SUMS = re.compile(r'(?:\s*"\+f"\s*\(' + _PLAIN.pattern + r"\s*(?P<comma>,?))+")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Operand(NamedTuple):
    """letter: the constraint without = + &."""

    letter: str
    expression: str
    output: bool
    read: bool
    name: str
    offset: int


@dataclass(frozen=True)
class Statement:
    """source[start:end] is the statement without its semicolon. template: its text, operands as characters from
    OPERAND on; places: the offset in the source of each character. expand: it has macros in the place of strings."""

    start: int
    end: int
    template: str
    places: tuple[int, ...]
    operands: tuple[Operand, ...]
    memory: bool
    expand: bool = False


def statements(source: str, code: str, active: Callable[[int], bool]) -> Iterator[Statement]:
    """Each asm statement. code: the source with comments, strings and preprocessor lines blank. active(offset): whether
    one there is compiled.

    Raises PtxFault where one is cut off, or has a constraint that CUDA C++ does not have.
    """
    at = 0
    while match := KEYWORD.search(code, at):
        at = match.end()
        if active(match.start()):
            statement = _Reader(source, match.start(), at).statement()
            yield statement
            at = statement.end


class _Reader:
    def __init__(self, source: str, start: int, at: int) -> None:
        self._source, self._start, self._at = source, start, at

    def _skip(self) -> None:
        if space := _SPACE.match(self._source, self._at):
            self._at = space.end()

    def _peek(self) -> str:
        self._skip()
        return self._source[self._at : self._at + 1]

    def _word(self) -> str:
        self._skip()
        word = _WORD.match(self._source, self._at)
        return word.group() if word else ""

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _expect(self, character: str, what: str) -> None:
        if not self._take(character):
            token = self._peek() or "the end of the source"
            raise PtxFault(f"asm statement: expected {character!r} {what}, found {token!r}", self._at)

    def statement(self) -> Statement:
        while word := self._word():
            if word == "goto":
                raise PtxFault("asm goto: a jump out of an asm statement is no CUDA C++", self._at)
            if word not in _QUALIFIERS:
                return self._to_expand()
            self._at += len(word)
        self._expect("(", "after asm")
        pieces = self._strings()
        if pieces is None:
            return self._to_expand()
        template, places = pieces
        if self._take(")"):
            return Statement(self._start, self._at, template, places, (), False)
        operands: list[Operand] = []
        memory = False
        for section in range(4):
            if not self._take(":"):
                break
            if section < 2:
                if not self._operands(operands, output=section == 0):
                    return self._to_expand()
            elif section == 2:
                clobbers = self._clobbers()
                if clobbers is None:
                    return self._to_expand()
                memory = "memory" in clobbers
            elif self._peek() != ")":
                raise PtxFault("asm goto: a jump out of an asm statement is no CUDA C++", self._at)
        if self._peek() == "#" or _WORD.match(self._source, self._at):
            return self._to_expand()
        self._expect(")", "after the parts of an asm statement")
        return Statement(self._start, self._at, *_substituted(template, places, operands), tuple(operands), memory)

    def _to_expand(self) -> Statement:
        return Statement(self._start, max(self._at, self._start + 3), "", (), (), False, expand=True)

    def _strings(self) -> tuple[str, tuple[int, ...]] | None:
        """One string literal or several in a row; None where a macro or a directive stands in the place of one."""
        text: list[str] = []
        places: list[int] = []
        has_strings = False
        while True:
            self._skip()
            if raw := _RAW.match(self._source, self._at):
                text += raw["text"]
                places += range(raw.start("text"), raw.end("text"))
                self._at = raw.end()
            elif string := _STRING.match(self._source, self._at):
                _unescape(string["text"], string.start("text"), text, places)
                self._at = string.end()
            elif self._peek() == "#" or _WORD.match(self._source, self._at):
                return None
            elif has_strings:
                if text and (strange := max(text)) >= chr(OPERAND):
                    raise PtxFault("asm statement: a character that PTX does not have", places[text.index(strange)])
                return "".join(text), tuple(places)
            else:
                raise PtxFault("asm statement: expected a string literal", self._at)
            has_strings = True

    def _operands(self, operands: list[Operand], output: bool) -> bool:
        """True where all were read; False where a macro stands for some, or a directive among them."""
        if self._peek() in ":)":
            return True
        while True:
            if output and (sums := _SUMS.match(self._source, self._at)):
                operands += _sums(sums.group())
                self._at = sums.end()
                if self._has_next(sums["comma"], operands):
                    continue
                return True
            if usual := _USUAL.match(self._source, self._at):
                operands.append(_operand(usual[1], usual[2], output, "", usual.start(1) - 1))
                self._at = usual.end()
                if self._has_next(usual["comma"], operands):
                    continue
                return True
            self._skip()
            name, at = "", self._at
            if match := _NAME.match(self._source, self._at):
                name, self._at = match["name"], match.end()
                self._skip()
            if self._peek() == "#" or (
                _WORD.match(self._source, self._at) and not _STRING.match(self._source, self._at)
            ):
                return False
            strings = self._strings()
            if strings is None:
                return False
            self._expect("(", "after a constraint")
            expression = self._until_closed()
            operands.append(_operand(strings[0], expression, output, name, at))
            if not self._has_next("," if self._take(",") else "", operands):
                return True

    def _has_next(self, comma: str, operands: list[Operand]) -> bool:
        """True where another operand follows the latest: NVRTC wants no comma."""
        if len(operands) > _MAX_OPERANDS:
            raise PtxFault(f"asm statement: more than {_MAX_OPERANDS} operands", self._at)
        return bool(comma) or self._peek() in ('"', "#")

    def _until_closed(self) -> str:
        """The text before the bracket that closes the one just taken."""
        source, begin, open_ = self._source, self._at, [")"]
        if plain := _PLAIN.match(source, begin):
            self._at = plain.end()
            return plain[1]
        while self._at < len(source):
            here = source[self._at]
            skipped = (
                (_SPACE.match(source, self._at) if here in "/\\" else None)
                or (_RAW.match(source, self._at) if here in "uULR" else None)
                or (_STRING.match(source, self._at) if here in 'u"' else None)
                or (_CHARACTER.match(source, self._at) if here == "'" else None)
            )
            if skipped:
                self._at = skipped.end()
                continue
            self._at += 1
            if here in _CLOSING:
                open_.append(_CLOSING[here])
            elif here == open_[-1]:
                open_.pop()
                if not open_:
                    return source[begin : self._at - 1]
        raise PtxFault("asm statement: an operand is not closed", begin)

    def _clobbers(self) -> list[str] | None:
        clobbers: list[str] = []
        while self._peek() not in ":)" and self._peek():
            strings = self._strings()
            if strings is None:
                return None
            clobbers.append(strings[0])
            if not self._take(","):
                break
        return clobbers


@lru_cache(maxsize=16)  # macros make the same for every type of element
def _sums(text: str) -> tuple[Operand, ...]:
    """Operands that are read and written as floats, of which no fault is told."""
    return tuple(Operand("f", one[2], True, True, "", 0) for one in _USUAL.finditer(text))


def _operand(constraint: str, expression: str, output: bool, name: str, offset: int) -> Operand:
    letter = constraint.strip().lstrip("=+&%").strip()
    marked = constraint.strip()[:1]
    if output and marked not in ("=", "+"):
        raise PtxFault(f"asm statement: the constraint {constraint!r} of an output begins with neither = nor +", offset)
    if not output and marked in ("=", "+"):
        raise PtxFault(f"asm statement: the constraint {constraint!r} of an input begins with {marked}", offset)
    if letter not in ("h", "r", "l", "q", "f", "d", "b", "n", "C") or (output and letter in "nC"):
        letters = "h, r, l, q, f, d, b" + ("" if output else ", n, C")
        raise PtxFault(f"asm statement: unknown constraint {constraint!r}; CUDA C++ has {letters}", offset)
    return Operand(letter, expression, output, not output or marked == "+", name, offset)


def _unescape(text: str, at: int, out: list[str], places: list[int]) -> None:
    done = 0
    for match in _ESCAPE.finditer(text):
        out += text[done : match.start()]
        places += range(at + done, at + match.start())
        done = match.end()
        what = match.group()[1:]
        if what[:1] in "\r\n":
            continue
        if what[0] == "x" and len(what) > 1:
            out.append(chr(int(what[1:], 16) & 0xFF))
        elif what[0] in "01234567":
            out.append(chr(int(what, 8) & 0xFF))
        else:
            out.append(_ESCAPED.get(what, what))
        places.append(at + match.start())
    out += text[done:]
    places += range(at + done, at + len(text))


def _literal(operand: Operand) -> str:
    """The digits of an "n" that is written as a number, "" of any other operand."""
    written = _INTEGER.fullmatch(operand.expression) if operand.letter == "n" else None
    return str(int(written["digits"], 0)) if written else ""


def _substituted(template: str, places: tuple[int, ...], operands: list[Operand]) -> tuple[str, tuple[int, ...]]:
    """The template with one character for each operand that it names, and %% as %, as is %tid."""
    names = {operand.name: index for index, operand in enumerate(operands) if operand.name}
    out: list[str] = []
    kept: list[int] = []
    done = 0
    for match in _REFERENCE.finditer(template):
        start = match.start()
        out += template[done:start]
        kept += places[done:start]
        done = match.end()
        if match["own"] or match["plain"] == "=":
            # %= is another number in each statement: labels here are their statement's own
            out += f"%{match['own']}" if match["own"] else "0"
            kept += [places[start]] * (len(out) - len(kept))
            continue
        if match["number"] is None and match["name"] is None:
            if match["plain"] not in ("%", "{", "}", "|"):
                raise PtxFault(
                    f"asm statement: {match.group()!r} names no operand; a percent sign of PTX is %%", places[start]
                )
            out.append(match["plain"])
            kept.append(places[start])
            continue
        index = int(match["number"]) if match["number"] else names.get(match["name"] or "", -1)
        if not 0 <= index < len(operands):
            raise PtxFault(f"asm statement: {match.group()} is no operand, there are {len(operands)}", places[start])
        constant = operands[index]
        if constant.letter == "C":
            literal = _STRING.fullmatch(constant.expression.strip())
            if literal is None:
                raise PtxFault(
                    f'asm statement: the text of "C"({constant.expression.strip()}) is known to a template\'s compiler '
                    "alone; on the simulated device it must be a string literal",
                    constant.offset,
                )
            text: list[str] = []
            _unescape(literal["text"], 0, text, [])
            out += text
            kept += [places[start]] * len(text)
            continue
        digits = _literal(constant) if out and (out[-1].isalnum() or out[-1] in "_$.:") else ""
        out += digits or chr(OPERAND + index)  # a literal in an opcode, as in .v%0, is a part of it
        kept += [places[start]] * (len(digits) or 1)
    out += template[done:]
    kept += places[done:]
    return "".join(out), tuple(kept)
