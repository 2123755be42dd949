"""The package's headers that have asm statements, in the place of their #include: no preprocessor runs for them."""

from __future__ import annotations

import re
from collections.abc import Callable

from pygpukit.jit.compile import headers as header_sets
from pygpukit.jit.source.lines import Lines, directive

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def with_own(source: str, has_statement: Callable[[str], bool], name: str) -> tuple[str, list[str]]:
    """The source with those headers, and their files. A header that only leads to one stands there, too; each once.

    has_statement(text): whether a text has one that is compiled. name: of the source.
    """
    ours = header_sets.own()
    leads: dict[str, bool] = {}
    files: list[str] = []

    def wanted(header: str) -> bool:
        if header not in leads:
            leads[header] = False  # a circle of headers leads nowhere
            text = header_sets.text(ours[header]) if header in ours else ""
            leads[header] = has_statement(text) or any(wanted(one) for one in header_sets.included(text))
        return leads[header]

    def placed(text: str, file: str) -> str:
        pieces, done = [], 0
        code = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
        for match in _INCLUDE.finditer(code):
            header = match[1]
            if not wanted(header):
                continue
            pieces.append(text[done : match.start()])
            done = match.end()
            path = str(ours[header])
            if path not in files:
                files.append(path)
                inside = header_sets.text(ours[header]).replace("#pragma once", "", 1)
                told, line = Lines(text, file).origin(text.count("\n", 0, done) + 2)  # of the line after it
                pieces += [directive(1, path), placed(inside, path), "\n" + directive(line, told).rstrip("\n")]
        return "".join((*pieces, text[done:]))

    return placed(source, name), files
