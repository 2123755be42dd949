"""NumPy's functions on GPUArrays: what is dispatched, what is refused and how, and that nothing crosses to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core

pytestmark = pytest.mark.usefixtures("backend_name")

RNG = np.random.default_rng()


def numbers(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    return (RNG.standard_normal(shape) * 10).astype(dtype)


def dispatched(call: Callable[..., Any], *arrays: np.ndarray) -> None:
    """call() on the device equals call() on the host, and copies nothing back."""
    there = [gp.from_numpy(array) for array in arrays]
    before = _core.counters()["d2h_bytes"]
    result = call(*there)
    assert _core.counters()["d2h_bytes"] - before <= 16  # the number of results of nonzero()
    expected = call(*arrays)
    if not isinstance(expected, tuple):
        result, expected = (result,), (expected,)
    for one, other in zip(result, expected, strict=True):
        assert isinstance(one, gp.GPUArray)
        np.testing.assert_allclose(one.to_numpy(), other, rtol=1e-12, atol=1e-12)
        assert one.dtype.name == np.asarray(other).dtype.name


UFUNCS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: np.add(a, b),
    "number": lambda a, b: np.subtract(2, a),
    "NumPy's number": lambda a, b: np.float32(2) * a,
    "operator": lambda a, b: np.float64(1.5) - a,
    "arctan2": lambda a, b: np.arctan2(a, b),
    "power": lambda a, b: np.power(np.abs(a), 2),
    "sqrt": lambda a, b: np.sqrt(np.abs(a)),
    "invert": lambda a, b: np.invert(a > b),
    "isnan": lambda a, b: np.isnan(a / b),
    "matmul": lambda a, b: np.matmul(a, b.T),
    "sum by reduce": lambda a, b: np.add.reduce(a),
    "max by reduce": lambda a, b: np.maximum.reduce(a, axis=1, keepdims=True),
    "accumulate": lambda a, b: np.add.accumulate(a, axis=1),
    "outer": lambda a, b: np.multiply.outer(a[0], b),
    "defaults": lambda a, b: np.add(a, b, where=True, casting="same_kind", dtype=None),
    "where with out": lambda a, b: np.add(a, b, out=a.copy(), where=a > 0),
    "where with out, of one": lambda a, b: np.exp(b, out=b.copy(), where=a > 0),
}


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs(name: str) -> None:
    dispatched(UFUNCS[name], numbers((4, 6)), numbers((4, 6)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda a: np.sum(a, axis=0),
    "sum positionally": lambda a: np.sum(a, 1),
    "mean": lambda a: np.mean(a, keepdims=True),
    "var": lambda a: np.var(a, axis=1, ddof=1),
    "amax": lambda a: np.max(a, axis=-1),
    "any": lambda a: np.any(a > 5, axis=0),
    "argmax": lambda a: np.argmax(a, axis=1),
    "cumsum": lambda a: np.cumsum(a, axis=0),
    "concatenate": lambda a: np.concatenate([a, a], axis=1),
    "stack": lambda a: np.stack((a, a), axis=-1),
    "where": lambda a: np.where(a > 0, a, 0.0),
    "transpose": lambda a: np.transpose(a),
    "transpose by axes": lambda a: np.transpose(a, (1, 0)),
    "moveaxis": lambda a: np.moveaxis(a, 0, -1),
    "reshape": lambda a: np.reshape(a, (-1, 2)),
    "clip": lambda a: np.clip(a, -1.0, 1.0),
    "take": lambda a: np.take(a, gp.asarray([2, 0]) if isinstance(a, gp.GPUArray) else [2, 0], axis=1),
    "sort": lambda a: np.sort(a, axis=0),
    "vstack": lambda a: np.vstack([a, a]),
    "hstack": lambda a: np.hstack((a, a)),
    "array_split": lambda a: tuple(np.array_split(a, 3, axis=1)),
    "rot90": lambda a: np.rot90(a, k=-1),
    "diagonal": lambda a: np.diagonal(a, offset=1),
    "compress": lambda a: np.compress(np.array([True, False, True]).tolist(), a, axis=0),
    "pad with a value": lambda a: np.pad(a, ((1, 0), (0, 2)), constant_values=3.5),
    "nonzero": lambda a: np.nonzero(a > 0),
    "zeros_like": lambda a: np.zeros_like(a),
    "full_like": lambda a: np.full_like(a, 3),
    "copy": lambda a: np.copy(a),
    "expand_dims": lambda a: np.expand_dims(a, 0),
    "roll": lambda a: np.roll(a, 2, axis=1),
    "tensordot": lambda a: np.tensordot(a, a, axes=((0, 1), (0, 1))),
    "broadcast_arrays": lambda a: np.broadcast_arrays(a, a[:1]),
    "diff": lambda a: np.diff(a, n=2, axis=1),
    "by name": lambda a: np.flip(m=a, axis=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    dispatched(FUNCTIONS[name], numbers((4, 6)))


def test_facts_are_answered_from_the_shape() -> None:
    x = gp.ones((2, 3))
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert np.isrealobj(x) and np.iscomplexobj(gp.ones(1, "complex64"))


def test_out_is_ours() -> None:
    a, b, out = gp.ones(4), gp.ones(4), gp.zeros(4)
    assert np.add(a, b, out=out) is out
    np.add(a, 1, out=a)
    assert out.to_numpy().tolist() == [2] * 4 == a.to_numpy().tolist()
    with pytest.raises(gp.ShapeError, match=r"np\.add"):
        np.add(a, b, out=gp.zeros(3))
    host = np.zeros(4)
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        np.add(a, b, out=host)
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        host += a
    assert not host.any()


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "host array": (lambda x, h: np.add(x, h), r"np\.add: .* gp\.from_numpy"),
    "host array first": (lambda x, h: h * x, r"np\.multiply: .* gp\.from_numpy"),
    "compared": (lambda x, h: h == x, r"gp\.from_numpy"),
    "in a list": (lambda x, h: np.concatenate([x, h]), r"np\.concatenate: .* gp\.from_numpy"),
    "by keyword": (lambda x, h: np.clip(x, -1, h), r"np\.clip: .* gp\.from_numpy"),
    "no such ufunc": (lambda x, h: np.gcd(x, x), r"np\.gcd has no counterpart .* \.to_numpy\(\)"),
    "no such function": (lambda x, h: np.linalg.eig(x), r"np\.linalg\.eig has no counterpart .* \.to_numpy\(\)"),
    "no such method": (lambda x, h: np.add.at(x, 0, 1), r"np\.add\.at has no counterpart"),
    "no such reduction": (lambda x, h: np.subtract.reduce(x), r"np\.subtract\.reduce has no counterpart"),
    "keyword of a ufunc": (lambda x, h: np.add(x, x, signature="ff->f"), r"np\.add: signature= cannot be given"),
    "conversion": (lambda x, h: np.asarray(x), r"\.to_numpy\(\)"),
    "hidden conversion": (lambda x, h: np.array([x, x]), r"\.to_numpy\(\)"),
    "a function of the host": (lambda x, h: np.testing.assert_array_equal(x, h), r"from_numpy|to_numpy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do_and_copy_nothing(name: str) -> None:
    call, message = REFUSED[name]
    x, h = gp.ones(4), np.ones(4)
    before = _core.counters()
    with pytest.raises(TypeError, match=message):
        call(x, h)
    after = _core.counters()
    assert all(after[copied] == before[copied] for copied in ("h2d_bytes", "d2h_bytes"))
