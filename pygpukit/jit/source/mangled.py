"""Types in a symbol's name, by the Itanium C++ ABI: what NVRTC and the host compilers call an instantiated template."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_BUILTIN = {
    "b": "bool", "c": "int8", "a": "int8", "h": "uint8", "s": "int16", "t": "uint16", "i": "int32", "j": "uint32",
    "l": "int64", "m": "uint64", "x": "int64", "y": "uint64", "f": "float32", "d": "float64", "w": "int32",
    "Ds": "uint16", "Di": "uint32", "Du": "uint8",
}  # fmt: skip
_OTHER = frozenset(["v", "n", "o", "e", "g", "z", "Dn", "Da", "Dc"])
_CLASSES = {
    "__half": "float16", "__half2": "float16x2", "__nv_bfloat16": "bfloat16", "__nv_bfloat162": "bfloat16x2",
    "__nv_fp8_e4m3": "float8_e4m3", "__nv_fp8_e5m2": "float8_e5m2",
}  # fmt: skip
_VECTOR = re.compile(r"(u?)(char|short|int|long|longlong|float|double)([1-4])")
_WORDS = {"char": "int8", "short": "int16", "int": "int32", "long": "int64", "longlong": "int64"}


def function_types(symbol: str) -> tuple[str, ...] | None:
    """The parameters of the function type that is the only argument of the template in `symbol`, as pk_sim_types.h
    spells types; None for a name of another form."""
    reader = _Reader(symbol)
    try:
        if not reader.skip("_Z"):
            return None
        reader.name()
        if not reader.skip("IPF"):
            return None
        reader.type()  # what it returns
        types = []
        while not reader.skip("E"):
            types.append(reader.type())
        return () if types == ["void"] else tuple("" if one == "void" else one for one in types)
    except (_Unreadable, IndexError, RecursionError):
        return None


class _Unreadable(Exception):
    """The name has a form that this reader does not know."""


@dataclass
class _Reader:
    """Recursive descent. Every type and every prefix of a name is remembered: later ones refer to it by number."""

    text: str
    at: int = 0
    known: list[str] = field(default_factory=list)

    def skip(self, what: str) -> bool:
        if not self.text.startswith(what, self.at):
            return False
        self.at += len(what)
        return True

    def name(self) -> str:
        """A plain name with its length in front; remembered."""
        word = self._word()
        self.known.append(word)
        return word

    def _word(self) -> str:
        digits = re.compile(r"\d+").match(self.text, self.at)
        if digits is None:
            raise _Unreadable
        end = digits.end() + int(digits.group())
        word, self.at = self.text[digits.end() : end], end
        return word

    def type(self) -> str:
        """The next type: "*float32", "float32", "" for one that no array has, "void"."""
        if any(self.skip(letter) for letter in "rVK"):
            while any(self.skip(letter) for letter in "rVK"):
                pass
            return self._remember(self.type())
        if any(self.skip(letter) for letter in "PRO"):
            inner = self.type()
            return self._remember("*" if inner.startswith("*") or inner == "void" else f"*{inner}")
        for word, builtin in _BUILTIN.items():
            if self.skip(word):
                return builtin
        for word in _OTHER:
            if self.skip(word):
                return "void" if word == "v" else ""
        if self.skip("A"):
            while not self.skip("_"):
                self.at += 1
            return self._remember(self.type())
        if self.skip("F"):
            while not self.skip("E"):
                self.type()
            return self._remember("")
        return self._class()

    def _class(self) -> str:
        if self.skip("N"):
            last = ""
            while not self.skip("E"):
                if self.text[self.at] == "I":
                    self._arguments()
                    last = ""
                elif self.text[self.at] == "S":
                    last = self._again()
                    continue
                else:
                    last = self._word()
                self.known.append(_of_class(last))
            return _of_class(last)
        if self.text[self.at] == "S":
            name = self._again()
        else:
            name = _of_class(self._word())
            self.known.append(name)
        if self.text[self.at] == "I":
            self._arguments()
            return self._remember("")
        return name

    def _again(self) -> str:
        """S_, S0_, ...: what is known by number; St, Sa and the like stand for names of std."""
        self.at += 1
        if self.text[self.at] in "tabsiod":
            standard = self.text[self.at] == "t"
            self.at += 1
            if standard and self.text[self.at].isdigit():
                return self._remember(_of_class(self._word()))
            return ""
        end = self.text.index("_", self.at)
        number = int(self.text[self.at : end], 36) + 1 if end > self.at else 0
        self.at = end + 1
        return self.known[number]

    def _arguments(self) -> None:
        self.at += 1
        while not self.skip("E"):
            if self.skip("L"):
                self.type()
                self.at = self.text.index("E", self.at) + 1
            elif self.skip("J"):
                while not self.skip("E"):
                    self.type()
            else:
                self.type()

    def _remember(self, substitution: str) -> str:
        self.known.append(substitution)
        return substitution


def _of_class(name: str) -> str:
    vector = _VECTOR.fullmatch(name)
    if vector is None:
        return _CLASSES.get(name, "")
    base = _WORDS.get(vector[2]) or {"float": "float32", "double": "float64"}[vector[2]]
    return f"{vector[1]}{base}x{vector[3]}"
