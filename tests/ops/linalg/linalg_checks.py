"""Factorizations held against float64: what defines them, and NumPy's values. Used on both backends and on kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pygpukit as gp
from pygpukit import linalg

Host = np.ndarray[Any, Any]
TYPES = ("float32", "complex64", "float64", "complex128")  # single precision first
SINGLE = TYPES[:2]


def wide(a: Host) -> Host:
    return a.astype("complex128" if a.dtype.kind == "c" else "float64")


def sample(shape: tuple[int, ...], dtype: str) -> Host:
    rng = np.random.default_rng()
    if np.dtype(dtype).kind in "iu":
        return np.asarray(rng.integers(1, 10, shape) * rng.choice([-1, 1], shape)).astype(dtype)
    values = rng.standard_normal(shape)
    return np.asarray(values + 1j * rng.standard_normal(shape) if dtype[0] == "c" else values).astype(dtype)


def hermitian(shape: tuple[int, ...], dtype: str) -> Host:
    a = sample(shape, dtype)
    return np.asarray(a + a.conj().swapaxes(-1, -2))


def definite(shape: tuple[int, ...], dtype: str) -> Host:
    a = sample(shape, dtype)
    return np.asarray(a @ a.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype))


def conditioned(n: int, condition: float, dtype: str) -> Host:
    """A matrix whose singular values fall evenly from 1 to 1 / condition."""
    u, v = (np.linalg.qr(wide(sample((n, n), dtype)))[0] for _ in range(2))
    return np.asarray(u * np.geomspace(1, 1 / condition, n) @ v).astype(dtype)


def layouts(a: Host) -> Iterator[Host]:
    """The same matrices in C order, in Fortran's, and as a view with steps of a larger array."""
    yield a
    yield np.asfortranarray(a)
    spaced = np.zeros((*a.shape[:-2], a.shape[-2] + 1, 2 * a.shape[-1]), a.dtype)
    view = spaced[..., 1:, ::-2]
    view[...] = a
    yield view


def device(a: Host) -> gp.GPUArray:
    """The array on the device with the same strides."""
    base = a
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base is a or a.flags.c_contiguous:
        return gp.from_numpy(np.ascontiguousarray(a))
    if a.flags.f_contiguous or not a.size:
        return gp.from_numpy(np.ascontiguousarray(a.T)).T
    return gp.from_numpy(base)[..., 1:, ::-2]


def close(found: gp.GPUArray, expected: Any, bound: float) -> None:
    """Of the reference's shape and kind, off by at most bound of its largest magnitude."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    values = wide(found.to_numpy())
    assert (values.dtype.kind == "c") == (expected.dtype.kind == "c"), (found.dtype, expected.dtype)
    infinite = ~np.isfinite(expected)
    np.testing.assert_array_equal(values[infinite], expected[infinite])
    size = np.abs(expected[~infinite]).max(initial=0)
    error = np.abs(values - expected)[~infinite].max(initial=0)
    assert error <= bound * max(size, 1e-300), (error, size)


def small(difference: Host, size: Any, n: int, dtype: Any, factor: float = 30) -> None:
    """Errors of a backward stable algorithm: some epsilons times n of the size of what was factorized."""
    eps = np.finfo(dtype).eps
    assert np.isfinite(difference).all()
    error = np.abs(difference).max(initial=0)
    assert error <= factor * eps * max(n, 1) * max(float(size), 1e-300), (error / eps, size, n)


def check_solve(a: Host, b: Host) -> None:
    x = linalg.solve(device(a), gp.from_numpy(b))
    assert x.dtype.name == a.dtype.name and x.shape == (np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:])
    found, n = wide(x.to_numpy()), a.shape[-1]
    small(wide(a) @ found - wide(b), np.abs(a).max() * np.abs(found).max() * n, n, a.dtype)
    expected, condition = np.linalg.solve(wide(a), wide(b)), np.linalg.cond(wide(a)).max()
    small(found - expected, np.abs(expected).max() * condition, n, a.dtype)
    inverse = wide(linalg.inv(device(a)).to_numpy())
    small(wide(a) @ inverse - np.eye(n), np.abs(a).max() * np.abs(inverse).max() * n, n, a.dtype)


def check_cholesky(a: Host) -> None:
    n = a.shape[-1]
    lower = linalg.cholesky(device(np.tril(a) if a.flags.c_contiguous else a))
    assert lower.dtype.name == a.dtype.name and lower.shape == a.shape
    found = wide(lower.to_numpy())
    np.testing.assert_array_equal(found, np.tril(found))
    small(found @ found.conj().swapaxes(-1, -2) - wide(a), np.abs(a).max(), n, a.dtype)
    upper = wide(linalg.cholesky(device(a), upper=True).to_numpy())
    np.testing.assert_array_equal(upper, np.triu(upper))
    small(upper.conj().swapaxes(-1, -2) @ upper - wide(a), np.abs(a).max(), n, a.dtype)


def check_eigh(a: Host) -> None:
    n, size = a.shape[-1], np.abs(a).max(initial=0) * a.shape[-1]
    expected = np.linalg.eigvalsh(wide(a))
    for triangle in ("L", "U"):
        w, v = linalg.eigh(device(a), triangle)
        assert w.dtype.name == a.real.dtype.name and v.dtype.name == a.dtype.name
        values, vectors = w.to_numpy().astype("float64"), wide(v.to_numpy())
        small(values - expected, size, n, a.dtype)
        small(wide(a) @ vectors - vectors * values[..., None, :], size, n, a.dtype)
        small(vectors.conj().swapaxes(-1, -2) @ vectors - np.eye(n), 1, n, a.dtype)
        small(linalg.eigvalsh(device(a), triangle).to_numpy() - expected, size, n, a.dtype)


def check_qr(a: Host) -> None:
    (m, n), size = a.shape[-2:], np.abs(a).max(initial=0) * max(a.shape[-2:])
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(device(a), mode)
        columns = m if mode == "complete" else min(m, n)
        assert q.shape == (*a.shape[:-1], columns) and r.shape == (*a.shape[:-2], columns, n)
        assert q.dtype.name == r.dtype.name == a.dtype.name
        left, right = wide(q.to_numpy()), wide(r.to_numpy())
        np.testing.assert_array_equal(right, np.triu(right))
        small(left @ right - wide(a), size, m, a.dtype)
        small(left.conj().swapaxes(-1, -2) @ left - np.eye(columns), 1, m, a.dtype)
    np.testing.assert_array_equal(linalg.qr(device(a), "r").to_numpy(), linalg.qr(device(a))[1].to_numpy())
    h, tau = linalg.qr(device(a), "raw")
    found, factors = wide(h.to_numpy()).swapaxes(-1, -2), wide(tau.to_numpy())
    product = np.broadcast_to(np.eye(m), (*a.shape[:-2], m, m))
    for i in range(min(m, n)):
        v = np.tril(found, -1)[..., i] + np.eye(m)[i]
        product = product @ (np.eye(m) - factors[..., i, None, None] * v[..., :, None] * v[..., None, :].conj())
    small(product @ np.triu(found) - wide(a), size, m, a.dtype)


def check_svd(a: Host) -> None:
    (m, n), size = a.shape[-2:], np.abs(a).max(initial=0) * max(a.shape[-2:])
    k, longest = min(m, n), max(m, n)
    expected = np.linalg.svd(wide(a), compute_uv=False)
    for whole in (True, False):
        u, s, vh = linalg.svd(device(a), whole)
        assert u.shape == (*a.shape[:-1], m if whole else k) and vh.shape == (*a.shape[:-2], n if whole else k, n)
        assert s.dtype.name == a.real.dtype.name and u.dtype.name == vh.dtype.name == a.dtype.name
        left, values, right = wide(u.to_numpy()), s.to_numpy().astype("float64"), wide(vh.to_numpy())
        small(values - expected, size, longest, a.dtype)
        small(left[..., :k] * values[..., None, :] @ right[..., :k, :] - wide(a), size, longest, a.dtype)
        small(left.conj().swapaxes(-1, -2) @ left - np.eye(left.shape[-1]), 1, longest, a.dtype)
        small(right @ right.conj().swapaxes(-1, -2) - np.eye(right.shape[-2]), 1, longest, a.dtype)
    small(linalg.svdvals(device(a)).to_numpy() - expected, size, longest, a.dtype)
