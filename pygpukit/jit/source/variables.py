"""Declarations of __device__ and __constant__ variables, read from their tokens: name, element type and extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pygpukit.jit.source.condition import number
from pygpukit.jit.source.parameters import Aliases, element_type, item_bytes, without_attributes

SPACES = frozenset(["__device__", "__constant__", "__managed__"])
_NO_OBJECT = frozenset(["extern", "constexpr", "auto", "__shared__", "using", "typedef"])
_STORAGE = SPACES | {"static", "inline", "extern", "const", "thread_local"}


@dataclass(frozen=True)
class Variable:
    """One variable of device memory. line counts from 1.

    name: as it is qualified ("ns::table"). dtype: "" where the element type is not known. extents: -1 where the number
    is not known. lanes: of a vector type, 4 for float4; 0 for a scalar. constant: declared const.
    """

    name: str
    line: int
    space: str
    dtype: str
    extents: tuple[int, ...]
    lanes: int = 0
    constant: bool = False

    @property
    def short_name(self) -> str:
        return self.name.rpartition("::")[2]

    @property
    def expression(self) -> str:
        """The name expression by which a compiler tells the variable's symbol."""
        return f"&{self.name}"

    @property
    def symbol(self) -> str:
        """Its name in an image, mangled where it stands in a namespace."""
        scoped = "".join(f"{len(part)}{part}" for part in self.name.split("::"))
        return f"_ZN{scoped}E" if "::" in self.name else self.name

    def layout(self, nbytes: int) -> tuple[str, tuple[int, ...]]:
        """(dtype, shape) of the `nbytes` that it has in an image: uint8 and one axis where the type is not known, one
        axis of elements where the extents are not."""
        itemsize = item_bytes(self.dtype) * (self.lanes or 1) if self.dtype else 1
        if nbytes % itemsize:
            return "uint8", (nbytes,)
        lanes = (self.lanes,) if self.lanes else ()
        extents, count = self.extents, nbytes // itemsize
        known = prod(extent for extent in extents if extent >= 0)
        if self.dtype and extents.count(-1) == 1 and known and count % known == 0:
            extents = tuple(count // known if extent < 0 else extent for extent in extents)
        if self.dtype and prod(extents) == count and min(extents, default=0) >= 0:
            return self.dtype, extents + lanes
        return self.dtype or "uint8", (count, *lanes)


def read_variables(
    words: Sequence[str], line: int, scope: str, aliases: Aliases, constants: Mapping[str, Sequence[str]]
) -> list[Variable]:
    """The variables that one declaration makes; [] for one that only declares, or that makes no object in memory."""
    if not _NO_OBJECT.isdisjoint(words):
        return []
    space = next((one for one in ("__constant__", "__managed__") if one in words), "__device__")
    variables = []
    base: list[str] = []
    for at, declarator in enumerate(_declarators(words)):
        head, extents = _extents(without_attributes(declarator))
        name = head[-1] if head else ""
        if not name.isidentifier() or name in aliases or head[-2:-1] == ["::"]:  # a macro's name; a class's member
            return []
        own = [word for word in head[:-1] if word not in _STORAGE]
        base = base if at else [word for word in own if word not in ("*", "&")]
        pointers = own.count("*")
        if "&" in own or not base:
            return []
        dtype, lanes = ("uint64", 0) if pointers else element_type(base, aliases)
        constant = "const" in (head[len(head) - 1 - head[::-1].index("*") :] if pointers else words)
        numbers = tuple(_extent(one, {**aliases, **constants}) for one in extents)
        variables.append(Variable(f"{scope}::{name}" if scope else name, line, space, dtype, numbers, lanes, constant))
    return variables


def _declarators(words: Sequence[str]) -> list[list[str]]:
    """Each declarator without its initialiser, the first with the type in front."""
    parts: list[list[str]] = [[]]
    depth = angles = 0
    initialiser = False
    for word in words:
        if depth == 0 and word in ("=", "{"):
            initialiser = True
        depth += (word in "([{") - (word in ")]}")
        if depth == 0 and not initialiser:
            angles = max(angles + (word == "<") - (word == ">"), 0)
        if word == "," and depth == 0 and angles == 0:
            parts.append([])
            initialiser = False
        elif not initialiser:
            parts[-1].append(word)
    return parts


def _extents(words: list[str]) -> tuple[list[str], list[list[str]]]:
    """(what stands before the brackets, the tokens in each pair of brackets)."""
    start = words.index("[") if "[" in words else len(words)
    extents: list[list[str]] = []
    depth = 0
    for word in words[start:]:
        depth -= word == "]"
        if depth > 0:
            extents[-1].append(word)
        depth += word == "["
        if word == "[" and depth == 1:
            extents.append([])
    return words[:start], extents


def _extent(words: Sequence[str], names: Mapping[str, Sequence[str]]) -> int:
    value = number(words, names) if words else None
    return -1 if value is None or value < 0 else value
