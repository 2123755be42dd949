"""The package's headers that have asm statements, as the simulated device's compiler reads them: each is translated
once, with the statements that its macros make, and kept in the kernel cache. No preprocessor runs for the kernels."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pygpukit import _core
from pygpukit.jit.cache.store import keep, kernel_cache
from pygpukit.jit.compile import headers as header_sets
from pygpukit.jit.compile import sim_translation
from pygpukit.jit.compile.sim_source import MACROS, blank, without_empty_asm
from pygpukit.jit.ptx.preprocessed import MARKER, Preprocess
from pygpukit.jit.source.lexer import lex
from pygpukit.jit.source.lines import directive

KEYWORD = re.compile(r"\b(?:asm|__asm__|__asm)\b")
IN_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\r?\n|[^\n])*?\b(?:asm|__asm__|__asm)\b", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONDITION = re.compile(r"#[\s\\]*(?:if|/\*)|%:|\?\?=")
# Directives that stay as they are while the preprocessor runs over one header alone.
_KEPT = re.compile(r"^[ \t]*#[ \t]*(include|pragma[ \t]+once)\b", re.MULTILINE)
_KEPT_WORD = "__pk_directive__"

# A text, under a name, with its asm statements as C++, and the simulator's headers that it then needs.
Translate = Callable[[str, str], "tuple[str, tuple[str, ...]]"]


@dataclass(frozen=True)
class OwnHeaders:
    """texts: what stands for them, by the names that they are included by. needs: the simulator's headers that come
    before the source. files: the headers themselves."""

    texts: dict[str, str]
    needs: tuple[str, ...]
    files: tuple[str, ...]


def reached(source: str, translate: Translate, preprocess: Preprocess) -> OwnHeaders:
    """Those that a source includes, by itself or through others, and those on the way to them.

    Raises CompileError, with the header's name and line, for what cannot run on the simulated device.
    """
    ours = header_sets.own()
    leads: dict[str, bool] = {}

    def has_asm(header: str) -> bool:
        if header not in leads:
            leads[header] = False  # a circle of headers leads nowhere
            text = header_sets.text(ours[header]) if header in ours else ""
            behind = [has_asm(one) for one in header_sets.included(text)]
            leads[header] = has_statement(text) or any(behind)
        return leads[header]

    code = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)
    for match in _INCLUDE.finditer(code):
        has_asm(match[1])
    texts: dict[str, str] = {}
    needs: set[str] = set()
    for header in (one for one, leading in leads.items() if leading):
        texts[header], more = _kept(header, header_sets.text(ours[header]), translate, preprocess)
        needs.update(more)
    return OwnHeaders(texts, tuple(sorted(needs)), tuple(str(ours[one]) for one in texts))


@lru_cache(maxsize=256)
def has_statement(text: str) -> bool:
    """True where an asm statement stands in a part that the simulated device reads, or in a macro."""
    if not KEYWORD.search(text):
        return False
    places = (match.start() for match in KEYWORD.finditer(blank(text)))
    return bool(IN_MACRO.search(text)) or any(map(compiled(text, MACROS), places))


def compiled(source: str, macros: Mapping[str, str]) -> Callable[[int], bool]:
    """True where the preprocessor leaves in what stands at an offset, as far as is known."""
    if not _CONDITION.search(source):
        return lambda offset: True
    lines = {token.line for token in lex(source, macros).tokens if token.text in ("asm", "__asm__", "__asm")}
    return lambda offset: source.count("\n", 0, offset) + 1 in lines


def _kept(name: str, text: str, translate: Translate, preprocess: Preprocess) -> tuple[str, tuple[str, ...]]:
    """A header translated, from the kernel cache where it is there."""
    if not has_statement(text):
        return directive(1, name) + text, ()
    key = _core.KernelCache.digest([b"own header", sim_translation.digest().encode(), name.encode(), text.encode()])
    entry = kernel_cache().get(key)
    if entry is not None:
        translated, needs = json.loads(entry[0])
        return translated, tuple(needs)
    code = directive(1, name) + text
    if IN_MACRO.search(text):
        code = _without_macros(code, preprocess)
    translated, needs = translate(without_empty_asm(code), name)
    keep(key, json.dumps([translated, needs]).encode())
    return translated, needs


def _without_macros(text: str, preprocess: Preprocess) -> str:
    """A header after its own macros, which end with it; what it includes is still included."""
    with tempfile.TemporaryDirectory(prefix="pygpukit-ptx-") as folder:
        file = Path(folder) / "header.cuh"
        file.write_text(_KEPT.sub(rf"{_KEPT_WORD} \1", text), encoding="utf-8")
        out = preprocess(file, (), {}, None)
    if out is None:
        return text  # the compiler tells what is wrong
    pieces, done, own = [], 0, False
    for match in MARKER.finditer(out):
        pieces.append(out[done : match.start()] if own else "")
        done, name = match.end() + 1, match[2]
        own = not name.startswith("<") and not name.endswith("header.cuh")
        if own:
            pieces.append(directive(int(match[1]), name))
    pieces.append(out[done:])
    return "".join(pieces).replace(f"{_KEPT_WORD} ", "#")
