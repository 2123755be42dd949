"""Plain operands go straight to the kernel an operation has learnt; all others take the way with every check."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.kernels import launcher
from pygpukit.ops import elementwise, host
from pygpukit.ops.elementwise import operations, pointwise


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The operations that went the way with every check, which learns; kernels run on the simulator, unchecked."""
    calls: list[str] = []
    monkeypatch.setattr(launcher, "_kernels", {})
    for op in (operations.ADD, operations.SUB, operations.NEG, operations.EQ):
        object.__setattr__(op, "plain", native.DenseCall(op.operands))
    check = pointwise._launch_dense

    def noted(op: operations.Op, form: int, expression: str, *args: object) -> None:
        calls.append(op.name)
        check(op, form, expression, *args)

    monkeypatch.setattr(pointwise, "_launch_dense", noted)
    with host.built_in_kernels():
        yield calls
    for op in (operations.ADD, operations.SUB, operations.NEG, operations.EQ):
        object.__setattr__(op, "plain", native.DenseCall(op.operands))  # kernels of this test stay its own


A = np.random.default_rng().standard_normal(1003, np.float32)


def test_the_second_call_is_plain_and_gives_the_same(slow: list[str]) -> None:
    x, z = gp.from_numpy(A), gp.empty(A.shape)
    for _ in range(3):
        z.fill(np.nan)
        assert gp.add(x, x, out=z) is z
        np.testing.assert_array_equal(z.to_numpy(), A + A)
        np.testing.assert_array_equal((x - x).to_numpy(), A - A)
        np.testing.assert_array_equal((x - 2.5).to_numpy(), A - np.float32(2.5))
        np.testing.assert_array_equal((2 - x).to_numpy(), 2 - A)
        np.testing.assert_array_equal((-x).to_numpy(), -A)
        np.testing.assert_array_equal((x == x).to_numpy(), A == A)
        assert (x == x).dtype == "bool"
    assert sorted(slow) == ["add", "eq", "neg", "sub", "sub", "sub"], "once for each form"


def test_shapes_stay_and_in_place_work_is_plain(slow: list[str]) -> None:
    x = gp.from_numpy(A[:1000].reshape(10, 100))
    y = x + x
    del slow[:]
    assert (x + x).shape == (10, 100)
    y += x
    np.testing.assert_array_equal(y.to_numpy(), A[:1000].reshape(10, 100) * np.float32(3))
    assert slow == []


def test_a_threads_first_call_may_be_a_plain_one(slow: list[str]) -> None:
    x = gp.from_numpy(A)
    x + x
    del slow[:]
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(lambda: x + x).result()
    np.testing.assert_array_equal(found.to_numpy(), A + A)
    assert slow == []


def test_what_is_not_plain_is_declined() -> None:
    x = gp.from_numpy(A)
    x + x
    x + 1.0
    plain = operations.ADD.plain
    assert plain is not None
    assert plain(x, x, None) is not None
    strided, other, half = x[::2], gp.ones(7), gp.ones(A.shape, "float16")
    empty = gp.empty(0)
    for operands in (
        (strided, strided, None),  # not dense
        (x, other, None),  # broadcast, or an error
        (x, half, None),  # promoted
        (half, half, None),  # no kernel learnt
        (empty, empty, None),
        (x, x, half),  # another type of output
        (x, x, other),
        (x, x, strided),
        (x[1:], x[1:], x[:-1]),  # overlaps
        (x, True, None),
        (x, 1j, None),
        (x, 10**30, None),
        (x, "1", None),
        (1.0, 2.0, None),
        (1.0, x, None),  # no kernel learnt for a number on the left
        (x, np.ones(A.shape, np.float32), None),
    ):
        assert plain(*operands) is None, operands


def test_errors_are_those_of_the_operation() -> None:
    x = gp.from_numpy(A)
    x + x
    with pytest.raises(gp.ShapeError, match="add"):
        x + gp.ones(7)
    with pytest.raises(gp.DTypeError, match="add"):
        elementwise.add(x, "1")  # type: ignore[arg-type]


def test_a_captured_stream_keeps_the_launch() -> None:
    x, z, stream = gp.from_numpy(A), gp.zeros(A.shape), gp.Stream()
    gp.add(x, x, out=z)
    z.fill(0.0)
    gp.synchronize()
    with stream.capture() as graph:
        gp.add(x, x, out=z)
    assert not z.to_numpy().any(), "nothing has run"
    graph.launch()
    np.testing.assert_array_equal(z.to_numpy(), A + A)


def test_records_name_the_kernel_and_the_plan_is_checked() -> None:
    x = gp.from_numpy(A)
    x + x
    with pytest.raises(TypeError, match="takes 2 operands"):
        operations.ADD.plain(x, x)  # type: ignore[misc]
    with pytest.raises(TypeError, match="kernel must be a Kernel"):
        operations.ADD.plain.learn(0, x.dtype_code, None, x.dtype_code, 4)  # type: ignore[union-attr, arg-type]
    with pytest.raises(ValueError, match="out of range"):
        operations.ADD.plain.learn(9, 0, None, 0, 4)  # type: ignore[union-attr, arg-type]
    with pytest.raises(ValueError, match="1 to 3 operands"):
        native.DenseCall(4)
