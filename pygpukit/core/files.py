"""Reading files that anybody may have put there: a pipe or a device in a file's place is refused, not waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file. Raises OSError for anything else, without waiting."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{os.fspath(path)} is not a regular file")
        return file.read()


def is_special(path: str | os.PathLike[str]) -> bool:
    """True where something is there that is neither a regular file nor a folder: a pipe, a socket, a device."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
