"""The C++ block that an asm statement becomes: operands and registers as variables, and statements in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pygpukit.jit.ptx.fault import PtxFault
from pygpukit.jit.ptx.parser import Name, Not, Number, OperandNumber, Sink, Term
from pygpukit.jit.ptx.special import special
from pygpukit.jit.ptx.statement import Operand
from pygpukit.jit.ptx.types import LETTERS, TYPES, Type


@dataclass(frozen=True)
class Variable:
    """name: in C++. type: None for a constant of the source, which takes any type."""

    name: str
    type: Type | None
    writable: bool = True
    width: int = 1


@dataclass
class Block:
    """One asm statement's code so far. headers: those that it needs."""

    operands: tuple[Operand, ...]
    lines: list[str] = field(default_factory=list)
    headers: set[str] = field(default_factory=set)
    _scopes: list[dict[str, Variable]] = field(default_factory=list)
    _labels: list[dict[str, str]] = field(default_factory=list)
    _outputs: dict[int, int] = field(default_factory=dict)  # the line that takes each in
    _kept: set[int] = field(default_factory=set)  # whose variables the statement's end leaves alone
    _named: set[int] = field(default_factory=set)  # which an instruction reads or writes
    _names: int = 0

    def begin(self) -> None:
        """Takes the statement's operands in."""
        for index, operand in enumerate(self.operands):
            name = _operand_name(index)
            if operand.letter == "n":
                self.lines.append(f"constexpr auto {name} = pk_ptx_constant({operand.expression});")
            elif operand.output:
                self._outputs[index] = len(self.lines)
                self.lines.append("")
            elif operand.letter != "C":
                self.lines.append(
                    f"{self._kind(operand)} {name} = pk_ptx_in<{self._kind(operand)}>({operand.expression});"
                )

    def end(self) -> None:
        """Hands the results out."""
        for index, line in self._outputs.items():
            name, to = _operand_name(index), f"pk_ptx_to_{index}"
            if index not in self._kept:
                self.lines.append(f"{to} = pk_ptx_out<pk_ptx_plain<decltype({to})>>({name});")
            if index in self._named or index not in self._kept:
                operand = self.operands[index]
                first = f" = pk_ptx_in<{self._kind(operand)}>({to})" if operand.read else ""
                self.lines[line] = f"auto &{to} = ({operand.expression}); {self._kind(operand)} {name}{first};"

    def place(self, term: Term) -> str:
        """The variable of the source that is an operand which is read and written: what changes it does so later, and
        the statement's end leaves it alone. To be written once: it is the operand's own text."""
        if not isinstance(term, OperandNumber) or not (
            self.operands[term.index].output and self.operands[term.index].read
        ):
            raise PtxFault("expected an operand of the asm statement that is read and written (+)", term.at)
        self._kept.add(term.index)
        return f"({self.operands[term.index].expression.strip()})"

    @staticmethod
    def _kind(operand: Operand) -> str:
        return TYPES[LETTERS[operand.letter]].holder

    def fresh(self, text: str) -> str:
        """A name of C++ that nothing else has."""
        self._names += 1
        return f"pk_ptx_r{self._names}_{re.sub(r'[^A-Za-z0-9]', '_', text)}"

    def open(self, labels: dict[str, str]) -> None:
        """Begins a scope with these labels."""
        self._scopes.append({})
        self._labels.append(labels)

    def close(self) -> None:
        self._scopes.pop()
        self._labels.pop()

    def declare(self, name: str, kind: Type, width: int, at: int) -> None:
        if name in self._scopes[-1]:
            raise PtxFault(f"the register {name} is declared twice", at)
        variable = self.fresh(name)
        self._scopes[-1][name] = Variable(variable, kind, True, width)
        self.lines.append(f"{kind.holder} {variable}{f'[{width}]' if width > 1 else ''};")

    def label(self, name: str, at: int) -> str:
        for labels in reversed(self._labels):
            if name in labels:
                return labels[name]
        raise PtxFault(f"there is no label {name}", at)

    def variable(self, term: Term) -> Variable:
        """The variable that a name or an operand stands for."""
        if isinstance(term, OperandNumber):
            operand = self.operands[term.index]
            self._named.add(term.index)
            kind = None if operand.letter == "n" else TYPES[LETTERS[operand.letter]]
            return Variable(_operand_name(term.index), kind, operand.output)
        if isinstance(term, Name):
            for scope in reversed(self._scopes):
                if term.text in scope:
                    return scope[term.text]
                head, _, element = term.text.rpartition(".")
                if head in scope and scope[head].width > 1 and element in tuple("xyzw"[: scope[head].width]):
                    vector = scope[head]
                    return Variable(f"{vector.name}[{'xyzw'.index(element)}]", vector.type)
            value, type_name = special(term.text, term.at)
            return Variable(value, TYPES[type_name], False)
        raise PtxFault("expected a register", term.at)

    def read(self, term: Term, kind: Type, wider: bool = False) -> str:
        """An operand as a value of that type. wider: a register may have more bits, of which the lower count."""
        if isinstance(term, Number):
            return constant(term, kind)
        if isinstance(term, Not):
            if kind.kind == "p":
                return f"!{self.read(term.operand, kind)}"
            raise PtxFault("a sign before a register is no PTX", term.at)
        variable = self.variable(term)
        if variable.width > 1:
            raise PtxFault("a vector register stands where one element is expected", term.at)
        if variable.type is None:
            return f"pk_ptx_bits<{kind.cpp}>(({kind.cpp}){variable.name})"
        self.fits(variable.type, kind, wider, term)
        return converted(variable.name, variable.type, kind)

    def write(self, term: Term, kind: Type, value: str, wider: bool = False) -> None:
        """Sets a register to a value of that type. wider: it may have more bits, and gets the value extended."""
        if isinstance(term, Sink):
            self.lines.append(f"(void)({value});")
            return
        variable = self.variable(term)
        if not variable.writable or variable.type is None:
            raise PtxFault("the operand is written, but it is no output of the asm statement", term.at)
        if variable.width > 1:
            raise PtxFault("a vector register stands where one element is expected", term.at)
        self.fits(variable.type, kind, wider, term)
        if kind.bits == variable.type.bits:
            self.lines.append(f"{variable.name} = {converted(value, kind, variable.type, True)};")
        elif kind.kind == "s":
            signed = TYPES[f"s{variable.type.bits}"]
            self.lines.append(f"{variable.name} = {converted(f'(({signed.cpp})({value}))', signed, variable.type)};")
        else:
            plain = TYPES[f"b{kind.bits}"]
            held = TYPES[f"b{variable.type.bits}"]
            bits = f"(({held.holder}){converted(value, kind, plain, True)})"
            self.lines.append(f"{variable.name} = {converted(bits, held, variable.type)};")

    @staticmethod
    def fits(have: Type, want: Type, wider: bool, term: Term) -> None:
        if (have.kind == "p") != (want.kind == "p"):
            what = "no predicate" if want.kind == "p" else "a predicate"
            raise PtxFault(f"the operand is {what}, and the instruction takes .{want.name}", term.at)
        if have.bits != want.bits and not (wider and have.bits > want.bits):
            raise PtxFault(f"the operand has {have.bits} bits, and the instruction takes .{want.name}", term.at)


def _operand_name(index: int) -> str:
    return f"pk_ptx_{index}"


def converted(value: str, have: Type, want: Type, whole: bool = False) -> str:
    """The same bits as another type; of a wider value the lower ones. whole: `value` may be any expression."""
    inner = f"({value})" if whole else value
    if have.cpp == want.cpp and not whole:
        return value
    if have.kind in "f" or want.kind in "f":
        if have.cpp == want.cpp:
            return value
        if have.bits != want.bits:
            plain = TYPES[f"b{want.bits}"].cpp
            return f"pk_ptx_bits<{want.cpp}>(({plain})pk_ptx_bits<{TYPES[f'b{have.bits}'].cpp}>({value}))"
        return f"pk_ptx_bits<{want.cpp}>({value})"
    return f"(({want.cpp}){inner})"


def constant(term: Number, kind: Type) -> str:
    """A constant as an expression of that type."""
    if kind.kind == "p":
        raise PtxFault("a constant stands where a predicate is expected", term.at)
    if kind.kind == "f":
        if term.bits:
            written = TYPES[f"f{term.bits}"]
            value = f"pk_ptx_bits<{written.cpp}>({term.value:#x}{'u' if term.bits == 32 else 'ull'})"
            return value if term.bits == kind.bits else f"(({kind.cpp}){value})"
        if isinstance(term.value, int):
            raise PtxFault(f"the integer {term.value} stands where .{kind.name} is expected", term.at)
        return f"(({kind.cpp}){term.value!r})"
    if isinstance(term.value, float):
        raise PtxFault(f"the number {term.value!r} stands where .{kind.name} is expected", term.at)
    return f"(({kind.cpp}){term.value & 0xFFFFFFFFFFFFFFFF:#x}ull)"
