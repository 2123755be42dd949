"""Which files a compile read and which it looked for in vain: learnt from the compiler, verified before the next use.

A file is named by the folder that it was found through and its path there ("I0:sub/x.h": in the first -I folder), so
that a manifest holds under any absolute path. Each has a state: the digest of a file that was read, "present" for one
that was only there (another branch includes it, or __has_include asked), "absent" for a place where the compiler looked
or would have looked and found nothing: a new file there would come before the one that was read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pygpukit import _core
from pygpukit.core.files import read_regular

ABSENT = "absent"
PRESENT = "present"
CURRENT = "."  # the current folder, where #include "..." of the source itself looks first
ABSOLUTE = ""

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
_INCLUDE = re.compile(
    r'^[ \t]*(?:\#|%:)[ \t]*(?:include|include_next|import)\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE
)
_PROBE = re.compile(r'\b__has_include(?:_next)?\s*\(\s*(?:"([^"\n]+)"|<([^>\n]+)>|(\w[^\n]*))')
_NAMES_ITS_PLACE = re.compile(r"\b(?:__FILE__|assert|source_location)\b")


class Unknowable(Exception):
    """Nothing tells what this compile depends on. str() says why."""


class Place(NamedTuple):
    """A file's place: the name of a folder, and the path from there."""

    folder: str
    path: str

    def __str__(self) -> str:
        return f"{self.folder}:{self.path}"

    @property
    def name(self) -> str:
        """The path as a message names it."""
        return f"{self.path} (-I folder {int(self.folder[1:]) + 1})" if self.folder.startswith("I") else self.path


Files = dict[str, str]  # place to state


def search_path(current: Path, folders: Sequence[str], pre_includes: Sequence[str]) -> dict[str, Path]:
    """The folders that a compile searches, and those that hold its absolute pre-includes, by what places call them."""
    absolute = ((number, Path(file).parent) for number, file in enumerate(pre_includes) if Path(file).is_absolute())
    return {
        CURRENT: current,
        **{f"I{number}": Path(folder) for number, folder in enumerate(folders)},
        **{f"P{number}": folder for number, folder in absolute},
    }


def learn(
    source: str, pre_includes: Sequence[str], read: Sequence[str], folders: Mapping[str, Path], ours: Sequence[Path]
) -> Files:
    """The manifest of a compile that has read the files `read` (the compiler's own list), besides those below `ours`.

    Raises Unknowable when a file is gone or __has_include asks for a macro's value.
    """
    return _Learner(folders, read, ours).learn(source, pre_includes)


def differences(files: Files, folders: Mapping[str, Path]) -> Iterator[str]:
    """The differences to what the manifest says, in a few words each; nothing when all of it holds."""
    for text, expected in files.items():
        place = Place(*text.split(":", 1))
        state = _state(_path(place, folders), expected)
        if state != expected:
            change = "is gone" if state == ABSENT else "appeared" if expected == ABSENT else "changed"
            yield f"{place.name} {change}"


def names_its_place(files: Files, folders: Mapping[str, Path]) -> bool:
    """True when a header that was read may put its own path into the result, as assert() does."""
    read = (Place(*text.split(":", 1)) for text, state in files.items() if state not in (ABSENT, PRESENT))
    return any(_NAMES_ITS_PLACE.search(_text(_path(place, folders))) for place in read)


def written_since(files: Files, folders: Mapping[str, Path], since_ns: int) -> bool:
    """True when a file of the manifest was written or created at that time of the file system's clock, or later."""
    for text, state in files.items():
        if state != ABSENT:
            try:
                status = _path(Place(*text.split(":", 1)), folders).stat()
            except OSError:
                return True
            if max(status.st_mtime_ns, status.st_ctime_ns) >= since_ns:
                return True
    return False


def file_clock_ns() -> int:
    """Now, as the file system stamps files: no file written before is stamped later, none written after is earlier.

    No clock tells: files get the time of the last tick, but those that somebody looked at a finer one, which the clock
    of the ticks reaches only milliseconds later. So a file is looked at and stamped.
    """
    import tempfile  # and what it imports: a kernel from the cache does without

    with tempfile.TemporaryFile() as probe:
        os.fstat(probe.fileno())
        os.utime(probe.fileno())
        return os.fstat(probe.fileno()).st_ctime_ns


class _Learner:
    """One walk over the source and all that it reaches, from include to include."""

    def __init__(self, folders: Mapping[str, Path], read: Sequence[str], ours: Sequence[Path]) -> None:
        roots = [os.path.realpath(folder) + os.sep for folder in ours]
        real = dict.fromkeys(os.path.realpath(path) for path in read)
        self._folders = folders
        self._own = [path for path in real if any(path.startswith(root) for root in roots)]
        self._read = real.keys() - set(self._own)
        self._explained: set[str] = set()  # those that an #include with a plain name led to
        self._files: Files = {}
        self._waiting: list[tuple[Place | None, str]] = []  # texts whose includes are not followed yet

    def learn(self, source: str, pre_includes: Sequence[str]) -> Files:
        for number, name in enumerate(pre_includes):
            if Path(name).is_absolute():
                self._look(Place(f"P{number}", Path(name).name))
            else:
                self._candidates(None, name, quoted=True)
        self._waiting.append((None, source))
        self._waiting += [(Place(ABSOLUTE, path), _text(Path(path))) for path in self._own]
        self._follow()
        for path in sorted(self._read):
            if path in self._explained:
                continue
            place = self._place_of(path)
            self._look(place)
            parts = PurePosixPath(place.path).parts
            for start in range(len(parts)):  # the spelling is unknown: a macro's value
                self._candidates(place, "/".join(parts[start:]), quoted=True)
            self._follow()
        return self._files

    def _follow(self) -> None:
        while self._waiting:
            at, text = self._waiting.pop()
            own = at is not None and at.folder == ABSOLUTE and at.path in self._own
            for name, quoted, computed in names(text):
                if computed and not own:  # the compiler's own headers ask for their own
                    raise Unknowable(f"__has_include({name} asks for a name that a macro holds")
                if not computed:
                    self._candidates(None if own else at, name, quoted)

    def _candidates(self, at: Place | None, name: str, quoted: bool) -> None:
        """Every place where the compiler may look for a name that is written in the file `at` (None: the source, or one
        of the compiler's headers)."""
        if Path(name).is_absolute():
            self._look(Place(ABSOLUTE, os.path.normpath(name)))
            return
        if quoted and at is not None:
            self._look(at._replace(path=os.path.normpath(Path(at.path).parent / name)))
        for folder in self._folders:
            if folder.startswith("I") or (quoted and folder == CURRENT):
                self._look(Place(folder, os.path.normpath(name)))

    def _look(self, place: Place) -> None:
        if str(place) in self._files:
            return
        path = _path(place, self._folders)
        real = os.path.realpath(path)
        if real not in self._read:
            self._files[str(place)] = PRESENT if path.is_file() else ABSENT
            return
        self._explained.add(real)
        try:
            content = read_regular(path)
        except OSError as error:
            raise Unknowable(f"{place.name} was read and cannot be read again: {error.strerror}") from None
        self._files[str(place)] = _digest(content)
        self._waiting.append((place, content.decode(errors="replace")))

    def _place_of(self, path: str) -> Place:
        """The folder that holds a file most closely; the absolute path when none does."""
        inside = [
            Place(name, os.path.relpath(path, real))
            for name, real in ((name, os.path.realpath(folder)) for name, folder in self._folders.items())
            if path.startswith(real + os.sep)
        ]
        return min(inside, key=lambda place: len(place.path), default=Place(ABSOLUTE, path))


def names(text: str) -> Iterator[tuple[str, bool, bool]]:
    """(name, in quotes, a macro's name) of every include and __has_include, those in branches left out, too."""
    code = _COMMENT.sub(lambda match: match[1] or " ", text.replace("\\\n", ""))
    for quoted, angled in _INCLUDE.findall(code):
        yield quoted or angled, bool(quoted), False
    for quoted, angled, computed in _PROBE.findall(code):
        yield quoted or angled or computed.strip(), bool(quoted), bool(computed)


def probes(source: str) -> bool:
    """True when the source asks for the existence of a file."""
    return bool(_PROBE.search(source))


def _path(place: Place, folders: Mapping[str, Path]) -> Path:
    return Path(place.path) if place.folder == ABSOLUTE else folders[place.folder] / place.path


def _state(path: Path, like: str) -> str:
    """The file's state, read only when the expected one is a digest."""
    if like in (ABSENT, PRESENT):
        return PRESENT if path.is_file() else ABSENT
    try:
        return _digest(read_regular(path))
    except OSError:
        return ABSENT


def _digest(content: bytes) -> str:
    return _core.KernelCache.digest([content]).hex()


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode(errors="replace")
    except OSError as error:
        raise Unknowable(f"{path.name} was read and cannot be read again: {error.strerror}") from None
