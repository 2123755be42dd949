"""The factorizations on the simulated device: NumPy's, on the memory of the arrays, in stream order.

The same functions are in small.py, for kernels of our own, and in cusolver.py. Inputs are stacks of one batch shape and
type, of any strides; outputs are dense. info: int32, one a matrix: not zero where there is no result, which is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit._core import native
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def solve(a: GPUArray, b: GPUArray, x: GPUArray, info: GPUArray) -> None:
    """x of a @ x = b."""
    _run("solve", np.linalg.solve, [a, b], [x], info)


def slogdet(a: GPUArray, sign: GPUArray, logabs: GPUArray) -> None:
    """The sign and the logarithm of the magnitude of the determinant."""
    _run("slogdet", np.linalg.slogdet, [a], [sign, logabs])


def cholesky(a: GPUArray, lower: GPUArray, info: GPUArray) -> None:
    """lower @ its adjoint = a, of which the lower triangle is read."""
    _run("cholesky", np.linalg.cholesky, [a], [lower], info, np.tril)


def qr(a: GPUArray, h: GPUArray, tau: GPUArray, q: GPUArray | None) -> None:
    """h: R and below it the reflectors 1 - tau v v', v with a 1 on the diagonal; q: as many columns as it has."""

    def reflectors(values: Any) -> tuple[Any, Any]:
        packed, factors = np.linalg.qr(values, "raw")
        return packed.swapaxes(-1, -2), factors

    _run("qr", reflectors, [a], [h, tau])
    if q is not None:
        mode: Any = "complete" if q.shape[-1] > min(a.shape[-2:]) else "reduced"
        _run("qr", lambda values: np.linalg.qr(values, mode)[0], [a], [q])


def eigh(a: GPUArray, w: GPUArray, v: GPUArray | None, info: GPUArray) -> None:
    """Eigenvalues in ascending order, eigenvectors in columns; of a the lower triangle is read."""
    if v is None:
        _run("eigh", np.linalg.eigvalsh, [a], [w], info, np.tril)
    else:
        _run("eigh", np.linalg.eigh, [a], [w, v], info, np.tril)


def svd(a: GPUArray, u: GPUArray | None, s: GPUArray, vh: GPUArray | None, info: GPUArray) -> None:
    """u @ diag(s) @ vh = a, s in descending order; u and vh: both or neither, whole or as many as s has."""
    if u is None or vh is None:
        _run("svd", lambda values: np.linalg.svd(values, compute_uv=False), [a], [s], info, np.asarray)
    else:
        whole = u.shape[-1] == a.shape[-2] and vh.shape[-2] == a.shape[-1]
        _run("svd", lambda values: np.linalg.svd(values, whole), [a], [u, s, vh], info, np.asarray)


def _run(
    name: str,
    function: Callable[..., Any],
    inputs: list[GPUArray],
    outputs: list[GPUArray],
    info: GPUArray | None = None,
    read: Callable[[Any], Any] | None = None,
) -> None:
    """outputs = function(*inputs); where NumPy refuses some matrices of the stack, of each one by itself.

    read: what is read of the first input; with NaN or infinities in it a matrix has no result. NumPy is not asked for
    one: some versions never return.
    """

    def compute() -> None:
        values = [host.values(x) for x in inputs]
        codes = np.zeros(()) if info is None else host.memory(info)
        codes[...] = 0 if read is None else ~np.isfinite(read(values[0])).all((-2, -1))
        with np.errstate(all="ignore"):
            if not codes.any():
                try:
                    _store(outputs, function(*values))
                    return
                except np.linalg.LinAlgError:
                    pass
            for place in np.ndindex(codes.shape):
                _one(outputs, function, [x[place] for x in values], codes, place)

    native.host_launch(name, compute, [*inputs, *outputs, *([] if info is None else [info])])


def _one(
    outputs: list[GPUArray], function: Callable[..., Any], values: list[Any], codes: Any, place: tuple[int, ...]
) -> None:
    """One matrix of a stack; codes: 1 where there is no result already, and afterwards."""
    if not codes[place]:
        try:
            _store(outputs, function(*values), place)
            return
        except np.linalg.LinAlgError:
            codes[place] = 1
    _store(outputs, [np.nan] * len(outputs) if len(outputs) > 1 else np.nan, place)


def _store(outputs: list[GPUArray], results: Any, place: tuple[int, ...] = ()) -> None:
    for out, result in zip(outputs, results if len(outputs) > 1 else [results], strict=True):
        host.memory(out)[place] = result
