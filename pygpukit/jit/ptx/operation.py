"""One instruction while its C++ is written: modifiers taken one by one, operands read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pygpukit.jit.ptx.block import Block
from pygpukit.jit.ptx.fault import PtxFault
from pygpukit.jit.ptx.parser import Instruction, Term, Vector
from pygpukit.jit.ptx.types import TYPES, Type

Writer = Callable[["Operation"], None]
_Writer = TypeVar("_Writer", bound=Writer)
_Written = TypeVar("_Written")
WRITERS: dict[str, Writer] = {}  # by the opcode's first word


def instruction(*names: str) -> Callable[[_Writer], _Writer]:
    """Says that a function writes the C++ of these instructions."""

    def known(writer: _Writer) -> _Writer:
        WRITERS.update(dict.fromkeys(names, writer))
        return writer

    return known


class Operation:
    """name: the opcode's first word. Modifiers are taken in the order in which PTX has them."""

    def __init__(self, block: Block, parsed: Instruction) -> None:
        self.block, self.parsed = block, parsed
        self.name, *self._modifiers = parsed.opcode.split(".")

    def fault(self, text: str, at: int | None = None) -> PtxFault:
        return PtxFault(f"{self.parsed.opcode}: {text}", self.parsed.at if at is None else at)

    def unknown(self) -> PtxFault:
        by_operand = "%" in self.parsed.opcode and self.name in WRITERS
        remedy = "; what an operand puts into an opcode must be a literal there" if by_operand else ""
        text = f"the instruction {self.parsed.opcode} cannot run on the simulated device{remedy}"
        return PtxFault(text, self.parsed.at)

    @property
    def at(self) -> int:
        return self.parsed.at

    # ---- modifiers

    def peek(self) -> str:
        return self._modifiers[0] if self._modifiers else ""

    def flag(self, *names: str) -> bool:
        """Takes the modifier if it comes next, under any of its names."""
        if self.peek() not in names:
            return False
        self._modifiers.pop(0)
        return True

    def one_of(self, *names: str, default: str | None = None) -> str:
        """Takes the next modifier, one of these; default: what it is where none of them comes."""
        if self.peek() in names:
            return self._modifiers.pop(0)
        if default is None:
            raise self.unknown()
        return default

    def arrange(self, *groups: Iterable[str]) -> None:
        """Puts the modifiers into the order of these groups, since ptxas takes them in any; others stay behind."""
        rank = {name: place for place, group in enumerate(groups) for name in group}
        self._modifiers.sort(key=lambda name: rank.get(name, len(groups)))

    def type(self, allowed: str = "") -> Type:
        """Takes a type. allowed: the names that are, none for every one."""
        name = self.peek()
        if name not in TYPES or (allowed and name not in allowed.split()):
            raise self.unknown()
        self._modifiers.pop(0)
        return TYPES[name]

    def no_more(self, operands: int | tuple[int, int]) -> None:
        """That no modifier is left, and how many operands there are."""
        if self._modifiers:
            raise self.unknown()
        low, high = (operands, operands) if isinstance(operands, int) else operands
        if not low <= self.count <= high:
            expected = str(low) if low == high else f"{low} to {high}"
            raise self.fault(f"takes {expected} operands, {self.count} are given")

    # ---- operands

    @property
    def count(self) -> int:
        return len(self.parsed.operands)

    def operand(self, index: int) -> Term:
        return self.parsed.operands[index]

    def read(self, index: int, kind: Type, wider: bool = False) -> str:
        return self._with_opcode(lambda: self.block.read(self.operand(index), kind, wider))

    def write(self, index: int, kind: Type, value: str, wider: bool = False) -> None:
        self._with_opcode(lambda: self.block.write(self.operand(index), kind, value, wider))

    def items(self, index: int) -> tuple[Term, ...]:
        """The elements of a vector operand; a single operand is one."""
        term = self.operand(index)
        return term.items if isinstance(term, Vector) else (term,)

    def read_term(self, term: Term, kind: Type, wider: bool = False) -> str:
        return self._with_opcode(lambda: self.block.read(term, kind, wider))

    def write_term(self, term: Term, kind: Type, value: str, wider: bool = False) -> None:
        self._with_opcode(lambda: self.block.write(term, kind, value, wider))

    def places(self, terms: Iterable[Term]) -> list[str]:
        return self._with_opcode(lambda: [self.block.place(term) for term in terms])

    def _with_opcode(self, work: Callable[[], _Written]) -> _Written:
        try:
            return work()
        except PtxFault as fault:
            raise PtxFault(f"{self.parsed.opcode}: {fault.text}", fault.offset) from None

    # ---- what is written

    def line(self, text: str) -> None:
        self.block.lines.append(text)

    def need(self, header: str) -> None:
        self.block.headers.add(header)

    def temporary(self, kind: str, value: str) -> str:
        """A constant of the block's own."""
        name = self.block.fresh("")
        self.line(f"const {kind} {name} = {value};")
        return name
