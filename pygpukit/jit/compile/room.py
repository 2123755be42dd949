"""A full disk while something is compiled, said so that a user knows what to do."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_PROBE_BYTES = 1 << 18


@contextmanager
def name_full_disk() -> Iterator[None]:
    """An OSError of the block that says that a disk is full names the folder for temporary files, and the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _full(tempfile.gettempdir(), error.errno) from error
        raise


def check_room() -> None:
    """After a compiler failed: raises OSError where it had no room for its files, whatever it said."""
    for folder in dict.fromkeys((tempfile.gettempdir(), os.environ.get("TMPDIR") or tempfile.gettempdir())):
        if not Path(folder).is_dir():
            continue
        try:
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(bytes(_PROBE_BYTES))
        except OSError as error:
            if error.errno in _FULL:
                raise _full(folder, error.errno) from None


def _full(folder: str, number: int | None) -> OSError:
    return OSError(
        number or errno.ENOSPC,
        f"no room is left in {folder} for what the compiler writes; make some, or set TMPDIR to another folder",
    )
