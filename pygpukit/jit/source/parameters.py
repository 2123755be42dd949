"""Kernel parameters: from the tokens of one declaration to kind, element type and size."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Aliases = Mapping[
    str, Sequence[str]
]  # typedefs, using-declarations, enums, macros and template arguments: name to tokens

POINTER_BYTES = 8
_LONG = "int32" if sys.platform == "win32" else "int64"
_EXPANSIONS_LIMIT = 64

# Keys are the sorted words of a spelling without int and signed, which add nothing to the others.
_FUNDAMENTAL = {
    "bool": "bool",
    "char": "int8",
    "char unsigned": "uint8",
    "short": "int16",
    "short unsigned": "uint16",
    "": "int32",
    "unsigned": "uint32",
    "long": _LONG,
    "long unsigned": "u" + _LONG,
    "long long": "int64",
    "long long unsigned": "uint64",
    "float": "float32",
    "double": "float64",
    "wchar_t": "int32",
    "char8_t": "uint8",
    "char16_t": "uint16",
    "char32_t": "uint32",
}
_FUNDAMENTAL_WORDS = frozenset(" ".join(_FUNDAMENTAL).split()) | {"int", "signed", "void"}
_NAMED = {
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "size_t": "uint64",
    "ptrdiff_t": "int64",
    "intptr_t": "int64",
    "uintptr_t": "uint64",
    "uchar": "uint8",
    "ushort": "uint16",
    "uint": "uint32",
    "ulong": "u" + _LONG,
    "half": "float16",
    "__half": "float16",
    "nv_bfloat16": "bfloat16",
    "__nv_bfloat16": "bfloat16",
    "__nv_fp8_e4m3": "float8_e4m3",
    "__nv_fp8_e5m2": "float8_e5m2",
    "cuComplex": "complex64",
    "cuFloatComplex": "complex64",
    "cuDoubleComplex": "complex128",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
    "cudaTextureObject_t": "uint64",
    "cudaSurfaceObject_t": "uint64",
}
_OBJECTS = {"cudaTextureObject_t": "texture", "cudaSurfaceObject_t": "surface"}
_ITEM_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e4m3", "float8_e5m2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
_VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double)([1-4])")
_VECTOR_BASE = {
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": _LONG,
    "longlong": "int64",
    "float": "float32",
    "double": "float64",
}
_STRUCT_BYTES = {"dim3": 12, "half2": 4, "__half2": 4, "nv_bfloat162": 4, "__nv_bfloat162": 4, "CUtensorMap": 128}
_PAIRS = {"half2": "float16", "__half2": "float16", "nv_bfloat162": "bfloat16", "__nv_bfloat162": "bfloat16"}

_IGNORED = frozenset(
    ["__restrict__", "__restrict", "restrict", "volatile", "register", "typename", "struct", "class", "enum", "union"]
    + ["constexpr", "__grid_constant__"]
)
_CALLED = frozenset(["alignas", "__align__", "__attribute__", "__declspec"])
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Parameter:
    """One parameter. nbytes is its size by value, 0 when only the compiler knows it.

    kind "pointer": dtype names the element type, "" accepts any array (void*, or elements of an unknown type).
    kind "scalar": dtype names the type that values are converted to.
    kind "texture", "surface": an object of that kind, or its number, a uint64.
    kind "struct": a bytes-like object of exactly nbytes is passed as it is.
    kind "any": of a kernel in Python, which takes what it is given.
    """

    name: str
    type: str
    kind: str
    dtype: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


def split_list(words: Sequence[str]) -> list[list[str]]:
    """A comma-separated list cut at its outermost commas; [] for an empty one."""
    parts: list[list[str]] = [[]]
    depth = angles = 0
    for word in words:
        depth += (word in "([{") - (word in ")]}")
        if depth == 0:  # inside other brackets < and > may compare
            angles = max(angles + (word == "<") - (word == ">"), 0)
        if word == "," and depth == 0 and angles == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return [] if parts == [[]] else parts


def parse_parameter(words: Sequence[str], index: int, aliases: Aliases) -> Parameter:
    """The parameter that `words` declare. Unnamed ones are called arg0, arg1, ... by their position."""
    declaration = without_attributes(_without_default(words))
    declarator = _parenthesised_declarator(declaration)
    if declarator is not None:  # float (*rows)[16], or void (*callback)(int)
        name, is_function = declarator
        text = spell(word for word in declaration if word != name)
        if is_function:
            return Parameter(name, text, "struct", "", POINTER_BYTES)
        base = declaration[: declaration.index("(")]
        return Parameter(name, text, "pointer", _element(base, 1, aliases), POINTER_BYTES)
    stars = 0
    while "[" in declaration and declaration[-1] == "]":  # the outermost dimension decays, the others stay elements
        declaration = declaration[: _opening(declaration)]
        stars = 1
    name = _declared_name(declaration)
    base = declaration[:-1] if name else declaration
    text = spell([*base, "*"] if stars else base)
    name = name or f"arg{index}"
    expanded = _expand(base, aliases)
    stars += _outer(expanded).count("*") + _outer(expanded).count("&")
    if stars:
        return Parameter(name, text, "pointer", _element(expanded, stars, {}), POINTER_BYTES)
    dtype = _scalar(expanded)
    if dtype:
        kind = _OBJECTS.get(_type_name(expanded), "scalar")
        return Parameter(name, text, kind, dtype, _ITEM_BYTES[dtype])
    return Parameter(name, text, "struct", "", _struct_bytes(expanded))


def _without_default(words: Sequence[str]) -> list[str]:
    depth = 0
    for at, word in enumerate(words):
        depth += (word in "([{") - (word in ")]}")
        if word == "=" and depth == 0:
            return list(words[:at])
    return list(words)


def without_attributes(words: Sequence[str]) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word in _CALLED and words[at + 1 : at + 2] == ["("]:
            at = _closing(words, at + 1)
        elif word == "[" and words[at + 1 : at + 2] == ["["]:
            at = _closing(words, at)
        elif word not in _IGNORED:
            out.append(word)
        at += 1
    return out


def _closing(words: Sequence[str], at: int) -> int:
    """Index of the bracket that closes the one at `at`; the last index when none does."""
    depth = 0
    for i in range(at, len(words)):
        depth += (words[i] in "([{") - (words[i] in ")]}")
        if depth == 0:
            return i
    return len(words) - 1


def _opening(words: Sequence[str]) -> int:
    """Index of the bracket that the last one closes; 0 when none does."""
    depth = 0
    for i in range(len(words) - 1, -1, -1):
        depth += (words[i] in ")]}") - (words[i] in "([{")
        if depth == 0:
            return i
    return 0


def _parenthesised_declarator(words: Sequence[str]) -> tuple[str, bool] | None:
    """(name, is a function pointer) of `T (*name)[N]` and `T (*name)(...)`."""
    for at in range(len(words) - 1):
        if words[at] == "(" and words[at + 1] in ("*", "&"):
            close = _closing(words, at)
            names = [word for word in words[at + 2 : close] if _WORD.fullmatch(word) and word != "const"]
            if names:
                return names[0], words[close + 1 : close + 2] == ["("]
    return None


def _declared_name(words: Sequence[str]) -> str:
    """The last word when it names the parameter rather than ends its type; "" for an unnamed one."""
    if len(words) < 2 or not _WORD.fullmatch(words[-1]) or words[-1] in _FUNDAMENTAL_WORDS or words[-1] == "const":
        return ""
    before = [word for word in words[:-1] if word != "const"]
    return words[-1] if before and before[-1] != "::" else ""


def _expand(words: Sequence[str], aliases: Aliases) -> list[str]:
    """`words` with aliases replaced, again and again; qualified names by their last part."""
    out = list(words)
    for _ in range(_EXPANSIONS_LIMIT):
        at = next((i for i, word in enumerate(out) if word in aliases and list(aliases[word]) != [word]), None)
        if at is None:
            break
        out[at : at + 1] = aliases[out[at]]
    return without_attributes(out)


def _outer(words: Sequence[str]) -> list[str]:
    """`words` outside template arguments."""
    out: list[str] = []
    depth = 0
    for word in words:
        depth += (word == "<") - (word == ">")
        if depth == 0 and word != ">":
            out.append(word)
    return out


def _type_name(words: Sequence[str]) -> str:
    """The type without const and qualification: "std::complex<float>" gives "complex<float>"."""
    kept = [word for word in words if word not in ("const", "*", "&")]
    start = 0
    for at, word in enumerate(kept):
        if word == "<":
            break
        if word == "::":
            start = at + 1
    return "".join(kept[start:])


def _scalar(words: Sequence[str]) -> str:
    """The dtype name of a fundamental or well-known scalar type; "" for any other."""
    kept = [word for word in words if word not in ("const", "*", "&")]
    if kept and all(word in _FUNDAMENTAL_WORDS for word in kept):
        return _FUNDAMENTAL.get(" ".join(sorted(word for word in kept if word not in ("int", "signed"))), "")
    return _NAMED.get(_type_name(words), "")


def _element(words: Sequence[str], stars: int, aliases: Aliases) -> str:
    """Element dtype of a pointer; "" accepts any array. float2 and double2 stand for pairs and for complex numbers."""
    words = _expand(words, aliases)
    if stars + (bool(aliases) and _outer(words).count("*")) > 1:
        return ""
    name = _type_name(words)
    vector = _VECTOR.fullmatch(name)
    if vector and name not in ("float2", "double2"):
        return _vector_base(vector.group(1))
    return _PAIRS.get(name) or _scalar(words)


def element_type(words: Sequence[str], aliases: Aliases) -> tuple[str, int]:
    """(dtype, lanes) of an object's type: ("float32", 4) for float4, ("float32", 0) for float, ("", 0) when unknown."""
    expanded = _expand(words, aliases)
    if "*" in _outer(expanded):
        return "uint64", 0
    name = _type_name(expanded)
    vector = _VECTOR.fullmatch(name)
    if vector:
        return _vector_base(vector.group(1)), int(vector.group(2))
    return (_PAIRS[name], 2) if name in _PAIRS else (_scalar(expanded), 0)


def item_bytes(dtype: str) -> int:
    """Bytes of one element of a dtype that a type of CUDA C++ can have."""
    return _ITEM_BYTES[dtype]


def _vector_base(name: str) -> str:
    return "u" + _VECTOR_BASE[name[1:]] if name.startswith("u") else _VECTOR_BASE[name]


def _struct_bytes(words: Sequence[str]) -> int:
    name = _type_name(words)
    vector = _VECTOR.fullmatch(name)
    if vector:
        return _ITEM_BYTES[_vector_base(vector.group(1))] * int(vector.group(2))
    return _STRUCT_BYTES.get(name, 0)


def spell(words: Iterable[str]) -> str:
    """Tokens as one writes them: "const float*", "std::pair<int, float>"."""
    out = ""
    for word in words:
        glued = word in ("*", "&", "::", "<", ">", ",", ")", "]", "[", "(") or out.endswith(("::", "<", "(", "["))
        out += word if glued or not out else " " + word
    return out
