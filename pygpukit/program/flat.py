"""One text of a program: the file with the user's own headers put in at their #include, by #line directives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pygpukit.core.files import read_regular
from pygpukit.jit.source.lines import directive
from pygpukit.program import library_headers

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)[^\n]*', re.MULTILINE)
_COMMENT = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
_GUARD = re.compile(
    r"\s*#[ \t]*(?:ifndef[ \t]+(\w+)|if[ \t]+!\s*defined[ \t]*\(?[ \t]*(\w+)[ \t]*\)?)[^\n]*\n"
    r"\s*#[ \t]*define[ \t]+(\w+)"
)
_MAX_DEPTH = 64


def flat(source: str, name: str, folder: Path, folders: Sequence[Path]) -> str:
    """The text with every header that lies in `folder`, where the source is, or in `folders`, and those of Thrust and
    CUB. `name`: what messages call the source."""
    return _Flat(folders).text(source, name, folder, 0)


class _Flat:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._once: set[Path] = set()

    def text(self, source: str, name: str, folder: Path, depth: int) -> str:
        source = source.replace("\r\n", "\n")
        comments = [match.span() for match in _COMMENT.finditer(source) if match.group()[0] == "/"]
        pieces, done = [directive(1, name)], 0
        for match in _INCLUDE.finditer(source):
            path = self._find(match["quoted"] or match["angled"], folder if match["quoted"] else None)
            if path is None or depth > _MAX_DEPTH or any(start < match.start() < end for start, end in comments):
                continue
            pieces.append(source[done : match.start()])
            done = match.end()
            if path not in self._once:
                text = read_regular(path).decode(errors="replace")
                if guarded(text):
                    self._once.add(path)
                pieces += [self.text(text, str(path), path.parent, depth + 1), "\n"]
                pieces.append(directive(source.count("\n", 0, done) + 1, name))
        return "".join([*pieces, source[done:]])

    def _find(self, include: str, folder: Path | None) -> Path | None:
        for place in [*([folder] if folder else []), *self._folders]:
            path = (place / include).resolve()
            if path.is_file():
                return path
        return library_headers.names().get(include)


def guarded(text: str) -> bool:
    """True where a header takes care that it is read once."""
    if _ONCE.search(text):
        return True
    start = _GUARD.match(_COMMENT.sub(" ", text))
    return start is not None and (start[1] or start[2]) == start[3]
