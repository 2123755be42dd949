"""The base of textures and surfaces: they are closed, and used in `with`."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

from pygpukit._core import native

_Self = TypeVar("_Self", bound="Opened")


class Opened(native.DeviceObject):
    """An object that kernels take until it is closed. kind: of the parameters that take it."""

    kind: str

    @property
    def closed(self) -> bool:
        """True after close() was called."""
        return self.handle == 0

    def close(self) -> None:
        """Give the memory back once the work that was launched with it is done.

        A launch with it is refused from now on. The second time it does nothing.

        Raises
        ------
        GPUError
            A captured graph holds it.
        """
        super().close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
