"""Cache entries in one file: a zip archive of groups, each a run of sealed entries that verify themselves.

Used for moving a cache to another machine (pygpukit.cache) and for the built-in kernels that come with the wheel
(kernels/bundle.py). An archive holds code that will run on the device: read only one that you trust.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pygpukit import _core

try:
    from lzma import LZMAError
except ImportError:  # a Python built without it says so when it meets an archive compressed that way
    LZMAError = zlib.error  # type: ignore[misc,assignment]

_LENGTH = struct.Struct("<I")
_MAX_BYTES = 64 << 20  # of an entry: what is read before its digest is known to be right
_DAMAGE = (zipfile.BadZipFile, zlib.error, LZMAError, struct.error, EOFError, OSError, RuntimeError, ValueError)
_COMMENT = b"pygpukit cache archive 1"


def write(path: Path, groups: Iterable[tuple[str, Iterable[bytes]]], compression: int = zipfile.ZIP_DEFLATED) -> int:
    """Write groups of sealed entries (KernelCache.sealed()); how many entries. The file appears whole or not at all.

    Equal entries give equal bytes. Raises OSError when the file cannot be written, ValueError for an entry that is
    too large.
    """
    count = 0
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with temporary.open("wb") as file, zipfile.ZipFile(file, "w", compression) as archive:
            archive.comment = _COMMENT
            for group, entries in groups:
                name = zipfile.ZipInfo(group)  # without a time, so that equal entries make equal files
                name.compress_type = compression
                with archive.open(name, "w") as member:
                    for sealed in entries:
                        if len(sealed) > _MAX_BYTES:
                            raise ValueError(f"an entry has {len(sealed)} bytes; an archive takes {_MAX_BYTES}")
                        member.write(_LENGTH.pack(len(sealed)) + sealed)
                        count += 1
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return count


def read(path: Path, group: str | None = None) -> Iterator[tuple[bytes, bytes]]:
    """(key, payload) of every entry, or of one group's; nothing for a group that is not there.

    Raises OSError when the file cannot be opened, ValueError for one that is no archive or is damaged: what was yielded
    before that is sound.
    """
    with path.open("rb") as file, _damage_of(path), zipfile.ZipFile(file) as archive:
        if archive.comment != _COMMENT:
            raise ValueError("it is no archive of cache entries of this version")
        for name in archive.namelist() if group is None else {group} & set(archive.namelist()):
            with archive.open(name) as member:
                while head := member.read(_LENGTH.size):
                    (length,) = _LENGTH.unpack(head)
                    if length > _MAX_BYTES:
                        raise ValueError(f"it states an entry of {length} bytes; the largest have {_MAX_BYTES}")
                    yield _core.KernelCache.open_sealed(member.read(length))


@contextlib.contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    """Whatever reading an archive can raise, as one ValueError; the file is open already."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(f"{path} cannot be read as an archive of cache entries: {error}") from None
