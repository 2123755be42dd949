"""The functions of cuBLAS, cuFFT and cuRAND that a program calls, done by this package's operations on the device."""

from __future__ import annotations

import ctypes
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit._core import native

if TYPE_CHECKING:
    import numpy as np

_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_longlong),
    ctypes.POINTER(ctypes.c_double),
)
_FLOATS = {4: "float32", 8: "float64"}
# cufftType: what comes in and what goes out.
_TRANSFORMS = {
    0x29: ("complex64", "complex64"),
    0x69: ("complex128", "complex128"),
    0x2A: ("float32", "complex64"),
    0x6A: ("float64", "complex128"),
    0x2C: ("complex64", "float32"),
    0x6C: ("complex128", "float64"),
}
_FORWARD = -1


def install() -> None:
    """Let the runtime of this process's program call the functions here."""
    native.program_library(ctypes.cast(_call, ctypes.c_void_p).value or 0)


def _memory(address: int, count: int, dtype: str) -> np.ndarray[Any, Any]:
    import numpy as np

    nbytes = count * np.dtype(dtype).itemsize
    return np.frombuffer(memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B"), dtype)


def _matrix(address: int, columns: int, rows: int, leading: int, dtype: str) -> np.ndarray[Any, Any]:
    """A matrix whose columns lie one after another, as the transposed one whose rows do."""
    import numpy as np

    flat = _memory(address, (columns - 1) * leading + rows if columns and rows else 0, dtype)
    return np.lib.stride_tricks.as_strided(
        flat, (columns, rows), (leading * flat.itemsize, flat.itemsize), writeable=True
    )


def _vector(address: int, count: int, step: int, dtype: str) -> np.ndarray[Any, Any]:
    return _memory(address, (count - 1) * step + 1, dtype)[::step]


def _product(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    from pygpukit.array.factory import asarray
    from pygpukit.ops.matmul import matmul

    result: np.ndarray[Any, Any] = matmul(asarray(np.ascontiguousarray(a)), asarray(np.ascontiguousarray(b))).to_numpy()
    return result


def _update(target: np.ndarray[Any, Any], product: np.ndarray[Any, Any], alpha: float, beta: float) -> None:
    """target = alpha product + beta target, which is not read where beta is 0."""
    kind = target.dtype.type
    target[...] = kind(alpha) * product if beta == 0 else kind(alpha) * product + kind(beta) * target


def gemm(memory: Any, integers: Any, numbers: Any) -> None:
    """C = alpha op(A) op(B) + beta C, of columns: its transposed, rows by rows, is the product the other way round."""
    size, a_transposed, b_transposed, m, n, k, a_leading, b_leading, c_leading = integers[:9]
    dtype = _FLOATS[size]
    c = _matrix(memory[2], n, m, c_leading, dtype)
    if k == 0:
        _update(c, c * 0, 0.0, numbers[1])
        return
    a = _matrix(memory[0], m, k, a_leading, dtype).T if a_transposed else _matrix(memory[0], k, m, a_leading, dtype)
    b = _matrix(memory[1], k, n, b_leading, dtype).T if b_transposed else _matrix(memory[1], n, k, b_leading, dtype)
    _update(c, _product(b, a), numbers[0], numbers[1])


def gemv(memory: Any, integers: Any, numbers: Any) -> None:
    """y = alpha op(A) x + beta y."""
    size, transposed, m, n, leading, x_step, y_step = integers[:7]
    dtype = _FLOATS[size]
    a = _matrix(memory[0], n, m, leading, dtype)
    x = _vector(memory[1], m if transposed else n, x_step, dtype)
    y = _vector(memory[2], n if transposed else m, y_step, dtype)
    product = _product(a, x[:, None])[:, 0] if transposed else _product(x[None, :], a)[0]
    _update(y, product, numbers[0], numbers[1])


def dot(memory: Any, integers: Any, numbers: Any) -> None:
    """The sum of products of two vectors."""
    size, count, x_step, y_step = integers[:4]
    dtype = _FLOATS[size]
    x, y = _vector(memory[0], count, x_step, dtype), _vector(memory[1], count, y_step, dtype)
    _memory(memory[2], 1, dtype)[0] = _product(x[None, :], y[:, None])[0, 0]


def nrm2(memory: Any, integers: Any, numbers: Any) -> None:
    """The Euclidean norm of a vector."""
    from pygpukit.array.factory import asarray
    from pygpukit.ops.linalg.norms import vector_norm

    size, count, step = integers[:3]
    dtype = _FLOATS[size]
    x = _vector(memory[0], count, step, dtype)
    _memory(memory[2], 1, dtype)[0] = vector_norm(asarray(x.copy())).to_numpy()


def axpy(memory: Any, integers: Any, numbers: Any) -> None:
    """y = alpha x + y."""
    from pygpukit.array.factory import asarray

    size, count, x_step, y_step = integers[:4]
    dtype = _FLOATS[size]
    x, y = _vector(memory[0], count, x_step, dtype), _vector(memory[1], count, y_step, dtype)
    y[...] = (asarray(x.copy()) * numbers[0] + asarray(y.copy())).to_numpy()


def fft(memory: Any, integers: Any, numbers: Any) -> None:
    """One plan's transforms, without a factor in either direction."""
    from pygpukit.array.factory import asarray
    from pygpukit.ops.fft import axes as transforms

    kind, direction, batch, dimensions, *rest = integers[:9]
    extents, (row_in, row_out) = rest[:dimensions], rest[3:5]
    dtype_in, dtype_out = _TRANSFORMS[kind]
    outer = [batch, *extents[:-1]]
    rows = 1
    for extent in outer:
        rows *= extent
    source = _memory(memory[0], rows * row_in, dtype_in).reshape(*outer, row_in)
    target = _memory(memory[1], rows * row_out, dtype_out).reshape(*outer, row_out)
    over = tuple(range(1, dimensions + 1))
    if dtype_in.startswith("float"):
        result = transforms.rfftn(asarray(source[..., : extents[-1]].copy()), axes=over)
    elif dtype_out.startswith("float"):
        result = transforms.irfftn(asarray(source.copy()), s=extents, axes=over, norm="forward")
    elif direction == _FORWARD:
        result = transforms.fftn(asarray(source.copy()), axes=over)
    else:
        result = transforms.ifftn(asarray(source.copy()), axes=over, norm="forward")
    values = result.to_numpy()
    target[..., : values.shape[-1]] = values


def uniform(memory: Any, integers: Any, numbers: Any) -> None:
    """Numbers above 0, up to 1, as cuRAND has them."""
    size, count, seed, drawn = integers[:4]
    values = _generator(seed, drawn).random(count, dtype=_FLOATS[size])
    _memory(memory[0], count, _FLOATS[size])[...] = 1 - values.to_numpy()


def normal(memory: Any, integers: Any, numbers: Any) -> None:
    """Normal numbers with a mean and a standard deviation."""
    size, count, seed, drawn = integers[:4]
    values = _generator(seed, drawn).normal(numbers[0], numbers[1], count, dtype=_FLOATS[size])
    _memory(memory[0], count, _FLOATS[size])[...] = values.to_numpy()


def _generator(seed: int, drawn: int) -> Any:
    """Another one for each call of a program's generator."""
    from pygpukit.random.generator import default_rng

    return default_rng((seed * 0x9E3779B97F4A7C15 + drawn) & (2**63 - 1))


_FUNCTIONS: dict[str, Callable[[Any, Any, Any], None]] = {
    function.__name__: function for function in (gemm, gemv, dot, nrm2, axpy, fft, uniform, normal)
}


@_SIGNATURE
def _call(name: bytes, memory: Any, integers: Any, numbers: Any) -> int:
    try:
        _FUNCTIONS[name.decode()](memory, integers, numbers)
    except Exception:  # the library's call returns that it failed
        traceback.print_exc(file=sys.stderr)
        return 1
    return 0
