"""Interpret: Triton's own interpreter on arrays of the simulated device, whose memory is the host's."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from pygpukit._core import native
from pygpukit.core.errors import GPUError
from pygpukit.triton.array import TritonArray

_lock = threading.Lock()  # the interpreter has one grid


class HostTensor:
    """An array by its address, with as much of a tensor as the interpreter asks for: its copies to the host and back
    are of what is there already."""

    def __init__(self, array: Any) -> None:
        self._array = TritonArray(array)
        self.dtype = self._array.dtype

    def data_ptr(self) -> int:
        return self._array.data_ptr()

    def untyped_storage(self) -> HostTensor:
        return self

    def cpu(self) -> HostTensor:
        return self

    def new_empty(self, *_: Any, **__: Any) -> HostTensor:
        return self

    def set_(self, *_: Any) -> None:
        pass

    def copy_(self, *_: Any) -> None:
        pass

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self._array.shape

    def stride(self) -> Any:
        return self._array.stride()


def interpret(function: Any, name: str, extents: tuple[int, int, int], arguments: Mapping[str, Any]) -> None:
    """Run every program of the grid, one after the other, in stream order.

    Raises GPUError where Triton was imported for a GPU, and Triton's InterpreterError for what a program raises.
    """
    if hasattr(function, "params"):  # compiled, and so is every function of Triton's that it calls
        raise GPUError(
            f"{name}: on the simulated device Triton's interpreter runs kernels, which Triton decides when it is "
            "imported: set TRITON_INTERPRET=1 before that, or let gp.triton.get_triton() import it"
        )
    arrays = [one for one in arguments.values() if isinstance(one, native.ArrayBase)]

    def run() -> None:
        values = {key: HostTensor(one) if isinstance(one, native.ArrayBase) else one for key, one in arguments.items()}
        with _lock:
            function[extents](**values)

    native.host_launch(name, run, arrays)
