"""Where the lines of a source come from: its #line directives, read as a compiler reads them."""

from __future__ import annotations

import re
from bisect import bisect_right

_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*line[ \t]+(?P<line>\d+)(?:[ \t]+"(?P<file>(?:\\.|[^"\\])*)")?', re.MULTILINE)


class Lines:
    """Maps the lines of `source`, compiled under `name`, to the file and line that its #line directives tell."""

    def __init__(self, source: str, name: str) -> None:
        self._starts = [1]
        self._origins = [(name, 1)]
        for match in _DIRECTIVE.finditer(source):
            file = match["file"]
            origin = self._origins[-1][0] if file is None else re.sub(r"\\(.)", r"\1", file)
            self._starts.append(source.count("\n", 0, match.start()) + 2)  # it speaks of the line after its own
            self._origins.append((origin, int(match["line"])))

    @property
    def files(self) -> frozenset[str]:
        """Every name that lines come from."""
        return frozenset(file for file, _ in self._origins)

    def origin(self, line: int) -> tuple[str, int]:
        """(file, line) of a line of the source; both count from 1."""
        at = bisect_right(self._starts, line) - 1
        file, first = self._origins[at]
        return file, first + line - self._starts[at]


def without_directives(source: str) -> str:
    """The source with its #line directives blank: its lines count from its first."""
    return _DIRECTIVE.sub("//", source)


def directive(line: int, file: str) -> str:
    """The #line directive that says that the next line is that one. Ends with a line break."""
    escaped = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{escaped}"\n'
