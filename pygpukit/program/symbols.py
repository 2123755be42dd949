"""The kernels and device variables that a compiled program has on the host's side, by its table of symbols."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_SYMBOLS, _FILE = 2, 4  # a section that is a table of symbols; a symbol that names a source file
_KINDS = {1: "variable", 2: "function"}
# Of pygpukit.program.overloads: of a template.
_TAG = re.compile(r"(?:, )?std::integral_constant<signed char, \(signed char\)(\d+)> ?")
_ANONYMOUS = "(anonymous namespace)::"
_CXXABI = ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib")


class Symbol(NamedTuple):
    """kind: "function" or "variable". name: as C++ spells it, without what it returns and takes. file: the source of
    one that others cannot see, else "". tagged: it is a kernel whatever its name (pygpukit.program.overloads)."""

    kind: str
    name: str
    offset: int
    nbytes: int
    file: str
    tagged: bool = False


def symbols(library: Path) -> Iterator[Symbol]:
    """Those of functions and variables in a shared library or an object, in its order."""
    content = library.read_bytes()
    (at,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, at + number * size) for number in range(count)]
    for _, kind, _, _, offset, nbytes, link, _, _, entry in sections:
        if kind != _SYMBOLS:
            continue
        names, file = sections[link][4], ""
        for place in range(offset, offset + nbytes, entry):
            name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", content, place)
            text = content[names + name : content.index(b"\0", names + name)].decode(errors="replace")
            if info & 15 == _FILE:
                file = text
            elif info & 15 in _KINDS and section:
                spelt = demangled(text)
                tagged = "[abi:kernel]" in spelt or _TAG.search(spelt) is not None
                owner = "" if info >> 4 else file
                yield Symbol(_KINDS[info & 15], plain_name(spelt), value, length, owner, tagged)


@cache
def _demangler() -> ctypes.CDLL | None:
    for name in _CXXABI:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def demangled(symbol: str) -> str:
    """The name as C++ spells it; the symbol itself where it is no C++ name."""
    library = _demangler()
    if library is None or not symbol.startswith("_Z"):
        return symbol
    function = library.__cxa_demangle
    function.restype = ctypes.c_void_p
    status = ctypes.c_int()
    place = function(symbol.encode(), None, None, ctypes.byref(status))
    if not place:
        return symbol
    text = ctypes.string_at(place).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(place))
    return text


def plain_name(spelt: str) -> str:
    """`ns::k<float, 4>` of `void ns::k<float, 4>(float*, int)`. What stands in unnamed namespaces is as outside."""
    spelt = spelt.replace(_ANONYMOUS, "")
    spelt = re.sub(r"\[abi:(overload_\d+)\]", r"_\1", spelt)
    spelt = re.sub(r"\[abi:\w+\]", "", spelt)
    if tag := _TAG.search(spelt):
        spelt = spelt[: tag.start()] + spelt[tag.end() :]
        if tag[1] != "0":
            spelt = spelt.replace("<", f"_overload_{tag[1]}<", 1)
    depth, start = 0, 0
    for index, letter in enumerate(spelt):
        if letter == "<" and not spelt.startswith("operator", max(index - 8, 0)):
            depth += 1
        elif letter == ">" and depth:
            depth -= 1
        elif letter == " " and not depth:
            start = index + 1
        elif letter == "(" and not depth and index > start:
            return spelt[start:index]
    return spelt[start:] if "<" in spelt or "(" in spelt else spelt


def expression(name: str) -> str:
    """A template's name as a compiler takes it: the demangler's way of writing addresses and numbers aside."""
    name = re.sub(r"&?\(([\w:]+)\([^()]*\)\)", r"&\1", name)
    return re.sub(r"\(([\w: ]+)\)(-?\d+)", r"(\1)\2", name)


def host_symbols(library: Path, names: Mapping[str, str]) -> list[Symbol]:
    """Those of `names`, which says of each kernel and variable, by its name without template arguments, what it is:
    "function" or "variable"."""
    return [one for one in symbols(library) if names.get(one.name.partition("<")[0]) == one.kind]
