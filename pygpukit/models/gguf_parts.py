"""A GGUF model in several files, as gguf-split writes it: opened by any of them, as one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.models.gguf import GGUFFile, GGUFTensor

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")
_MAX_PARTS = 4096


def open_gguf(path: str | os.PathLike[str]) -> GGUFFile | GGUFParts:
    """The file, or all parts of the model that it is a part of.

    Raises ModelFileError for a malformed file, and for a part without the others beside it.
    """
    first = GGUFFile(path)
    count = first.fields.get("split.count", 0)
    if type(count) is int and count in (0, 1):
        return first
    files = [first]
    try:
        for other in _paths(first, count):
            files.append(first if other.samefile(first.file.path) else GGUFFile(other))
        return GGUFParts(files[1:])
    except BaseException:
        for file in files:
            file.close()
        raise


def first_part(paths: Sequence[Path]) -> Path | None:
    """The first of these files where they are the parts of one model by their names; None where they are not."""
    names = [_PART.fullmatch(path.name) for path in paths]
    if not names or not all(names):
        return None
    families = {(name[1], name[3]) for name in names if name}
    return min(paths) if len(families) == 1 else None


class GGUFParts:
    """Several files as a GGUFFile: the fields of the first, the tensors of all."""

    def __init__(self, files: Sequence[GGUFFile]) -> None:
        self._files = files
        self.file, self.fields = files[0].file, files[0].fields
        self._holders: dict[str, GGUFFile] = {}
        for number, file in enumerate(files):
            if file.fields.get("split.no") != number or file.fields.get("split.count") != len(files):
                inside = f"part {file.fields.get('split.no')!r} of {file.fields.get('split.count')!r}"
                raise file.file.error(
                    f"by its name it is part {number} (from 0 on) of {len(files)}, by itself {inside}"
                )
            for name in file.tensors:
                if name in self._holders:
                    raise file.file.error(f"the tensor {name!r} is in {self._holders[name].file.path.name}, too")
                self._holders[name] = file
        expected = self.fields.get("split.tensors.count", len(self._holders))
        if expected != len(self._holders):
            raise self.file.error(f"its parts have {len(self._holders)} tensors, but it says {expected!r}")

    @property
    def tensors(self) -> dict[str, GGUFTensor]:
        """Where each lies within its own file."""
        return {name: file.tensors[name] for name, file in self._holders.items()}

    def holder(self, name: str) -> GGUFFile:
        """The file that has a tensor."""
        return self._holders[name]

    def read(self, name: str) -> Array:
        """As GGUFFile.read()."""
        return self._holders[name].read(name)

    def stored(self, name: str) -> Array:
        """As GGUFFile.stored()."""
        return self._holders[name].stored(name)

    def close(self) -> None:
        """Let go of all files."""
        for file in self._files:
            file.close()


def _paths(first: GGUFFile, count: Any) -> list[Path]:
    path = first.file.path
    what = f"this is part {first.fields.get('split.no')!r} (from 0 on) of a model split in {count!r}"
    if type(count) is not int or not 0 < count <= _MAX_PARTS:
        raise first.file.error(f"{what}, which is no count of parts")
    name = _PART.fullmatch(path.name)
    if name is None or int(name[3]) != count:
        raise first.file.error(
            f"{what}; the other parts are found by names such as model-00001-of-{count:05d}.gguf, which this is not"
        )
    paths = [path.with_name(f"{name[1]}-{number:05d}-of-{count:05d}.gguf") for number in range(1, count + 1)]
    missing = [other.name for other in paths if not other.is_file()]
    if missing:
        raise first.file.error(f"{what}; beside it are missing: {', '.join(missing[:5])}")
    return paths
