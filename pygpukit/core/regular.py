"""Opening files that come from strangers: regular ones alone, never a pipe or a device that would be waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from pygpukit.core.errors import ModelFileError

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_POINTER, _LONGEST_POINTER = b"version https://git-lfs.github.com/spec/", 1024  # bytes


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """A file to read from.

    Raises ModelFileError for what is no regular file, or a pointer of Git LFS, OSError where it cannot be opened.
    """
    _check(Path(path).stat(), path)
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # another may have taken its place
    try:
        status = os.fstat(number)
        _check(status, path)
        if status.st_size <= _LONGEST_POINTER and os.pread(number, len(_POINTER), 0) == _POINTER:
            raise ModelFileError(
                f"{os.fspath(path)}: it is a pointer of Git LFS that stands for the file; `git lfs pull` in its folder "
                "gets the file itself",
                os.fspath(path),
            )
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
