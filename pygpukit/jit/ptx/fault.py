"""Fault of a PTX statement: what cannot be translated, and where."""

from __future__ import annotations


class PtxFault(Exception):
    """text: what is wrong, as a compiler would say it. offset: where, in the text that was being read."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.text, self.offset = text, offset


class MacroInStatement(PtxFault):
    """A statement whose strings or operands are made by macros: the preprocessor must run first."""

    def __init__(self, offset: int) -> None:
        super().__init__("inline PTX: expected a string literal or an operand", offset)
