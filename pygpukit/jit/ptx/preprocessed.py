"""A source after the preprocessor, for asm statements that macros or included files hold."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pygpukit.jit.compile import sim_headers
from pygpukit.jit.source.lines import directive

MARKER = re.compile(r'^# (\d+) "((?:\\.|[^"\\])*)"[ \d]*$', re.MULTILINE)

# Of a file, with options, macros and a list for the files that were read: the simulator's compiler.
Preprocess = Callable[[Path, Sequence[str], Mapping[str, str], "list[str] | None"], "str | None"]


def preprocessed(
    source: str,
    name: str,
    options: Sequence[str],
    defines: Mapping[str, str],
    preprocess: Preprocess,
    read: list[str] | None,
) -> str | None:
    """The source without macros, its own headers in their place, the simulator's still included; None where the
    preprocessor finds a fault, of which the compiler speaks later. Files that were read are appended to `read`."""
    with tempfile.TemporaryDirectory(prefix="pygpukit-ptx-") as folder:
        text = Path(folder) / "kernel.cpp"
        text.write_text(directive(1, name) + source, encoding="utf-8")
        files: list[str] | None = None if read is None else []
        out = preprocess(text, options, defines, files)
        if read is not None:
            read += [file for file in files or () if Path(file) != text]
    return None if out is None else _with_own_headers(out)


def _with_own_headers(out: str) -> str:
    """The simulator's headers that are left give way to an #include of each; markers become #line directives."""
    folder, names = f"{sim_headers.folder()}/", sim_headers.names()
    pieces: list[str] = []
    done, inside = 0, False
    for match in MARKER.finditer(out):
        if not inside:
            pieces.append(out[done : match.start()])
        done = match.end() + 1
        file = re.sub(r"\\(.)", r"\1", match[2])
        header = file.removeprefix(folder) if file.startswith(folder) else ""
        if header in names:
            if not inside:
                pieces.append(f"#include <{header}>\n")
            inside = True
        elif not file.startswith("<"):
            pieces.append(directive(int(match[1]), file))
            inside = False
    if not inside:
        pieces.append(out[done:])
    return "".join(pieces)
