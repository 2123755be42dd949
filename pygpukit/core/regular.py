"""Opening files that come from strangers: regular ones alone, never a pipe or a device that would be waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from pygpukit.core.errors import ModelFileError

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """A file to read from. Raises ModelFileError for what is no regular file, OSError where it cannot be opened."""
    _check(Path(path).stat(), path)
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # another may have taken its place
    try:
        _check(os.fstat(number), path)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _check(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(21, os.strerror(21), os.fspath(path))
    if kind != stat.S_IFREG:
        raise ModelFileError(
            f"{os.fspath(path)}: it is {_KINDS.get(kind, 'no regular file')}, and only files are read", os.fspath(path)
        )
