"""Named cells: a cell run with --name FILE is a header that later cells include."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from IPython.core.error import UsageError

from pygpukit.jit.source.lines import directive

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*"(?P<file>[^"\n]+)"[ \t]*(?://.*)?')


@dataclass(frozen=True)
class Source:
    """A source to compile. text: with every named cell put in, under #line directives. files: each text by name."""

    name: str
    text: str
    files: dict[str, str]


class NamedCells:
    """The named cells of one shell: by file name the text, as it was when the cell ran last, and what it includes."""

    def __init__(self) -> None:
        self._cells: dict[str, tuple[str, tuple[str, ...]]] = {}

    def names(self) -> list[str]:
        return list(self._cells)

    def keep(self, name: str, text: str, headers: Iterable[str]) -> None:
        """Remember a cell that other cells may include."""
        self._cells[name] = (text, tuple(headers))

    def source(self, name: str, text: str, headers: Iterable[str]) -> Source:
        """The cell `text` with what it includes; each named cell is put in once, where it is asked for first.

        Raises UsageError for a header that no cell is named after. A cell that includes none is compiled as it is.
        """
        inclusion = _Inclusion(self._cells, name)
        text_with_headers = inclusion.with_headers(name, text, headers)
        return Source(name, text_with_headers if inclusion.files else text, {**inclusion.files, name: text})


class _Inclusion:
    """One pass of putting cells in. files: those that were put in so far."""

    def __init__(self, cells: dict[str, tuple[str, tuple[str, ...]]], name: str) -> None:
        self._cells = cells
        self._name = name
        self.files: dict[str, str] = {}

    def with_headers(self, file: str, text: str, headers: Iterable[str]) -> str:
        """A cell's text after the cells that its --with names."""
        front = "".join(self._once(header, f"--with {header}") for header in headers)
        return front + directive(1, file) + self._expanded(file, text)

    def _once(self, header: str, asked: str) -> str:
        """A named cell's text; "" when it is in already."""
        if header in self.files:
            return ""
        if header not in self._cells or header == self._name:
            known = ", ".join(one for one in self._cells if one != self._name) or "none"
            raise UsageError(f"%%cuda: {asked}: no other cell is named {header!r}; named cells: {known}")
        text, headers = self._cells[header]
        self.files[header] = text
        return self.with_headers(header, text, headers) + "\n"

    def _expanded(self, file: str, text: str) -> str:
        """`text` with the cells that its #include lines name put in their place."""
        lines = text.split("\n")
        for at, line in enumerate(lines):
            match = _INCLUDE.fullmatch(line)
            if match and match["file"] in self._cells and match["file"] not in (file, self._name):
                lines[at] = self._once(match["file"], line.strip()) + directive(at + 2, file).rstrip("\n")
        return "\n".join(lines)
