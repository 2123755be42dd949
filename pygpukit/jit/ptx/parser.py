"""The text of a template as PTX: scopes, register declarations, labels and instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isinf
from typing import NamedTuple

from pygpukit.jit.ptx.fault import PtxFault
from pygpukit.jit.ptx.statement import OPERAND

_TOKEN = re.compile(
    r"""
      (?P<space>(?:\s|//[^\n]*|/\*.*?(?:\*/|\Z))+)
    | (?P<operand>[\ue000-\ue7ff])
    | (?P<number>0[fF][0-9a-fA-F]{8}(?![\w.])|0[dD][0-9a-fA-F]{16}(?![\w.])|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
        |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)(?!\w)
    | (?P<word>[%A-Za-z_$][\w$]*(?:(?:\.|::)[\w$\ue000-\ue7ff]+)*)
    | (?P<directive>\.[A-Za-z]\w*)
    | (?P<string>"[^"]*")
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
MAX_DEPTH = 32  # of scopes and of brackets
MAX_REGISTERS = 4096
_LONGEST_NUMBER = 80


class Token(NamedTuple):
    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class Name:
    """A register, a label or a special register, as it is written."""

    text: str
    at: int


@dataclass(frozen=True)
class OperandNumber:
    """An operand of the asm statement, by its number."""

    index: int
    at: int


@dataclass(frozen=True)
class Number:
    """A constant. bits: 32 or 64 for one that is written by its bits, else 0."""

    value: int | float
    bits: int
    at: int


@dataclass(frozen=True)
class Sink:
    """_ where no result is wanted."""

    at: int


@dataclass(frozen=True)
class Vector:
    items: tuple[Term, ...]
    at: int


@dataclass(frozen=True)
class Address:
    """[base + offset], with what follows in the brackets."""

    base: Term
    offset: Term | None
    more: tuple[Term, ...]
    at: int


@dataclass(frozen=True)
class Pair:
    """first|second, of instructions with two results."""

    first: Term
    second: Term
    at: int


@dataclass(frozen=True)
class Not:
    """! before a predicate, or - before a register."""

    operand: Term
    at: int


Term = Name | OperandNumber | Number | Sink | Vector | Address | Pair | Not


@dataclass(frozen=True)
class Instruction:
    """opcode: all of it. predicate: what it depends on, Not(...) for the opposite."""

    opcode: str
    operands: tuple[Term, ...]
    predicate: Term | None
    at: int


@dataclass(frozen=True)
class Label:
    name: str
    at: int


@dataclass(frozen=True)
class Registers:
    """A .reg declaration. width: elements of each, 1 without .v2 or .v4."""

    type: str
    names: tuple[str, ...]
    width: int
    at: int


@dataclass(frozen=True)
class Scope:
    items: tuple[Item, ...]
    at: int


Item = Instruction | Label | Registers | Scope


def parse(text: str) -> Scope:
    """The template's items. Raises PtxFault with the place in the text."""
    return _Parser(text).all()


def number(text: str, at: int) -> Number:
    """A constant as PTX writes it."""
    if len(text) > _LONGEST_NUMBER:
        raise PtxFault(f"a constant of {len(text)} characters", at)
    if text[:2] in ("0f", "0F"):
        return Number(int(text[2:], 16), 32, at)
    if text[:2] in ("0d", "0D"):
        return Number(int(text[2:], 16), 64, at)
    if "." in text or (text[:2].lower() not in ("0x", "0b") and "e" in text.lower()):
        if isinf(float(text)):
            raise PtxFault(f"the constant {text} is too large", at)
        return Number(float(text), 0, at)
    plain = text.rstrip("U")
    octal = len(plain) > 1 and plain[0] == "0" and plain.isdigit()
    if octal and not set(plain) <= set("01234567"):
        raise PtxFault(f"the constant {text} begins as an octal number and is none", at)
    value = int(plain, 8) if octal else int(plain, 0)
    if value >= 1 << 64:
        raise PtxFault(f"the constant {text} has more than 64 bits", at)
    return Number(value, 0, at)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [
            Token(kind, _written(match.group()) if kind == "word" else match.group(), match.start())
            for match in _TOKEN.finditer(text)
            if (kind := match.lastgroup or "") != "space"
        ]
        self._end = Token("end", "", len(text))
        self._at = 0
        self._registers = 0

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[self._at + ahead] if self._at + ahead < len(self._tokens) else self._end

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _is(self, mark: str) -> bool:
        token = self._peek()
        return token.text == mark and token.kind == "mark"

    def _take(self, mark: str) -> bool:
        if not self._is(mark):
            return False
        self._at += 1
        return True

    def _expect(self, mark: str, after: str) -> None:
        if not self._take(mark):
            token = self._peek()
            raise PtxFault(f"expected {mark!r} after {after}, found {_quoted(token)}", token.at)

    def all(self) -> Scope:
        items = self._items(0)
        if self._peek().kind != "end":
            raise PtxFault(f"unexpected {_quoted(self._peek())}", self._peek().at)
        return Scope(items, 0)

    def _items(self, depth: int) -> tuple[Item, ...]:
        if depth > MAX_DEPTH:
            raise PtxFault(f"more than {MAX_DEPTH} scopes in one another", self._peek().at)
        items: list[Item] = []
        while True:
            token = self._peek()
            if token.kind == "end" or self._is("}"):
                return tuple(items)
            if self._take(";"):
                continue
            if self._take("{"):
                items.append(Scope(self._items(depth + 1), token.at))
                self._expect("}", "the items of a scope")
            elif token.kind == "directive":
                items += self._directive()
            elif token.kind == "word" and self._peek(1).text == ":":
                self._at += 2
                items.append(Label(token.text, token.at))
            else:
                items.append(self._instruction())

    def _directive(self) -> list[Item]:
        token = self._next()
        if token.text == ".pragma":
            while not self._take(";"):
                if self._next().kind == "end":
                    raise PtxFault("expected ';' after .pragma", token.at)
            return []
        if token.text != ".reg":
            raise PtxFault(f"the directive {token.text} in an asm statement is not supported", token.at)
        width, kind = 1, self._next()
        if kind.text in (".v2", ".v4"):
            width, kind = int(kind.text[2]), self._next()
        if kind.kind != "directive":
            raise PtxFault(f"expected a type after .reg, found {_quoted(kind)}", kind.at)
        names: list[str] = []
        while True:
            name = self._next()
            if name.kind != "word":
                raise PtxFault(f"expected a register's name, found {_quoted(name)}", name.at)
            if self._take("<"):
                count = self._next()
                if count.kind != "number" or not count.text.isdigit():
                    raise PtxFault(f"expected how many registers, found {_quoted(count)}", count.at)
                self._expect(">", "the number of registers")
                if len(count.text) > 5 or int(count.text) > MAX_REGISTERS:
                    raise PtxFault(f"{name.text}<{count.text[:9]}>: at most {MAX_REGISTERS} registers", name.at)
                names += [f"{name.text}{index}" for index in range(int(count.text))]
            else:
                names.append(name.text)
            self._registers += len(names)
            if self._registers > 16 * MAX_REGISTERS:
                raise PtxFault(f"more than {16 * MAX_REGISTERS} registers in one asm statement", name.at)
            if not self._take(","):
                break
        self._expect(";", "a .reg declaration")
        return [Registers(kind.text[1:], tuple(names), width, token.at)]

    def _instruction(self) -> Instruction:
        start = self._peek()
        predicate: Term | None = None
        if self._take("@"):
            opposite = self._peek()
            negated = self._take("!")
            predicate = self._register("after @")
            predicate = Not(predicate, opposite.at) if negated else predicate
        opcode = self._next()
        if opcode.kind != "word" or opcode.text[0] in "%$":
            raise PtxFault(f"expected an instruction, found {_quoted(opcode)}", opcode.at)
        text = opcode.text
        while self._peek().kind == "directive":  # a space or a macro's seam stands before the dot
            text += self._next().text
        operands: list[Term] = []
        if not self._is(";") and self._peek().kind != "end":
            operands.append(self._operand(0))
            while self._take(","):
                operands.append(self._operand(0))
        if self._peek().kind != "end" and not self._is("}"):
            self._expect(";", f"the operands of {text}")
        return Instruction(text, tuple(operands), predicate, start.at)

    def _register(self, where: str) -> Term:
        token = self._next()
        if token.kind == "operand":
            return OperandNumber(ord(token.text) - OPERAND, token.at)
        if token.kind == "word":
            return Name(token.text, token.at)
        raise PtxFault(f"expected a register {where}, found {_quoted(token)}", token.at)

    def _operand(self, depth: int) -> Term:
        if depth > MAX_DEPTH:
            raise PtxFault(f"more than {MAX_DEPTH} brackets in one another", self._peek().at)
        token = self._peek()
        if token.kind == "operand" and self._peek(1).text != "|":  # as most are
            self._at += 1
            return OperandNumber(ord(token.text) - OPERAND, token.at)
        first = self._one(depth)
        if self._is("|"):
            at = self._next().at
            return Pair(first, self._one(depth), at)
        return first

    def _one(self, depth: int) -> Term:
        token = self._peek()
        if self._take("{"):
            return Vector(self._list("}", depth), token.at)
        if self._take("["):
            return self._address(token.at, depth)
        if self._take("!"):
            return Not(self._one(depth + 1), token.at) if depth < MAX_DEPTH else self._operand(depth + 1)
        if self._take("-"):
            inner = self._one(depth + 1) if depth < MAX_DEPTH else self._operand(depth + 1)
            if isinstance(inner, Number) and not inner.bits:
                return Number(-inner.value, 0, token.at)
            return Not(inner, token.at)
        if token.kind == "number":
            self._at += 1
            return number(token.text, token.at)
        if token.text == "_":
            self._at += 1
            return Sink(token.at)
        return self._register("or a constant")

    def _list(self, closing: str, depth: int) -> tuple[Term, ...]:
        items: list[Term] = []
        while not self._take(closing):
            if items:
                self._expect(",", "an element")
            items.append(self._operand(depth + 1))
        return tuple(items)

    def _address(self, at: int, depth: int) -> Address:
        base = self._operand(depth + 1)
        offset: Term | None = None
        if self._take("+") or self._is("-"):
            offset = self._operand(depth + 1)
        more: tuple[Term, ...] = ()
        if self._take(","):
            more = self._list("]", depth)
        else:
            self._expect("]", "an address")
        return Address(base, offset, more, at)


def _written(word: str) -> str:
    """A word's text, in which an operand is %0 again."""
    return re.sub("[\ue000-\ue7ff]", lambda one: f"%{ord(one.group()) - OPERAND}", word)


def _quoted(token: Token) -> str:
    if token.kind == "end":
        return "the end of the text"
    if token.kind == "operand":
        return f"operand {ord(token.text) - OPERAND}"
    return repr(token.text)
