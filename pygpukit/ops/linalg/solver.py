"""cuSOLVER, opened at run time by ctypes: one handle a device, bound to the current stream, workspace from the pool.

tests/ops/linalg/test_cusolver.py holds the arguments against a library of the test's own.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.errors import BackendUnavailableError, GPUError
from pygpukit.core.extras import install_command
from pygpukit.jit.toolchain import libraries

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# cudaDataType_t.
DATA_TYPES = {"float32": 0, "float64": 1, "complex64": 4, "complex128": 5}
# The letters of functions that have one for each type.
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}
_turn = threading.Lock()  # a handle serves one thread at a time


@cache
def library() -> Any:
    """The library. Raises BackendUnavailableError where it is not found."""
    for path in libraries.cusolver_candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise BackendUnavailableError(
        "cuSOLVER was not found, which factorizes matrices of more than 64 rows or columns on a GPU; install it with "
        f"{install_command('linalg')} (the package nvidia-cusolver), set CUDA_PATH to a toolkit that has it, or use "
        ".to_numpy() and NumPy",
        "cusolver",
    )


@contextmanager
def session(arrays: Sequence[GPUArray]) -> Iterator[Session]:
    """Calls on the current stream; the arrays stay where they are on the device meanwhile.

    The pool does not see the calls: a launch that reads what they wrote has to follow on the same stream.
    """
    for array in arrays:
        native.pin(array)
    try:
        with _turn:
            opened = Session(library(), _handle(native.current_device()))
            opened.call("cusolverDnSetStream", ctypes.c_void_p(native.current_stream().handle))
            yield opened
    finally:
        for array in arrays:
            native.unpin(array)


class Session:
    """Functions of the library, called with its handle first. Those that fail raise GPUError."""

    def __init__(self, library: Any, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle

    def call(self, name: str, *arguments: Any) -> None:
        """One function; ints are passed as 64 bits: others come as ctypes numbers."""
        passed = [ctypes.c_int64(one) if isinstance(one, int) else one for one in arguments]
        _check(name, getattr(self._library, name)(self._handle, *passed))

    def generic(self, name: str, info: ctypes.c_void_p, sized: Sequence[Any], between: Sequence[Any] = ()) -> None:
        """cusolverDnX<name>, of any type: after its question for workspace, which has not what is `between`.

        between: (position in sized, argument) pairs of what the call has and the question has not.
        """
        on_device, on_host = ctypes.c_size_t(), ctypes.c_size_t()
        params = ctypes.c_void_p()  # the default algorithm
        self.call(f"cusolverDnX{name}_bufferSize", params, *sized, ctypes.byref(on_device), ctypes.byref(on_host))
        arguments = list(sized)
        for position, one in between:
            arguments.insert(position, one)
        space, host_space = (
            native.empty((max(on_device.value, 1),), "uint8"),
            ctypes.create_string_buffer(on_host.value),
        )
        self.call(f"cusolverDnX{name}", params, *arguments, pointer(space), on_device, host_space, on_host, info)
        if on_host.value:  # it may be in use until the work is done
            native.current_stream().synchronize()


def pointer(array: GPUArray, index: int = 0, elements: int = 0) -> ctypes.c_void_p:
    """The address of matrix number `index`, of that many elements each, in a dense array."""
    return ctypes.c_void_p(array.device_ptr + index * elements * array.itemsize)


@cache
def _handle(device: int) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _check("cusolverDnCreate", library().cusolverDnCreate(ctypes.byref(handle)))
    return handle


def _check(name: str, status: int) -> None:
    if status:
        raise GPUError(
            f"{name}: cuSOLVER answers with status {status}; its documentation lists them (cusolverStatus_t)"
        )
