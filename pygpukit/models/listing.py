"""The table of models: what `gp.models.table()` and `pygpukit models` show."""

from __future__ import annotations

import argparse
import html
import sys
from dataclasses import dataclass

from pygpukit.core.errors import ModelNotFoundError
from pygpukit.core.text import human_bytes
from pygpukit.jit.locate import models_directory
from pygpukit.models.catalogue import ENTRIES, Entry
from pygpukit.models.fetch import get, present


@dataclass(frozen=True)
class Row:
    """One model. sources are in the order in which they are tried; present is whether the model folder has it."""

    name: str
    what: str
    sources: tuple[str, ...]
    size: str
    sha256: str
    licence: str
    present: bool


class Table:
    """The models that are known, as text and as HTML. rows are the data."""

    def __init__(self) -> None:
        self.folder = models_directory()
        self.rows = [_row(entry) for entry in ENTRIES.values()]

    def __repr__(self) -> str:
        lines = [_HEAD, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*text, f"folder: {self.folder}"])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{cell}</th>" for cell in _HEAD)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def table() -> Table:
    """The models that can be had by name: what they are, their sources in order, size, digest, licence."""
    return Table()


def command(args: argparse.Namespace) -> int:
    """Do what `pygpukit models` was asked. Exit code 1, and the reasons, when a model cannot be had."""
    if args.action != "get":  # list, or nothing
        print(table())
        return 0
    try:
        print(get(args.name))
    except (ModelNotFoundError, OSError) as error:
        print(f"pygpukit models get: {error}", file=sys.stderr)
        return 1
    return 0


_HEAD = ("name", "here", "size", "licence", "SHA-256", "sources", "what it is")


def _row(entry: Entry) -> Row:
    hub = [f"hub {entry.hub.repository}"] if entry.hub else []
    main = max(entry.files, key=lambda file: file.bytes)
    sources = ("folder", *hub, *(f"PyPI {package}" for package in entry.packages))
    return Row(entry.name, entry.what, sources, human_bytes(entry.bytes), main.sha256, entry.licence, present(entry))


def _cells(row: Row) -> tuple[str, ...]:
    here = "yes" if row.present else "no"
    packages = [source for source in row.sources if source.startswith("PyPI")]
    sources = [source for source in row.sources if source not in packages]
    sources += packages if len(packages) == 1 else [f"PyPI ({len(packages)} packages)"]
    return row.name, here, row.size, row.licence, f"{row.sha256[:12]}...", ", ".join(sources), row.what
