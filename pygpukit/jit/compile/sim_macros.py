"""The simulator's headers kept from a user's macros, whatever their names.

The headers that every kernel begins with are read before any macro is defined. Those that a source includes later put
each macro aside whose name they use, and bring it back at their end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

_FIRST, _LAST = "pk_cuda_sim.h", ("pk_sim_end.h", "pk_sim_assert.h")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
_WORD = re.compile(r"(?<!\w)[A-Za-z]\w*")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\n|[^\n])*", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_OURS = ("pk_sim_", "PK_SIM_", "pk_cuda_")
# No macro may have these names, but for asm, which is refused in sources.
_OPERATORS = ("and", "and_eq", "bitand", "bitor", "compl", "not", "not_eq", "or", "or_eq", "xor", "xor_eq")
_KEPT = frozenset(("defined", "asm", *_OPERATORS))
_BEGINNING = "#pragma GCC system_header\n"


def without_macros(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers by name, those that macros could reach guarded."""
    early = _reached(_FIRST, headers)
    return {
        name: text if name in early or name in _LAST else _guarded(text, _words(name, headers, early))
        for name, text in headers.items()
    }


def _reached(name: str, headers: Mapping[str, str]) -> set[str]:
    """The header and those that it includes."""
    names: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in headers and one not in names:
            names.add(one)
            waiting += _INCLUDE.findall(headers[one])
    return names


def _words(name: str, headers: Mapping[str, str], early: set[str]) -> list[str]:
    """Names of macros that would change the header, or what its own macros become."""
    own = [_names(headers[one]) for one in _reached(name, headers) - early]
    names = [*own, *(_names(_macros(headers[one])) for one in early)]  # macros that it may use
    words = frozenset[str]().union(*(used for used, _ in names))
    defined = frozenset[str]().union(*(defined for _, defined in names))  # to its user
    return sorted(word for word in words - defined if word not in _KEPT and not word.startswith(_OURS))


@cache
def _names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a text, and those that it defines as macros."""
    words = _WORD.findall(_TEXT.sub("", _COMMENT.sub(" ", text)))
    return frozenset(words), frozenset(_DEFINED.findall(text))


@cache
def _macros(text: str) -> str:
    return "\n".join(_MACRO.findall(text))


def _guarded(text: str, words: list[str]) -> str:
    head, mark, body = text.partition(_BEGINNING)
    aside = "".join(f'#pragma push_macro("{word}")\n#undef {word}\n' for word in words)
    back = "".join(f'#pragma pop_macro("{word}")\n' for word in words)
    line = head.count("\n") + 2
    return f"{head}{mark}{aside}#line {line}\n{body}{back}" if mark else text
