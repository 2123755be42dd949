"""Random expressions of views, indexing, assignment, broadcasting and promotion: the same as NumPy, errors included.

PYGPUKIT_FUZZ_EXAMPLES sets how many expressions are made; a failure prints the seed of its batch and the expression.
"""

from __future__ import annotations

import operator
import os
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit.ops.statistics.methods import METHODS

EXPRESSIONS = int(os.environ.get("PYGPUKIT_FUZZ_EXAMPLES", "10000"))
BATCH = 100
DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
KINDS = (IndexError, ValueError, TypeError, OverflowError)
Host = np.ndarray[Any, Any]
Random = np.random.Generator


@settings(
    max_examples=max(EXPRESSIONS // BATCH, 1),
    deadline=None,
    database=None,
    phases=[Phase.generate],  # a smaller seed is no smaller expression
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**63 - 1))
def test_expressions_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for _ in range(BATCH):
            one_expression(rng)


test_expressions_are_numpys = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")(
    pytest.mark.timeout(max(300, EXPRESSIONS // 50))(test_expressions_are_numpys)
)


def one_expression(rng: Random) -> None:
    """Some operations in a row on one array, each compared as it is done."""
    said: list[str] = []
    host = values(rng, extents(rng), pick(rng, DTYPES))
    x = gp.from_numpy(host)
    said.append(f"x = {host.dtype}{host.shape}")
    try:
        for _ in range(int(rng.integers(1, 4))):
            host, x = STEPS[int(rng.choice(len(STEPS), p=WEIGHTS))](rng, host, x, said)
            if host.size > 4000:
                return
    except AssertionError as error:
        raise AssertionError("; ".join(said)) from error


def compare(said: list[str], numpys: Any, ours: Any, check: Any = None) -> tuple[Host, gp.GPUArray] | None:
    """Both results, equal, or None when both refuse, with errors of one kind."""
    try:
        expected = numpys()
    except KINDS as error:
        refused = [kind for kind in KINDS if isinstance(error, kind)]
        try:
            found = ours()
        except KINDS as own:
            # Of functions that are made of others NumPy's errors are those of the one that fails first.
            assert check or isinstance(own, tuple(refused)), f"{own!r} instead of {error!r}"
            return None
        raise AssertionError(f"{found!r} instead of {error!r}") from error
    found, expected = ours(), np.asarray(expected)
    (check or same)(found, expected)
    return expected, found


def same(found: gp.GPUArray, expected: Host) -> None:
    assert found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}"
    assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
    assert np.array_equal(found.to_numpy(), expected, equal_nan=expected.dtype.kind in "fc"), "values differ"


# ---- steps: each returns what the next one starts from ----

Pair = tuple[Host, gp.GPUArray]


def step_view(rng: Random, host: Host, x: gp.GPUArray, said: list[str]) -> Pair:
    """Transpose, flip, expand, broadcast, reshape, roll, pad, and the like, with any axes."""
    axis, other = (int(k) for k in rng.integers(-3, 3, 2))
    calls: list[Any] = [
        lambda m, a: m.transpose(a, tuple(order)),
        lambda m, a: m.flip(a, axis),
        lambda m, a: m.expand_dims(a, axis),
        lambda m, a: m.squeeze(a),
        lambda m, a: m.swapaxes(a, axis, other),
        lambda m, a: m.moveaxis(a, axis, other),
        lambda m, a: m.broadcast_to(a, (*grow, *a.shape)),
        lambda m, a: m.reshape(a, target),
        lambda m, a: m.ravel(a),
        lambda m, a: m.roll(a, other, axis),
        lambda m, a: m.pad(a, width, mode),
        lambda m, a: m.tile(a, width),
        lambda m, a: m.repeat(a, width, axis),
        lambda m, a: m.rot90(a, other, (0, 1)),
        lambda m, a: m.diagonal(a, other),
        lambda m, a: m.triu(a, other) if a.ndim > 1 else a,
        lambda m, a: m.concatenate([a, a[::-1]], axis),
        lambda m, a: m.stack([a, a], axis),
    ]
    order = rng.permutation(host.ndim).tolist()
    grow = rng.integers(0, 3, int(rng.integers(0, 2))).tolist()
    target = rng.permutation(host.shape).tolist() if rng.random() < 0.7 else [int(k) for k in rng.integers(-1, 5, 2)]
    width, mode = int(rng.integers(0, 3)), pick(rng, ["constant", "edge", "reflect", "symmetric", "wrap"])
    chosen = int(rng.integers(len(calls)))
    said.append(f"view {chosen} axes {axis} {other} order {order} grow {grow} target {target} width {width} {mode}")
    if host.ndim > 6:
        return host, x
    return compare(said, lambda: calls[chosen](np, host), lambda: calls[chosen](gp, x)) or (host, x)


def step_get(rng: Random, host: Host, x: gp.GPUArray, said: list[str]) -> Pair:
    """x[key]."""
    key, own = index_key(rng, host.shape)
    said.append(f"x[{key}]")
    return compare(said, lambda: host[key], lambda: x[own]) or (host, x)


def step_set(rng: Random, host: Host, x: gp.GPUArray, said: list[str]) -> Pair:
    """x[key] = value, on copies."""
    key, own = index_key(rng, host.shape, twice=False)
    said.append(f"x[{key}] = ")
    changed, y = host.copy(), x.clone()
    try:
        shape = changed[key].shape
    except IndexError:
        shape = ()
    if rng.random() < 0.3:
        value: Any = number(rng, host.dtype)
        own_value = value
    else:
        shape = tuple(1 if rng.random() < 0.15 else extent for extent in shape)[int(rng.random() < 0.15) :]
        if shape and not any(
            str(getattr(item, "dtype", "")) == "bool" for item in (key if isinstance(key, tuple) else (key,))
        ):
            shape = (*[1] * int(rng.random() < 0.1), *shape)  # NumPy takes these not everywhere; we do
        value = values(rng, shape, pick(rng, DTYPES) if rng.random() < 0.5 else str(host.dtype))
        own_value = gp.from_numpy(value)
        if host.dtype.kind in "iub" and value.dtype.kind in "fc":
            value = own_value = 1  # floats out of range convert as they like
    said.append(f"{getattr(value, 'shape', value)} {getattr(value, 'dtype', '')}")

    def numpys() -> Host:
        changed[key] = value
        return changed

    def ours() -> gp.GPUArray:
        y[own] = own_value
        return y

    return compare(said, numpys, ours) or (host, x)


def step_binary(rng: Random, host: Host, x: gp.GPUArray, said: list[str]) -> Pair:
    """x op y with a shape that broadcasts (mostly) and any type, or a Python number."""
    op = pick(rng, OPERATORS)
    if rng.random() < 0.3:
        other: Any = number(rng, host.dtype)
        own: Any = other
    else:
        shape = tuple(1 if rng.random() < 0.3 else extent for extent in host.shape)[int(rng.integers(0, 3)) :]
        if rng.random() < 0.05:
            shape = (*shape, 3)
        other = values(rng, shape, pick(rng, DTYPES))
        own = gp.from_numpy(other)
    if "c" in host.dtype.kind + np.asarray(other).dtype.kind and op in OPERATORS[2:4] + OPERATORS[6:]:
        op = operator.add  # complex numbers have no order here, and round products and quotients in their own way
    if host.dtype == bool and np.asarray(other).dtype == bool and op is operator.sub:
        op = operator.mul
    said.append(f"{op.__name__} {getattr(other, 'shape', other)} {getattr(other, 'dtype', '')}")
    if rng.random() < 0.5:
        return compare(said, lambda: op(host, other), lambda: op(x, own)) or (host, x)
    return compare(said, lambda: op(other, host), lambda: op(own, x)) or (host, x)


def step_take(rng: Random, host: Host, x: gp.GPUArray, said: list[str]) -> Pair:
    """take, take_along_axis, compress and cast."""
    axis = int(rng.integers(-host.ndim, host.ndim)) if host.ndim and rng.random() < 0.8 else None
    length = host.size if axis is None else host.shape[axis]
    kind = int(rng.integers(4))
    said.append(f"take {kind} axis {axis}")
    if kind == 0:
        mode = pick(rng, ["raise", "wrap", "clip"])
        index = rng.integers(-2 * length - 1, 2 * length + 1, extents(rng, 2)) if mode != "raise" else (
            rng.integers(-length, length, extents(rng, 2)) if length else np.zeros(0, np.int64)
        )  # fmt: skip
        own = gp.from_numpy(index) if rng.random() < 0.5 else index
        if not length and index.size:
            return host, x
        return compare(
            said, lambda: np.take(host, index, axis, mode=mode), lambda: gp.take(x, own, axis, mode=mode)
        ) or (host, x)
    if kind == 1 and host.size:
        whole = host.ravel() if axis is None else host
        at = 0 if axis is None else axis
        index = rng.integers(
            -length,
            length,
            [int(rng.integers(1, 4)) if k == at % whole.ndim else extent for k, extent in enumerate(whole.shape)],
        )
        return compare(
            said,
            lambda: np.take_along_axis(host, index, axis),
            lambda: gp.take_along_axis(x, gp.from_numpy(index), axis),
        ) or (host, x)
    if kind == 2:
        mask = rng.random(int(rng.integers(0, length + 1))) < 0.5
        return compare(said, lambda: np.compress(mask, host, axis), lambda: gp.compress(mask, x, axis)) or (host, x)
    dtype = pick(rng, DTYPES)
    if host.dtype.kind in "fc" and np.dtype(dtype).kind in "iu":
        return host, x
    return compare(said, lambda: host.astype(dtype), lambda: x.astype(dtype)) or (host, x)


# Kinds of types that a function is compared for, and its call with m, the library, and a, the array.
Call = tuple[str, Any]


def calls_of(rng: Random, shape: tuple[int, ...]) -> list[Call]:
    """Statistics, products and functions of samples with any axes, quantiles, edges and labels."""
    axis = int(rng.integers(-3, 3))
    axes: Any = pick(rng, [None, axis, (0, -1), (axis,)])
    keep, k, method = bool(rng.random() < 0.5), int(rng.integers(-2, 3)), pick(rng, list(METHODS))
    q: Any = pick(rng, [0.5, float(rng.random()), [0.25, 1.0], 1.25])
    edges = sorted(rng.integers(-40, 40, int(rng.integers(2, 6))).tolist(), reverse=rng.random() < 0.5)
    letters = [str(rng.choice(list("abc"))) for _ in shape]
    result = "".join(dict.fromkeys(rng.permutation(letters).tolist()[: int(rng.integers(0, 3))]))
    text = "".join(letters) + pick(rng, ["", "->" + result, "->" + result + "z", "..."])
    order, mode = int(rng.integers(1, 4)), pick(rng, ["full", "same", "valid"])
    return [
        ("biuf", lambda m, a: m.median(a, axes, keepdims=keep)),
        ("biuf", lambda m, a: m.nanmedian(a, axes, keepdims=keep)),
        ("iuf", lambda m, a: m.quantile(a, q, axes, keepdims=keep, method=method)),
        ("iuf", lambda m, a: m.nanpercentile(a, 37.5, axes, keepdims=keep)),
        ("biufc", lambda m, a: m.nansum(a, axes, keepdims=keep)),
        ("biuf", lambda m, a: m.nanmean(a, axes, keepdims=keep)),
        ("biuf", lambda m, a: m.nanvar(a, axes, ddof=1, keepdims=keep)),
        ("biuf", lambda m, a: m.nanmax(a, axes, keepdims=keep)),
        ("biuf", lambda m, a: m.nanargmin(a, axis)),
        ("biuf", lambda m, a: m.nancumsum(a, axis)),
        ("biuf", lambda m, a: m.average(a, axes, keepdims=keep)),
        ("biuf", lambda m, a: m.ptp(a, axes, keepdims=keep)),
        ("biufc", lambda m, a: m.cov(a)),
        ("iuf", lambda m, a: m.histogram(a, edges)[0]),
        ("iuf", lambda m, a: m.histogram(a, 5, (k, 3 * k))[0]),
        ("bu", lambda m, a: m.bincount(a)),
        ("iuf", lambda m, a: m.digitize(a, edges, keep)),
        ("biufc", lambda m, a: m.trace(a, k, axis, 1)),
        ("biufc", lambda m, a: m.kron(a, a[:1])),
        ("biufc", lambda m, a: m.tensordot(a, a, abs(k))),
        ("biufc", lambda m, a: m.einsum(text, a)),
        ("biufc", lambda m, a: m.einsum(text.split("->")[0] + "," + text.split("->")[0], a, a)),
        ("iufc", lambda m, a: m.gradient(a, 2.0, axis=axis, edge_order=order)),
        ("iufc", lambda m, a: m.trapezoid(a, dx=0.5, axis=axis)),
        ("iufc", lambda m, a: m.convolve(a, a[::2], mode)),
        ("iufc", lambda m, a: m.correlate(a, a[1:], mode)),
        ("iufc", lambda m, a: m.ediff1d(a)),
        ("iuf", lambda m, a: m.vander(a, k)),
    ]


def step_function(rng: Random, host: Host, x: gp.GPUArray, said: list[str]) -> Pair:
    """A function of NumPy's that is made of others; values up to rounding, everything else as ever."""
    calls = calls_of(rng, host.shape)
    chosen = int(rng.integers(len(calls)))
    kinds, call = calls[chosen]
    said.append(f"function {chosen} {[cell.cell_contents for cell in call.__closure__ or ()]}")
    if host.dtype.kind not in kinds or host.dtype == np.float16 or not 0 < host.ndim < 5 or not 0 < host.size < 300:
        return host, x
    said_before = len(said)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compare(said, lambda: call(np, host), lambda: call(gp, x), close)
        except AssertionError as error:
            said.insert(said_before, str(error))
            raise
    return host, x


def close(found: gp.GPUArray, expected: Host) -> None:
    """same(), but for roundings: the order of additions is another."""
    assert found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}"
    assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    error = {"float32": 1e-5, "complex64": 1e-5}.get(expected.dtype.name, 1e-11) * float(scale)
    assert np.allclose(found.to_numpy(), expected, 1e-5, error, equal_nan=True), f"{found} instead of {expected}"


STEPS = [step_view, step_get, step_set, step_binary, step_take, step_function]
WEIGHTS = [0.2, 0.25, 0.15, 0.15, 0.1, 0.15]


# ---- parts of expressions ----


def pick(rng: Random, items: list[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


def extents(rng: Random, most: int = 4) -> tuple[int, ...]:
    return tuple(
        int(k)
        for k in rng.choice([0, 1, 2, 3, 4, 5], int(rng.integers(0, most + 1)), p=[0.05, 0.15, 0.2, 0.2, 0.2, 0.2])
    )


def values(rng: Random, shape: tuple[int, ...], dtype: str) -> Host:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in "iu":
        return np.asarray(rng.integers(0, 120, shape) - (60 if kind == "i" else 0)).astype(dtype)
    found = np.asarray(rng.integers(-60, 60, shape) / 4)
    return (found + 1j * found[..., ::-1] if kind == "c" and found.ndim else found).astype(dtype)


def number(rng: Random, dtype: Any) -> Any:
    """A Python number that goes into the type."""
    kinds: list[Any] = [True, int(rng.integers(0, 100))]
    if dtype.kind in "fc":
        kinds.append(float(rng.integers(-50, 50)) / 8)
    if dtype.kind == "c":
        kinds.append(complex(rng.integers(-5, 5), 2))
    return pick(rng, kinds)


def index_key(rng: Random, shape: tuple[int, ...], twice: bool = True) -> tuple[Any, Any]:
    """A key for NumPy and for us: host or device arrays. Without `twice`, index arrays do not repeat an element."""
    items: list[tuple[Any, Any]] = []
    axis = 0
    common = extents(rng, 2)
    dots = rng.random() < 0.25
    while axis < len(shape) and rng.random() < 0.8:
        if rng.random() < 0.12:
            items.append((None, None))
        if dots and rng.random() < 0.4:
            items.append((..., ...))
            dots = False
            axis += int(rng.integers(0, len(shape) - axis + 1))
            continue
        kind = rng.random()
        extent = shape[axis]
        if kind < 0.3:
            bounds = [None if rng.random() < 0.4 else int(rng.integers(-6, 7)) for _ in range(2)]
            item = slice(*bounds, None if rng.random() < 0.4 else pick(rng, [1, 2, -1, -2, 3]))
            items.append((item, item))
        elif kind < 0.5:
            spot = int(rng.integers(-extent, extent)) if extent and rng.random() < 0.97 else int(rng.integers(-7, 7))
            items.append((spot, spot))
        elif kind < 0.85:
            items.append(index_array(rng, extent, common, twice))
        else:
            count = int(rng.integers(0, min(len(shape) - axis, 2) + 1))
            mask = np.asarray(rng.random(shape[axis : axis + count]) < 0.5)
            if rng.random() < 0.03 and count:
                mask = np.ones((*mask.shape[:-1], mask.shape[-1] + 1), bool)
            if not count:
                items.append((bool(mask), bool(mask)))
            else:
                items.append(
                    (mask, gp.from_numpy(mask) if rng.random() < 0.5 else mask.tolist() if mask.size else mask)
                )
            axis += count - 1
        axis += 1
    if rng.random() < 0.02:
        items.extend([(0, 0)] * (len(shape) + 1))
    if len(items) == 1 and rng.random() < 0.5:
        return items[0]
    return tuple(item for item, _ in items), tuple(own for _, own in items)


def index_array(rng: Random, extent: int, common: tuple[int, ...], twice: bool) -> tuple[Any, Any]:
    if not twice:
        found = np.asarray(rng.permutation(extent)[: int(rng.integers(0, extent + 1))])
        found = np.where(rng.random(found.shape) < 0.3, found - extent, found).astype(np.int64)
    else:
        shape = tuple(1 if rng.random() < 0.2 else k for k in common)[int(rng.integers(0, 2)) :]
        low, high = (-extent, extent) if extent and rng.random() < 0.98 else (-7, 7)
        found = np.asarray(rng.integers(low, high, shape))
    if rng.random() < 0.3 and (found >= 0).all():
        found = found.astype(pick(rng, ["int32", "uint8", "int16", "uint64"]))
    where = rng.random()
    if where < 0.4:
        return found, gp.from_numpy(found)
    return found, found.tolist() if where < 0.6 and found.ndim and found.size else found
