"""@gp.fuse: the fused result has the bits of the unfused one, in one launch; what cannot be fused is said by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.ops.fusion import Fused

pytestmark = pytest.mark.usefixtures("backend_name")


def fresh(shape: tuple[int, ...], dtype: str) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32) * 3).astype(dtype)


def bits(found: Any) -> list[tuple[Any, ...]]:
    arrays = found if isinstance(found, tuple) else (found,)
    return [(one.shape, one.dtype.name, one.to_numpy().tobytes()) for one in arrays]


def same(function: Callable[..., Any], *args: Any, **kwargs: Any) -> gp.GPUArray:
    fused = gp.fuse(function)
    expected = bits(function(*args, **kwargs))
    assert bits(fused(*args, **kwargs)) == expected
    assert bits(fused(*args, **kwargs)) == expected, "the second call, from the first one's trace"
    return fused


def many_steps(x: Any, y: Any, s: float) -> Any:
    z = gp.tanh(x * s + y) - y * y
    return gp.where(z > 0, gp.exp(-abs(z)), z / (1 + s)), z**2 + 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int8"])
def test_bits_of_the_unfused_expression(dtype: str) -> None:
    x, y = fresh((33, 17), dtype), fresh((33, 17), dtype)
    same(many_steps, x, y, 2 if dtype.startswith("int") else 0.3)


LAYOUTS = [
    (np.s_[:], np.s_[:]), (np.s_[::-1, ::2], np.s_[:, ::2]), (np.s_[:, 1:], np.s_[:1, 1:]), (np.s_[:], np.s_[0, 0]),
    (np.s_[:0], np.s_[0]), (np.s_[2, 3], np.s_[3, 2]), (np.s_[:, :1], np.s_[:1]),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), LAYOUTS, ids=str)
def test_layouts_and_broadcasting(left: Any, right: Any) -> None:
    x, y = fresh((9, 12), "float32"), fresh((9, 12), "float32")
    same(lambda a, b: gp.maximum(a, b) * a - b, x[left], y[right])


def test_types_mix_as_unfused() -> None:
    x, n, z = fresh((40,), "float16"), gp.arange(40), fresh((40,), "complex64")
    same(lambda x, n: (x + n, n // 3 % 5, (n & 6) << 1, x > n), x, n)
    same(lambda x, z: z * x + 1j, x, z)
    same(lambda n: gp.sqrt(n.astype("float32")).astype("int16"), n)
    same(lambda n: gp.logical_and(n > 3, ~(n == 7)), n)
    same(lambda x: gp.clamp(gp.relu(x), 0.5, 2), x)
    same(lambda x: gp.gelu(x, approximate="tanh") + gp.sigmoid(x) * gp.gelu(x), fresh((1027,), "bfloat16"))


def test_one_launch_and_only_results_are_allocated() -> None:
    x, y = fresh((64, 64), "float32"), fresh((64, 64), "float32")
    fused = gp.fuse(many_steps)
    fused(x, y, 0.5)
    gp.synchronize()

    def counts() -> tuple[int, int]:
        counted = _core.counters()
        return counted["launches"] + counted["host_launches"], _core.pool_stats().allocation_count

    before = counts()
    results = fused(x, y, 0.5)
    assert (counts()[0] - before[0], counts()[1] - before[1]) == (1, 2)
    assert len(results) == 2


class Settings:
    gain = 2.0


settings = Settings()
table = [1.0, 2.0]
threshold = 0.5
transform = gp.exp


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (lambda x: x * threshold, lambda: globals().update(threshold=3.0)),
        (lambda x: x * settings.gain, lambda: setattr(settings, "gain", 4.0)),
        (lambda x: x + table[1] * 2, lambda: table.__setitem__(1, 7.0)),
        (lambda x: transform(x), lambda: globals().update(transform=gp.tanh)),
        (lambda x: gp.exp(x) if settings.gain > 2 else gp.sin(x), lambda: setattr(settings, "gain", 4.0)),
        (lambda x: sum((x * one for one in table[1:]), x), lambda: table.append(2.5)),
    ],
)
def test_what_lies_outside_counts_as_it_is_at_each_call(
    function: Any, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "settings", Settings())
    monkeypatch.setitem(globals(), "table", [1.0, 2.0])
    for name in ("threshold", "transform"):
        monkeypatch.setitem(globals(), name, globals()[name])
    x = fresh((65,), "float32")
    fused = gp.fuse(function)
    before = bits(fused(x))
    assert before == bits(function(x))
    change()
    assert bits(fused(x)) == bits(function(x)) != before


def test_a_variable_of_the_enclosing_function_and_an_argument_s_attribute_may_change() -> None:
    factor = 2.0
    own = Settings()
    x = fresh((33,), "float32")
    fused = gp.fuse(lambda x: x * factor)
    by_argument = gp.fuse(lambda x, given: x * given.gain)
    assert bits(fused(x)) == bits(x * 2.0) == bits(by_argument(x, own))
    factor = own.gain = 5.0
    assert bits(fused(x)) == bits(x * 5.0) == bits(by_argument(x, own))


def test_numbers_change_without_another_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[int] = []
    whole = Fused._traced
    monkeypatch.setattr(Fused, "_traced", lambda self, *given: traced.append(1) or whole(self, *given))

    @gp.fuse
    def scaled(x: Any, factor: float, offset: float = 1.0) -> Any:
        """Documented."""
        return x * (2 * factor - offset) + offset

    x = fresh((100,), "float32")
    for factor in (0.5, 1.5, -2.0):
        found = scaled(x, offset=3.0, factor=factor)
        assert bits(found) == bits(x * (2 * factor - 3.0) + 3.0)
    assert len(traced) == 1
    scaled(x, 2)  # an int promotes otherwise in arrays of integers
    assert len(traced) == 2
    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Documented."
    assert 'extern "C" __global__' in scaled.source
    assert "pk::Multiply::apply<float>" in scaled.source


def test_an_exponent_is_settled_by_its_value() -> None:
    fused = gp.fuse(lambda x, n: x**n)
    x = fresh((50,), "float32")
    for exponent in (2, 3, 2, 0.5):
        assert bits(fused(x, exponent)) == bits(x**exponent)
    with pytest.raises(ValueError, match="negative power"):
        fused(gp.arange(3), -1)


def _branch(x: Any) -> Any:
    return x if x.item() else -x


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x, s: x if x > 0 else -x, "branches on an array.*gp.where"),
    (lambda x, s: x if s > 0 else -x, "branches on a number"),
    (lambda x, s: x * float(x), "takes a number out of an array"),
    (lambda x, s: x[0], "indexes an array"),
    (lambda x, s: gp.add(x, s, out=x), "writes to an array"),
    (lambda x, s: x + gp.ones(3), "no argument of"),
    (lambda x, s: s, "must return arrays"),
    (lambda x, s: (), "must return arrays"),
    (lambda x, s: list(x), "iterates over"),
    (lambda x, s: x.to_numpy(), "copies an array to the host"),
    (lambda x, s: x.copy_to_somewhere(), "copy_to_somewhere"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_fused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises((gp.FuseError, AttributeError), match=message):
        gp.fuse(function)(gp.ones(3), 2.0)


def test_other_refusals() -> None:
    with pytest.raises(gp.DTypeError, match="whole arrays and cannot be fused"):
        gp.fuse(lambda x: gp.real(x))(gp.ones(3))
    with pytest.raises(gp.FuseError, match="at least one GPUArray"):
        gp.fuse(lambda x: x + 1)(2)
    with pytest.raises(gp.FuseError, match="not called yet"):
        _ = gp.fuse(lambda x: x + 1).source
    with pytest.raises(gp.ShapeError, match="do not broadcast"):
        gp.fuse(lambda x, y: x + y)(gp.ones(3), gp.ones(4))
    with pytest.raises(gp.ShapeError, match="one kernel walks one shape"):
        gp.fuse(lambda x, y: (x + 1, x + y))(gp.ones(3), gp.ones((2, 3)))
    with pytest.raises(gp.DTypeError, match="not defined for float32"):
        gp.fuse(lambda x: x & 1)(gp.ones(3))
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        gp.fuse(lambda x, n: x + n)(gp.ones(3, "int8"), 300)
