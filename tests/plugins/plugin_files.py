"""Distributions as an installer leaves them, written by hand: a module, its metadata and its entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def distribution(folder: Path, name: str, entries: Mapping[str, Mapping[str, str]], source: str = "") -> None:
    """A distribution `name` 1.0 in a folder; entries: {group: {name: "module:attribute"}}; source: of module `name`."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in of.items()) for group, of in entries.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (folder / f"{name}.py").write_text(source)
