"""The headers as the simulated device's compiler reads them: inline PTX as C++, made once and kept in the cache folder.

A statement that the simulated device does not have stays out of every kernel that does not use it: where a kernel does,
the compiler names the instruction.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from zlib import crc32

from pygpukit.core import doing
from pygpukit.jit.compile import sim_translation
from pygpukit.jit.compile.headers import HeaderSet
from pygpukit.jit.compile.sim_source import blank, without_empty_asm
from pygpukit.jit.cutlass import mended
from pygpukit.jit.locate import cache_directory
from pygpukit.jit.ptx.fault import PtxFault
from pygpukit.jit.ptx.source import TRANSLATED
from pygpukit.jit.ptx.statement import KEYWORD
from pygpukit.jit.ptx.translate import translate

# Their statements stand behind macros that the simulated device does not define.
_NEVER = re.compile(r"sm90_gmma|sm1\d\d")
_ADVICE = re.compile(r"^[ \t]*#if CUTLASS_ENABLE_L2_PREFETCH\b.*?^[ \t]*#else\b(.*?)^[ \t]*#endif\b[^\n]*",
                     re.DOTALL | re.MULTILINE)  # fmt: skip
_BREAKPOINT = re.compile(r'\basm volatile ?\( ?"brkpt;\\n" ?\)')
_UNUSED_SECONDS = 30 * 24 * 3600.0


def folder(headers: HeaderSet) -> Path:
    """The translated headers' folder, made now if this is the first kernel that includes them. Raises OSError where it
    cannot be written."""
    name = f"{headers.version.replace(' ', '-')}-{sim_translation.digest()[:12]}"
    target = cache_directory() / "simulator-cutlass" / name
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=target.parent) as scratch:
            filled = Path(scratch) / name
            _fill(headers.folder, filled)
            try:
                filled.rename(target)
            except OSError:
                if not target.is_dir():  # another process was quicker
                    raise
        _forget_old(target)
    os.utime(target)
    return target


def _fill(source: Path, target: Path) -> None:
    files = sorted(path for path in source.rglob("*") if path.is_file())
    texts = mended.texts(source)
    doing.say("Translating the headers of CuTe, once")
    for path in files:
        name = path.relative_to(source).as_posix()
        text = texts.get(name) or path.read_text(encoding="utf-8", errors="replace")
        own = target / name
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(translated(text, name), encoding="utf-8")
    (target / TRANSLATED).touch()


def translated(text: str, name: str) -> str:
    """One header with its asm statements as C++; lines stay."""
    if not KEYWORD.search(text):
        return text
    text = without_empty_asm(_BREAKPOINT.sub("__trap()", _ADVICE.sub(_chosen, text)))
    if _NEVER.search(name):
        return text
    code = blank(text)
    starts = [match.start() for match in KEYWORD.finditer(code)]
    if not starts:
        return text
    pieces, needs = [text[: starts[0]]], dict[str, None]()
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        piece, more = _statement(text[start:end], code[start:end])
        pieces.append(piece)
        needs |= dict.fromkeys(more)
    included = "".join(f"#include <{header}>\n" for header in needs)
    return f'{included}#line 1 "{name}"\n{"".join(pieces)}' if needs else "".join(pieces)


def _statement(text: str, code: str) -> tuple[str, tuple[str, ...]]:
    """A text that begins with an asm statement and has no other, with C++ in its place, and the headers it needs."""

    def lines(start: int, end: int) -> str:
        return "\n" * text.count("\n", start, end)

    try:
        return translate(text, code, lambda offset: offset == 0, lines)
    except PtxFault as fault:
        end = code.index(";") if ";" in code else len(code)
        message = fault.text.replace("\\", " ").replace('"', "'").replace("\n", " ")
        name = f"pk_sim_refused_{crc32(message.encode()):08x}"
        refused = f'do {{ extern void {name}() __attribute__((__error__("{message}"))); {name}(); }} while (0)'
        return refused + lines(0, end) + text[end:], ()


def _chosen(match: re.Match[str]) -> str:
    """The branch without advice about caches, on the lines that it has."""
    before = match.group().count("\n", 0, match.start(1) - match.start())
    after = match.group().count("\n", match.end(1) - match.start())
    return "\n" * before + match[1] + "\n" * after


def _forget_old(kept: Path) -> None:
    for other in kept.parent.iterdir():
        if other != kept and time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
