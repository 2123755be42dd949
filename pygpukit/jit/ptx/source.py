"""Sources with inline PTX, whole: those that spell it out, and those whose macros and headers make it.

What a source without any pays is a look for the word, and at the headers that it includes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pygpukit.core.files import read_regular
from pygpukit.jit.compile import headers as header_sets
from pygpukit.jit.compile import sim_headers
from pygpukit.jit.compile.diagnostics import compile_error
from pygpukit.jit.compile.sim_source import MACROS, back_to, blank, without_empty_asm
from pygpukit.jit.ptx.own_headers import IN_MACRO, KEYWORD, OwnHeaders, compiled, reached
from pygpukit.jit.ptx.preprocessed import Preprocess, preprocessed
from pygpukit.jit.source.lines import Lines

TRANSLATED = "translated"  # a file in a folder of headers whose asm statements are C++ already
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """text: the source without asm statements. headers: what it needs before its first line. own: what stands for the
    package's headers, by name. expanded: the preprocessor has been over it, with the macros and files of the command
    line."""

    text: str
    headers: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    expanded: bool = False


def with_ptx(
    source: str,
    name: str,
    options: Sequence[str],
    defines: Mapping[str, str],
    folders: Sequence[Path],
    preprocess: Preprocess,
    read: list[str] | None = None,
) -> Source:
    """The source with its asm statements as C++, each in its place (pygpukit.jit.ptx.translate).

    folders: where its includes are looked for. The files that the preprocessor read, where it had to run, are appended
    to `read`.

    Raises CompileError, with the place, for what cannot run on the simulated device.
    """
    plain = without_empty_asm(source)
    macros = {**MACROS, **defines}
    if not _hidden(plain, defines, folders):
        from pygpukit.jit.ptx.fault import MacroInStatement

        try:
            translated = _translated(plain, name, macros)
        except MacroInStatement:  # its strings or operands
            pass
        else:
            ours = reached(source, _header, preprocess)
            if read is not None:
                read += ours.files
            return _with_headers(translated, ours)
    text = preprocessed(source, name, options, defines, preprocess, read)
    return Source(plain) if text is None else _translated(without_empty_asm(text), name, macros, expanded=True)


def _header(text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """One of the package's headers, which no command line says anything to. Nobody reads its columns."""
    translated = _translated(text, name, MACROS, expanded=True, columns=False)
    return translated.text, translated.headers


def _with_headers(translated: Source, ours: OwnHeaders) -> Source:
    needed = tuple(dict.fromkeys((*translated.headers, *ours.needs)))
    return replace(translated, headers=needed, own=ours.texts)


def _hidden(source: str, defines: Mapping[str, str], folders: Sequence[Path]) -> bool:
    """True where the preprocessor must run before the statements can be seen."""
    folders = [folder for folder in folders if not (folder / TRANSLATED).is_file()]
    has_keyword = any(KEYWORD.search(value) for value in defines.values())
    return has_keyword or ("asm" in source and bool(IN_MACRO.search(source))) or _in_headers(source, folders)


def _translated(
    plain: str, name: str, macros: Mapping[str, str], expanded: bool = False, columns: bool = True
) -> Source:
    code = blank(plain)
    if not KEYWORD.search(code):
        return Source(plain, expanded=expanded)
    from pygpukit.jit.ptx.fault import MacroInStatement, PtxFault
    from pygpukit.jit.ptx.translate import translate

    lines = Lines(plain, name)
    try:
        text, headers = translate(
            plain, code, compiled(plain, macros), lambda start, end: back_to(plain, start, end, lines, columns)
        )
    except PtxFault as fault:
        if isinstance(fault, MacroInStatement) and not expanded:
            raise
        line, column = plain.count("\n", 0, fault.offset) + 1, fault.offset - plain.rfind("\n", 0, fault.offset)
        file, line_of_file = lines.origin(line)
        raise compile_error(name, f"{file}:{line_of_file}:{column}: error: {fault.text}", plain) from None
    return Source(text, headers, expanded=expanded)


def _in_headers(source: str, folders: Sequence[Path]) -> bool:
    """True where a file that the source includes, by itself or through others, has asm statements. The package's own
    stand in the source where they have."""
    seen: set[str] = set()
    waiting = _INCLUDE.findall(source)
    ours = header_sets.own()
    while waiting:
        included = waiting.pop()
        if included in seen or included in sim_headers.names():
            continue
        seen.add(included)
        text = "" if included in ours else _text_of(included, folders)
        if KEYWORD.search(text):
            return True
        waiting += _INCLUDE.findall(text)
    return False


def _text_of(name: str, folders: Sequence[Path]) -> str:
    for folder in folders:
        path = folder / name
        if path.is_file():
            try:
                return read_regular(path).decode(errors="replace")
            except OSError:
                return ""
    return ""
