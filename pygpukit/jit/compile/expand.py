"""Kernels that only a preprocessor sees: behind macros, made by macros, in included files.

Reading the tokens finds what a source spells out. Where that may not be all, the host compiler's preprocessor runs, and
its output is read in the same way. Without a host compiler what is spelt out has to do.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pygpukit.core.errors import NvrtcError
from pygpukit.jit.source.lexer import lex
from pygpukit.jit.source.lines import Lines, without_directives
from pygpukit.jit.source.signature import KernelSignature, macro_names, scan

_KERNEL_IN_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\r?\n|[^\n])*__(?:tile_)?global__", re.MULTILINE)
_MARKER = re.compile(r'^# (\d+) "((?:\\.|[^"\\])*)"[ \d]*$', re.MULTILINE)

_CONDITION = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)
_KERNEL_WORDS = ("__global__", "__tile_global__")
_SELF = "<kernel>"  # the source's name meanwhile


def kernels(
    source: str, options: Sequence[str], defines: Mapping[str, str], asked: Sequence[str] = ()
) -> tuple[KernelSignature, ...]:
    """Every kernel of the source. options: as for the compiler. asked: names or name expressions that are asked for.

    Raises ValueError as scan() does.
    """
    signatures = scan(source, defines)
    if not _may_hide(source, defines, signatures, asked):
        return signatures
    text = _preprocessed(source, options, defines)
    if text is None:
        return signatures
    lines = Lines(text, _SELF)
    last = source.count("\n") + 1  # where those of included files count as
    seen = []
    for kernel in scan(text):
        file, line = lines.origin(kernel.line)
        seen.append(replace(kernel, line=line if file == _SELF else last))
    spelt = {kernel.name: kernel for kernel in signatures}
    macros = macro_names(source, defines)
    kept = [
        spelt[kernel.name] if kernel.name in spelt and not _depends(spelt[kernel.name], macros) else kernel
        for kernel in seen
    ]
    return tuple(kept) or signatures


def present(source: str, options: Sequence[str], defines: Mapping[str, str]) -> frozenset[str] | None:
    """The names of the kernels that the preprocessor leaves in, None where the tokens tell them."""
    if not _in_doubt(source, defines):
        return None
    return frozenset(kernel.name for kernel in kernels(source, options, defines))


def _may_hide(
    source: str, defines: Mapping[str, str], signatures: Sequence[KernelSignature], asked: Sequence[str]
) -> bool:
    """True where the preprocessor could find more than the tokens show."""
    if "#" not in source and "__pragma" not in source and not defines and not signatures:
        return False
    if _KERNEL_IN_MACRO.search(source) or any("global__" in value for value in defines.values()):
        return True
    macros = macro_names(source, defines)
    if any(_depends(kernel, macros) for kernel in signatures) or _in_doubt(source, defines):
        return True
    known = {form for kernel in signatures for form in (kernel.name, kernel.short_name)}
    missing = [one for one in asked if one.partition("<")[0].strip() not in known]
    return bool(missing or not signatures) and ("#" in source or bool(defines))


def _in_doubt(source: str, defines: Mapping[str, str]) -> bool:
    """True where a kernel stands under a condition that an included file has a say in."""
    if "include" not in source or not _CONDITION.search(source):
        return False
    return any(token.text in _KERNEL_WORDS and not token.certain for token in lex(source, defines).tokens)


def _depends(kernel: KernelSignature, macros: Mapping[str, bool]) -> bool:
    """True where the kernel's name is a macro's, or its parameter list uses one that may stand for several words."""
    words = {word for declaration in kernel.declarations for word in declaration}
    return kernel.short_name in macros or any(macros.get(word, False) for word in words)


def _preprocessed(source: str, options: Sequence[str], defines: Mapping[str, str]) -> str | None:
    """The source as the preprocessor leaves it, with #line directives; None where there is no preprocessor, or it finds
    a fault, of which the compiler speaks later."""
    from pygpukit.jit.compile import simulator  # which a kernel that is spelt out does without

    with tempfile.TemporaryDirectory(prefix="pygpukit-expand-") as folder:
        text = Path(folder) / "kernel.cpp"
        text.write_text(f'#line 1 "{_SELF}"\n{without_directives(source)}', encoding="utf-8")
        try:
            out = simulator.preprocess(text, options, defines)
        except (NvrtcError, ValueError, OSError):
            return None
    return None if out is None else _user_text(out)


def _user_text(out: str) -> str:
    """Without what the simulator's own headers left, and with #line directives for the markers."""
    from pygpukit.jit.compile.simulator import header_folders

    own = tuple(f"{folder}/" for folder in header_folders())
    pieces: list[str] = []
    done, ours = 0, False
    for match in _MARKER.finditer(out):
        if not ours:
            pieces.append(out[done : match.start()])
        done, ours = match.end() + 1, match[2].startswith(own)
        if not ours:
            pieces.append(f'#line {match[1]} "{match[2]}"\n')
    if not ours:
        pieces.append(out[done:])
    return "".join(pieces)
