"""C++ structures that Python packs: read from the kernel's own text, where they are declared, and nowhere else.

Understood are fields of arithmetic types, arrays of them, and structures of these, with the layout that C++ gives them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from pygpukit.core.cached import cached_property

# C++ type to the code of the struct module.
_CODES = {
    "bool": "?",
    "signed char": "b",
    "unsigned char": "B",
    "short": "h",
    "unsigned short": "H",
    "int": "i",
    "unsigned": "I",
    "unsigned int": "I",
    "long long": "q",
    "unsigned long long": "Q",
    "float": "f",
    "double": "d",
}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONSTANT = re.compile(r"constexpr\s+(?:int|long long)\s+(\w+)\s*=\s*(\d+)\s*;")
_DECLARATOR = re.compile(r"(\w+)((?:\s*\[[^\]]*\])*)")
_DECLARATION = re.compile(rf"(\w[\w\s]*?(?:<[^>]*>)?)\s+({_DECLARATOR.pattern}(?:\s*,\s*{_DECLARATOR.pattern})*)")


@dataclass(frozen=True)
class Field:
    """One member. code: of the struct module; an "s" for bytes. extents: of an array of numbers."""

    name: str
    code: str
    extents: tuple[int, ...]
    offset: int
    size: int
    whole: bool = False  # bytes of another structure, whose number must be right


class Structure:
    """A structure of a kernel's text. Nothing is read before it is first packed."""

    def __init__(self, name: str, texts: Callable[[], Iterable[str]], arguments: dict[str, int]) -> None:
        """texts: in which it and what it is made of are declared. arguments: of its template, by their names; of a type
        its size in bytes."""
        self.name = name
        self._texts = texts
        self._arguments = arguments

    @cached_property
    def pack(self) -> Callable[..., bytes]:
        """pack(*, field=value, ...) -> bytes: every field by its name; of arrays as many numbers as there are, the rest
        is zero; of structures, and of arrays of bytes or of a template's type, bytes. Raises TypeError for a field that
        is missing or unknown, struct.error and IndexError for a value that does not fit."""
        fields = self.layout.fields
        form, at = "<", 0
        for field in fields:
            count = str(prod(field.extents)) if field.extents else ""
            form += f"{field.offset - at}x{count}{field.code}"
            at = field.offset + field.size
        form += f"{self.layout.size - at}x"
        # By the extent of an array, and how many numbers are given: what follows them.
        rows = {field.extents[-1] for field in fields if field.extents}
        scope: dict[str, Any] = {f"_zeros{n}": [(0,) * (n - length) for length in range(n + 1)] for n in rows}
        scope |= {"_pack": struct.Struct(form).pack, "_whole": _whole}
        names, values = ", ".join(field.name for field in fields), ", ".join(map(_values, fields))
        packer: Callable[..., bytes] = eval(f"lambda *, {names}: _pack({values})", scope)  # only what is declared
        return packer

    @cached_property
    def layout(self) -> _Layout:
        """Where the fields lie. Raises ValueError for a text that has no such structure, or one that is not
        understood."""
        return _Text("\n".join(self._texts())).layout(self.name, self._arguments)


def in_header(header: str, name: str, **arguments: int) -> Structure:
    """A structure that one of the package's headers declares. arguments: as KernelSpec.structure()."""

    def texts() -> Iterable[str]:
        from pygpukit.jit.compile import headers

        return headers.reached([header]).values()

    return Structure(name, texts, arguments)


@cache
def enumeration(header: str, name: str) -> dict[str, int]:
    """The numbers of an enumeration that one of the package's headers declares, by names as Python has them: kGeluTanh
    is "gelu_tanh". Raises ValueError for a header that has no such enumeration of names alone."""
    from pygpukit.jit.compile import headers

    text = _COMMENT.sub(" ", "\n".join(headers.reached([header]).values()))
    match = re.search(rf"\benum\s+{name}\s*{{([\sk\w,]*)}}\s*;", text)
    if match is None:
        raise ValueError(f"{header} declares no enumeration {name} of names alone")
    names = [one.strip().removeprefix("k") for one in match[1].split(",") if one.strip()]
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", one).lower(): number for number, one in enumerate(names)}


@dataclass(frozen=True)
class _Layout:
    fields: tuple[Field, ...]
    size: int
    alignment: int


class _Text:
    def __init__(self, text: str) -> None:
        self._text = _COMMENT.sub(" ", text)
        self._constants = {name: int(value) for name, value in _CONSTANT.findall(self._text)}

    def layout(self, name: str, arguments: dict[str, int]) -> _Layout:
        match = re.search(rf"\bstruct\s+(?:alignas\((\d+)\)\s+)?{name}\s*{{(.*?)}}\s*;", self._text, re.DOTALL)
        if match is None:
            raise ValueError(f"no structure {name} is declared in the kernel's text")
        fields: list[Field] = []
        offset, alignment = 0, int(match[1] or 1)
        for declaration in filter(None, (part.strip() for part in match[2].split(";"))):
            parsed = _DECLARATION.fullmatch(declaration)
            if parsed is None:
                raise ValueError(f"{name}: the field {declaration!r} is not understood; declare numbers or structures")
            code, size, own = self._type(name, " ".join(parsed[1].split()), arguments)
            alignment = max(alignment, own)
            for declarator in _DECLARATOR.finditer(parsed[2]):
                extents = tuple(self._value(name, one, arguments) for one in re.findall(r"\[([^\]]*)\]", declarator[2]))
                total = size * prod(extents)
                offset = -(-offset // own) * own
                if code in ("structure", "s") or (code == "B" and extents):
                    fields.append(Field(declarator[1], f"{total}s", (), offset, total, code == "structure"))
                else:
                    fields.append(Field(declarator[1], code, extents, offset, total))
                offset += total
        return _Layout(tuple(fields), -(-offset // alignment) * alignment, alignment)

    def _type(self, owner: str, name: str, arguments: dict[str, int]) -> tuple[str, int, int]:
        """(code, size, alignment)"""
        if name in _CODES:
            size = struct.calcsize("<" + _CODES[name])
            return _CODES[name], size, size
        if name in arguments:
            return "s", arguments[name], arguments[name]
        plain, _, template_arguments = name.partition("<")
        template = re.search(rf"template\s*<([^>]*)>\s*struct\s+(?:alignas\(\d+\)\s+)?{plain}\b", self._text)
        inner: dict[str, int] = {}
        if template_arguments:
            if template is None:
                raise ValueError(f"{owner}: no template {plain} is declared in the kernel's text")
            names = [one.split()[-1] for one in template[1].split(",")]
            values = (self._value(owner, one, arguments) for one in template_arguments.rstrip("> ").split(","))
            inner = dict(zip(names, values, strict=True))
        layout = self.layout(plain, inner)
        return "structure", layout.size, layout.alignment

    def _value(self, owner: str, text: str, arguments: dict[str, int]) -> int:
        known = {**self._constants, **arguments}
        text = text.strip()
        if not text.isdigit() and text not in known:
            raise ValueError(f"{owner}: {text!r} is no number and no constant of the kernel's text")
        return int(text) if text.isdigit() else known[text]


def _whole(packed: bytes, size: int) -> bytes:
    if len(packed) != size:
        raise ValueError(f"{len(packed)} bytes are given for a structure of {size}")
    return packed


def _values(field: Field) -> str:
    """The arguments of struct.pack for a field."""
    if not field.extents:
        return f"_whole({field.name}, {field.size})" if field.whole else field.name
    if len(field.extents) == 1:
        return _padded(field.name, field.extents[0])
    return ", ".join(_padded(f"{field.name}[{row}]", field.extents[1]) for row in range(field.extents[0]))


def _padded(values: str, extent: int) -> str:
    return f"*{values}, *_zeros{extent}[len({values})]"
