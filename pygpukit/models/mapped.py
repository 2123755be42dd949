"""A file mapped into memory, read by position: every access is checked against the file's size as it is now."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ModelFileError
from pygpukit.core.regular import opened

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class MappedFile:
    """A file, read only. Raises ModelFileError where it is empty, OSError where it cannot be opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with opened(self.path) as file:
            self.size = os.fstat(file.fileno()).st_size
            if self.size == 0:
                raise self.error("the file is empty")
            self._map: mmap.mmap | None = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def error(self, problem: str) -> ModelFileError:
        """An error that names this file."""
        return ModelFileError(f"{self.path}: {problem}", str(self.path))

    def bytes(self, start: int, count: int) -> bytes:
        """A copy of count bytes from start on."""
        return self._checked(start, count)[start : start + count]

    def buffer(self) -> mmap.mmap:
        """The whole file, for many small reads right now; nothing past `size` may be asked of it."""
        return self._checked(0, self.size)

    def array(self, dtype: Any, shape: tuple[int, ...], start: int) -> Array:
        """Elements from byte start on, as a read-only view of the file; it stays valid after close()."""
        import numpy as np

        dtype = np.dtype(dtype)
        count = 1
        for length in shape:
            count *= length
        source = self._checked(start, count * dtype.itemsize)
        if count == 0:
            return np.empty(shape, dtype)
        return np.frombuffer(source, dtype, count, start).reshape(shape)

    def close(self) -> None:
        """Let go of the file. The memory goes with the last view of it."""
        self._map = None

    def _checked(self, start: int, count: int) -> mmap.mmap:
        if self._map is None:
            raise self.error("the file is closed; open the model again")
        if start < 0 or count < 0 or start + count > self.size:
            raise self.error(f"it ends at byte {self.size}, but {count} bytes from byte {start} are asked for")
        if self._map.size() < self.size:  # reading what is gone would end the process
            raise self.error(f"the file was cut from {self.size} to {self._map.size()} bytes while it was open")
        return self._map
