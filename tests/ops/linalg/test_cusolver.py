"""What cuSOLVER is asked for: its functions are a library of this test, NumPy's on the memory of the simulated device.

Their arguments are as NVIDIA's documentation lists them. That cuSOLVER itself does with them what it should is not seen
here.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from linalg_checks import (
    TYPES,
    check_cholesky,
    check_eigh,
    check_qr,
    check_solve,
    check_svd,
    close,
    definite,
    hermitian,
    sample,
    wide,
)

import pygpukit as gp
from pygpukit import linalg
from pygpukit.core.errors import BackendUnavailableError
from pygpukit.core.extras import install_command
from pygpukit.jit.toolchain import libraries
from pygpukit.ops.linalg import cusolver, dispatch, solver

Host = np.ndarray[Any, Any]
NUMPY = {number: np.dtype(name) for name, number in solver.DATA_TYPES.items()}
WORKSPACE = 64


def number(value: Any) -> int:
    return int(value.value or 0)


def columns(address: Any, dtype: Any, rows: int, count: int, step: int) -> Host:
    """A matrix in column order at an address."""
    assert step >= rows
    dtype = np.dtype(dtype)
    raw = (ctypes.c_char * (dtype.itemsize * step * max(count, 1))).from_address(number(address))
    return np.frombuffer(raw, dtype).reshape(-1, step).T[:rows, :count]


class Library:
    """The functions that cusolver.py calls. calls: their names, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.asked: dict[str, tuple[Any, ...]] = {}

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            self.calls.append(name)
            assert all(
                isinstance(one, (ctypes._SimpleCData, ctypes.Array)) or type(one).__name__ == "CArgObject"
                for one in arguments
            )
            gp.synchronize()
            return self._answer(name, arguments)

        return function

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> int:
        if name == "cusolverDnCreate":
            arguments[0]._obj.value = 0xABC
            return 0
        handle, *rest = arguments
        assert handle.value == 0xABC
        if name == "cusolverDnSetStream":
            assert number(rest[0]) == gp.current_stream().handle
        elif name.endswith("gqr_bufferSize"):
            rest[-1]._obj.value = WORKSPACE
        elif name.endswith("gqr"):
            _gqr("SDCZ".index(name[10]), *rest)
        elif name.endswith("_bufferSize"):
            *sized, on_device, on_host = rest
            on_device._obj.value, on_host._obj.value = WORKSPACE, WORKSPACE // 2
            self.asked[name.removesuffix("_bufferSize")] = tuple(map(number, sized))
        elif name == "cusolverDnXgetrs":
            _getrs(*rest[1:])
        else:
            self._generic(name, rest)
        return 0

    def _generic(self, name: str, rest: list[Any]) -> None:
        params, *arguments, space, size, host_space, host_size, info = rest
        assert params.value is None and space.value and (size.value, host_size.value) == (WORKSPACE, WORKSPACE // 2)
        assert len(host_space) == WORKSPACE // 2
        sized = arguments if name != "cusolverDnXgetrf" else arguments[:5] + arguments[6:]
        assert self.asked[name] == (0, *map(number, sized))
        code = {"getrf": _getrf, "potrf": _potrf, "geqrf": _geqrf, "syevd": _syevd, "gesvd": _gesvd}[name[11:]](
            *arguments
        )
        ctypes.c_int.from_address(number(info)).value = code


def _matrix(kind: Any, address: Any, m: Any, n: Any, step: Any) -> Host:
    return columns(address, NUMPY[number(kind)], number(m), number(n), number(step))


def _getrf(m: Any, n: Any, kind: Any, a: Any, lda: Any, pivots: Any, compute: Any) -> int:
    assert number(kind) == number(compute) and number(m) == number(n)
    matrix, code = _matrix(kind, a, m, n, lda), 0
    chosen = (ctypes.c_int64 * number(n)).from_address(number(pivots))
    for k in range(number(n)):
        pivot = k + int(np.abs(matrix[k:, k]).argmax())
        chosen[k] = pivot + 1
        matrix[[k, pivot]] = matrix[[pivot, k]]
        if matrix[k, k] == 0:
            code = code or k + 1
            continue
        matrix[k + 1 :, k] /= matrix[k, k]
        matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])
    return code


def _getrs(
    plain: Any, n: Any, count: Any, kind: Any, a: Any, lda: Any, pivots: Any, other: Any, b: Any, ldb: Any, info: Any
) -> None:
    assert number(plain) == 0 and number(kind) == number(other)
    lu, right = _matrix(kind, a, n, n, lda), _matrix(kind, b, n, count, ldb)
    for k, pivot in enumerate((ctypes.c_int64 * number(n)).from_address(number(pivots))):
        right[[k, pivot - 1]] = right[[pivot - 1, k]]
    lower = np.tril(lu, -1) + np.eye(number(n))
    with np.errstate(all="ignore"):
        if np.diag(lu).all():
            right[...] = np.linalg.solve(np.triu(lu), np.linalg.solve(lower, right))
    ctypes.c_int.from_address(number(info)).value = 0


def _potrf(fill: Any, n: Any, kind: Any, a: Any, lda: Any, compute: Any) -> int:
    assert number(fill) == 0 and number(kind) == number(compute)
    matrix = _matrix(kind, a, n, n, lda)
    try:
        matrix[np.tril_indices(number(n))] = np.linalg.cholesky(np.tril(matrix))[np.tril_indices(number(n))]
    except np.linalg.LinAlgError:
        return 1
    return 0


def _geqrf(m: Any, n: Any, kind: Any, a: Any, lda: Any, kind_tau: Any, tau: Any, compute: Any) -> int:
    assert number(kind) == number(kind_tau) == number(compute)
    matrix = _matrix(kind, a, m, n, lda)
    h, factors = np.linalg.qr(matrix, "raw")
    matrix[...] = h.T
    columns(tau, NUMPY[number(kind)], len(factors), 1, len(factors))[:, 0] = factors
    return 0


def _gqr(letter: int, m: Any, n: Any, k: Any, a: Any, lda: Any, tau: Any, space: Any, size: Any, info: Any) -> None:
    assert all(isinstance(one, ctypes.c_int) for one in (m, n, k, lda, size)) and size.value == WORKSPACE
    dtype = ("float32", "float64", "complex64", "complex128")[letter]
    matrix, factors = columns(a, dtype, m.value, n.value, lda.value), columns(tau, dtype, k.value, 1, k.value)[:, 0]
    product = np.eye(m.value, dtype=dtype)
    for i in range(k.value):
        v = np.tril(matrix, -1)[:, i] + np.eye(m.value)[i]
        product = product @ (np.eye(m.value) - factors[i] * np.outer(v, v.conj()))
    matrix[...] = product[:, : n.value]


def _syevd(job: Any, fill: Any, n: Any, kind: Any, a: Any, lda: Any, kind_w: Any, w: Any, compute: Any) -> int:
    assert number(fill) == 0 and number(kind) == number(compute) and number(job) in (0, 1)
    matrix = _matrix(kind, a, n, n, lda)
    assert NUMPY[number(kind_w)] == matrix.real.dtype
    values, vectors = np.linalg.eigh(np.where(np.isfinite(matrix), matrix, 0), "L")
    columns(w, values.dtype, number(n), 1, number(n))[:, 0] = values if np.isfinite(np.tril(matrix)).all() else np.nan
    matrix[...] = vectors if number(job) else 0
    return 0


def _gesvd(jobu: Any, jobvt: Any, m: Any, n: Any, kind: Any, a: Any, lda: Any, kind_s: Any, s: Any, kind_u: Any, u: Any,
           ldu: Any, kind_v: Any, vt: Any, ldvt: Any, compute: Any) -> int:  # fmt: skip
    assert number(m) >= number(n) and number(kind) == number(kind_u) == number(kind_v) == number(compute)
    assert number(jobu) == number(jobvt) and number(ldu) >= number(m) and number(ldvt) >= number(n)
    matrix, job = _matrix(kind, a, m, n, lda), chr(number(jobu))
    assert NUMPY[number(kind_s)] == matrix.real.dtype
    left, values, right = np.linalg.svd(matrix, job == "A")
    columns(s, values.dtype, number(n), 1, number(n))[:, 0] = values
    if job != "N":
        _matrix(kind, u, m, ctypes.c_int64(left.shape[1]), ldu)[...] = left
        _matrix(kind, vt, n, n, ldvt)[...] = right
    return 0


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setattr(solver, "library", lambda: made)
    solver._handle.cache_clear()
    for module in ("solving", "factors", "eigen"):
        monkeypatch.setattr(f"pygpukit.ops.linalg.{module}.backend", lambda what, a: cusolver)
    return made


@pytest.mark.parametrize("dtype", TYPES)
def test_every_function_through_the_library(fake: Library, dtype: str) -> None:
    check_solve(sample((2, 5, 5), dtype), sample((5, 3), dtype))
    check_cholesky(definite((2, 4, 4), dtype))
    check_eigh(hermitian((2, 5, 5), dtype))
    for m, n in ((5, 3), (3, 5), (4, 4)):
        check_qr(sample((2, m, n), dtype))
        check_svd(sample((2, m, n), dtype))
    a = sample((3, 4, 4), dtype)
    found, (sign, logabs) = linalg.slogdet(gp.from_numpy(a)), np.linalg.slogdet(wide(a))
    close(found.sign, sign, 1e-4 if dtype in TYPES[:2] else 1e-12)
    close(found.logabsdet, logabs, 1e-4 if dtype in TYPES[:2] else 1e-12)
    assert fake.calls.count("cusolverDnCreate") == 1


def test_what_has_no_result_is_told_as_elsewhere(fake: Library) -> None:
    a = gp.from_numpy(np.stack([np.eye(3), np.zeros((3, 3))]))
    for name in ("inv", "cholesky"):
        with pytest.raises(linalg.LinAlgError) as info:
            getattr(linalg, name)(a)
        assert info.value.failed == [(1,)]
        with linalg.unchecked():
            found = getattr(linalg, name)(a).to_numpy()
        assert np.isnan(found[1]).all() and not np.isnan(found[0]).any()
    with pytest.raises(linalg.LinAlgError, match="NaN"):
        linalg.eigvalsh(gp.full((3, 3), math.nan))
    assert linalg.det(a).to_numpy().tolist() == [1, 0]


def test_work_is_put_on_the_current_stream(fake: Library) -> None:
    with gp.Stream():
        linalg.inv(gp.eye(3, dtype="float64"))
    assert "cusolverDnSetStream" in fake.calls


def test_a_status_of_the_library_is_an_error(fake: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "_answer", lambda name, arguments: 0 if name != "cusolverDnXpotrf" else 7)
    solver._handle.cache_clear()
    with pytest.raises(gp.GPUError, match=r"cusolverDnXpotrf: .* status 7"):
        linalg.cholesky(gp.eye(3))
    solver._handle.cache_clear()


def test_a_missing_library_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "cusolver_candidates", lambda: ["/nowhere/libcusolver.so.12"])
    solver.library.cache_clear()
    monkeypatch.setattr(dispatch.host, "computes", lambda: False)
    assert dispatch.backend("solve", gp.empty((65, 65))) is cusolver
    with pytest.raises(
        BackendUnavailableError, match=rf"{re.escape(install_command('linalg'))} .*nvidia-cusolver.*to_numpy"
    ):
        solver.library()
