"""The notebooks that `pygpukit lab` opens: a copy in the current folder, so that playing changes no original."""

from __future__ import annotations

import json
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pygpukit

TOUR = "00_tour.ipynb"
FOLDER = "pygpukit-notebooks"  # in the current folder
RECORD = ".originals.json"  # in it: of each file, the digest of the original that it was copied from


def originals() -> Path:
    """The folder of the notebooks themselves: the checkout's own, or what came with the wheel. Raises OSError."""
    package = Path(pygpukit.__file__).resolve().parent
    shared = [Path(root) / "share" / "pygpukit" / "notebooks" for root in (sys.prefix, package.parent)]
    places = [package.parent / "notebooks", *shared]
    folder_of_tour = next((folder for folder in places if (folder / TOUR).exists()), None)
    if folder_of_tour is None:
        raise FileNotFoundError(
            f"the notebooks are not where this installation keeps them: {', '.join(map(str, shared))}"
        )
    return folder_of_tour


def working_copy() -> tuple[Path, str]:
    """The copy's folder, and what was done to it in a few words.

    Files that are missing are copied. A copy that was not changed follows its original; one that was is never
    touched.
    Raises OSError where it cannot be written.
    """
    source, here = originals(), Path.cwd()
    target = here if here.name == FOLDER and (here / RECORD).is_file() else here / FOLDER
    return target, _follow(source, target)


def _follow(source: Path, target: Path) -> str:
    target.mkdir(exist_ok=True)
    known = _record(target)
    copied, renewed, kept = 0, 0, 0
    for path in sorted(path for path in source.rglob("*") if path.suffix and path.is_file()):
        name = path.relative_to(source).as_posix()
        if ".ipynb_checkpoints/" in name:
            continue
        copy, original = target / name, _digest(path)
        mine = _digest(copy) if copy.exists() else ""
        if mine == original:
            known[name] = original
        elif mine in ("", known.get(name)):
            copied, renewed = copied + (not mine), renewed + bool(mine)
            copy.parent.mkdir(exist_ok=True)
            part = copy.with_name(f".{copy.name}.part")
            shutil.copyfile(path, part)
            part.replace(copy)
            known[name] = original
        elif known.get(name) != original:
            kept += 1
    (target / RECORD).write_text(json.dumps(known, indent=1))
    counts = ((copied, "copied"), (renewed, "renewed"), (kept, "kept as changed here, older than the originals"))
    return ", ".join(f"{count} {what}" for count, what in counts if count)


def _record(target: Path) -> dict[str, str]:
    try:
        return dict(json.loads((target / RECORD).read_text()))
    except (FileNotFoundError, ValueError, TypeError):  # none yet, or damaged: then every file counts as the user's
        return {}


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
