"""Element-wise functions made of others, against NumPy's of the same names; on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from tests.support.backends import WITHOUT_KERNELS

INF, NAN = np.inf, np.nan
EDGES = np.array([0.0, -0.0, 0.5, -1.5, 2.5, 7.0, -7.0, 1e-300, -1e300, INF, -INF, NAN])
OTHERS = np.array([3.0, -2.0, 0.0, 2.5, INF, -INF, NAN, 1.0, 3e-308, INF, -INF, 2.0])
WHOLE, PARTS = np.array([-7, 7, 0, -128, 127, 1], np.int8), np.array([3, -3, 5, -1, -128, 0], np.int8)

CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray[Any, Any], ...]]] = {
    "rint": (lambda m, a: m.rint(a), (EDGES,)),
    "rint of integers": (lambda m, a: m.rint(a), (WHOLE,)),
    "fix": (lambda m, a: m.fix(a), (EDGES,)),
    "fabs": (lambda m, a: m.fabs(a), (WHOLE,)),
    "degrees": (lambda m, a: m.degrees(a), (EDGES,)),
    "radians": (lambda m, a: m.radians(a), (WHOLE,)),
    "cbrt": (lambda m, a: m.cbrt(a), (EDGES,)),
    "cbrt of float32": (lambda m, a: m.cbrt(a), (EDGES[:8].astype(np.float32),)),
    "fmod": (lambda m, a, b: m.fmod(a, b), (EDGES, OTHERS)),
    "fmod of integers": (lambda m, a, b: m.fmod(a, b), (WHOLE, PARTS)),
    "fmod by a number": (lambda m, a: m.fmod(a, -3), (WHOLE,)),
    "fmod of uint8": (lambda m, a: m.fmod(a, 3), (np.array([7, 255], np.uint8),)),
    "divmod": (lambda m, a, b: m.divmod(a, b), (EDGES, OTHERS)),
    "modf": (lambda m, a: m.modf(a), (EDGES,)),
    "float_power": (lambda m, a: m.float_power(a, -2), (PARTS[:5],)),
    "heaviside": (lambda m, a: m.heaviside(a, 0.25), (EDGES,)),
    "logaddexp2": (lambda m, a, b: m.logaddexp2(a, b), (EDGES, OTHERS)),
    "sinc": (lambda m, a: m.sinc(a), (EDGES[:7],)),
    "nan_to_num": (lambda m, a: m.nan_to_num(a), (EDGES,)),
    "nan_to_num by parts": (
        lambda m, a: m.nan_to_num(a, nan=5, neginf=-9),
        (np.array([complex(NAN, INF), complex(-INF, 2), 1]),),
    ),
    "isposinf": (lambda m, a: m.isposinf(a), (EDGES,)),
    "isneginf": (lambda m, a: m.isneginf(a), (EDGES,)),
    "isreal": (lambda m, a: m.isreal(a), (np.array([1j, 2, 0]),)),
    "iscomplex": (lambda m, a: m.iscomplex(a), (WHOLE,)),
}


def check(ours: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(ours, expected, strict=True):
            check(one, other)
        return
    values = ours.to_numpy()
    assert values.dtype == expected.dtype and values.shape == expected.shape
    epsilon = np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(values, expected, rtol=4 * epsilon, atol=0)
    if expected.dtype.kind == "f":
        zeros = (expected == 0) & (values == 0)
        np.testing.assert_array_equal(np.signbit(values[zeros]), np.signbit(expected[zeros]))


@WITHOUT_KERNELS
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_numpy(operation_backend: str, name: str) -> None:
    call, arrays = CALLS[name]
    check(call(gp, *map(gp.from_numpy, arrays)), call(np, *arrays))


@WITHOUT_KERNELS
def test_keywords_and_comparisons(operation_backend: str) -> None:
    a, out = gp.array([1.5, -2.5, 7.5]), gp.full(3, 9, "float64")
    assert gp.fmod(a, 2, out=out, where=gp.array([True, False, True])) is out
    assert out.tolist() == [1.5, 9.0, 1.5]
    assert gp.nan_to_num(a, copy=False) is a
    nan = gp.array([1.0, NAN])
    assert gp.array_equal(a, a) and not gp.array_equal(a, a[:2]) and not gp.array_equal(nan, nan)
    assert gp.array_equal(nan, nan, equal_nan=True)
    assert gp.array_equiv(a, gp.stack([a, a])) and not gp.array_equiv(a[:2], gp.stack([a, a]))
    with pytest.raises(gp.DTypeError, match=r"fabs.*complex128.*\.real"):
        gp.fabs(gp.array([1j]))
