"""The kernels of gp.linalg, by their name and type."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sweep.engine import Call, Family, first_type

import pygpukit as gp
from pygpukit.ops.linalg import small

_TYPES = {"float": "float32", "double": "float64"}
_TYPES |= {f"pk::complex_t<{part}>": f"complex{number}" for part, number in (("float", 64), ("double", 128))}


def _variant(expression: str) -> str:
    """ "qr float32" of a kernel of that name and type."""
    return f"{expression.partition('<')[0].removeprefix('pk::')} {_TYPES[first_type(expression)]}"


def _near(dtype: str, *shape: int) -> gp.GPUArray:
    """Matrices near a diagonal of 1, 2, 3, ...: values far from each other. In Fortran's order."""
    drawn = np.random.default_rng().uniform(-0.1, 0.1, (2, *shape))
    m, n = shape[-2:]
    values = drawn[0] + np.eye(m, n) * np.arange(1, n + 1) + (1j * drawn[1] if dtype[0] == "c" else 0)
    return gp.from_numpy(np.ascontiguousarray(values.swapaxes(-1, -2)).astype(dtype)).swapaxes(-1, -2)


def _hermitian(dtype: str, *shape: int) -> gp.GPUArray:
    values = _near(dtype, *shape).to_numpy()
    return gp.from_numpy((values + values.conj().swapaxes(-1, -2)) / np.asarray(2, dtype))


def _sizes(results: Any) -> tuple[Any, ...]:
    """Magnitudes: a vector's sign is the method's own."""
    return tuple(abs(one) for one in results)


def _calls(variant: str) -> Iterator[Call]:
    """Of one warp and of four, of odd sizes, of views; tall and wide."""
    name, _, dtype = variant.partition(" ")
    if name == "lu_solve":
        for n, columns in ((3, 1), (9, 18)):
            yield Call(gp.linalg.solve, (_near(dtype, 2, n, n), _near(dtype, 2, n, columns)), np.linalg.solve)
    elif name == "lu_slogdet":
        for shape in ((2, 4, 4), (9, 9)):
            yield Call(gp.linalg.slogdet, (_near(dtype, *shape),), lambda a: tuple(np.linalg.slogdet(a)))
    elif name == "cholesky":
        for shape in ((2, 4, 4), (9, 9)):
            yield Call(gp.linalg.cholesky, (_hermitian(dtype, *shape),), np.linalg.cholesky)
    elif name == "qr":
        for shape in ((2, 5, 3), (3, 5), (9, 9)):
            yield Call(partial(gp.linalg.qr, mode="raw"), (_near(dtype, *shape),), lambda a: np.linalg.qr(a, "raw"))
            yield Call(gp.linalg.qr, (_near(dtype, *shape),), lambda a: tuple(np.linalg.qr(a)))
    elif name == "eigh":
        for shape in ((2, 4, 4), (9, 9)):
            x = _hermitian(dtype, *shape)
            yield Call(lambda a: _sizes(gp.linalg.eigh(a)), (x,), lambda a: _sizes(np.linalg.eigh(a)))
            yield Call(gp.linalg.eigvalsh, (x,), np.linalg.eigvalsh)
    else:
        for shape in ((2, 5, 3), (3, 5), (9, 9)):
            x = _near(dtype, *shape)
            yield Call(lambda a: _sizes(gp.linalg.svd(a, False)), (x,), lambda a: _sizes(np.linalg.svd(a, False)))
            yield Call(gp.linalg.svdvals, (x,), lambda a: np.linalg.svd(a, compute_uv=False))


_SOURCES = tuple(spec.source for spec in (small.LU, small.CHOLESKY, small.QR, small.EIGH, small.SVD))
FAMILIES = (Family("linalg", _SOURCES, _variant, _calls),)
