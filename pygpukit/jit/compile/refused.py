"""Sources that no compiler is given: nested too deeply, or with includes that are no regular files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pygpukit.core.errors import CompileError
from pygpukit.core.files import is_special, read_regular
from pygpukit.jit.source.lines import Lines

MAX_BRACKETS = 256  # open at once, as clang has it
_LONG = 4096  # a shorter source cannot keep a compiler busy with its brackets
_RUN = re.compile(r"[()\[\]{}<>\s]{257,}")  # and more than MAX_BRACKETS of them none of space
_BRACKET = re.compile(r"(?P<open>[(\[{])|[)\]}]")


def refuse_nesting(source: str, name: str) -> None:
    """Raises CompileError where more brackets are open, or closed without having been opened, than anybody writes:
    compilers take minutes, or all memory, to say so."""
    if len(source) < _LONG:
        return
    from pygpukit.jit.compile.sim_source import blank

    code = blank(source)
    for match in _RUN.finditer(code):
        if len("".join(match.group().split())) > MAX_BRACKETS:
            raise _error(source, name, match.start(), f"more than {MAX_BRACKETS} brackets with nothing between them")
    depth = 0
    for match in _BRACKET.finditer(code):
        depth += 1 if match["open"] else -1
        if abs(depth) > MAX_BRACKETS:
            what = "are open here" if depth > 0 else "were closed up to here and never opened"
            raise _error(source, name, match.start(), f"more than {MAX_BRACKETS} brackets {what}")


def refuse_special_files(source: str, name: str, pre_includes: Sequence[str], folders: Mapping[str, Path]) -> None:
    """Raises CompileError where an #include that the source reaches names a pipe, a socket or a device: a compiler
    would wait for it, or read it without end. folders: as of manifest.search_path()."""
    from pygpukit.jit.cache.manifest import CURRENT, names

    seen: set[Path] = set()
    waiting: list[tuple[Path | None, str, str]] = [(None, file, "") for file in pre_includes]

    def follow(text: str, at: Path | None, top: str) -> None:
        for one, quoted, computed in names(text):
            if not computed:
                waiting.append((at if quoted else None, one, top or one))

    follow(source, None, "")
    while waiting:
        at, file, top = waiting.pop()
        for folder in dict.fromkeys([at or folders[CURRENT], *folders.values()]):
            path = folder / file
            if is_special(path):
                offset = max(source.find(top), 0)
                raise _error(source, name, offset, f"{file!r} is no regular file ({path}); include a copy of it")
            if path not in seen and path.is_file():
                seen.add(path)
                try:
                    follow(read_regular(path).decode(errors="replace"), path.parent, top)
                except OSError:
                    continue  # the compiler says why


def _error(source: str, name: str, offset: int, text: str) -> CompileError:
    from pygpukit.jit.compile.diagnostics import compile_error

    column = offset - source.rfind("\n", 0, offset)
    file, line = Lines(source, name).origin(source.count("\n", 0, offset) + 1)
    return compile_error(name, f"{file}:{line}:{column}: error: {text}", source[: 1 << 16])
