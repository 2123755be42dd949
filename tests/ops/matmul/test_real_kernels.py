"""On the simulator: large products of float32 and float64 are right, with the bits of strided.cu, in any layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product as product_of
from typing import Any

import numpy as np
import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core import choices
from pygpukit.ops.matmul.cuda_cores import real

TYPES = ("float32", "float64")
ACROSS, ELEMENTS = 1, 2  # how an operand is read: not along k, not by whole 16 bytes


@pytest.fixture(autouse=True)
def _kernels(kernels_on_sim: None, quickly_compiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled without optimisation and checks, which takes the least time: the sweep has these kernels checked."""
    monkeypatch.delenv("PYGPUKIT_CHECK")


@pytest.fixture(params=[80, 90])
def architecture(request: pytest.FixtureRequest, facts: Facts) -> int:
    """On SM 9.0 float64 has tensor cores."""
    found: int = request.param
    facts(capability=found)
    return found


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How every product that real.py made read its operands."""
    found: list[tuple[int, int]] = []
    launch = real.launch

    def noted(a: gp.GPUArray, b: gp.GPUArray, read: tuple[int, int], *rest: Any) -> None:
        found.append(read)
        launch(a, b, read, *rest)

    monkeypatch.setattr(real, "launch", noted)
    return found


def normal(dtype: str, *shape: int) -> gp.GPUArray:
    """Fresh normal numbers."""
    return gp.from_numpy(np.random.default_rng().standard_normal(shape)).astype(dtype)


def by_gemm(product: Callable[[], gp.GPUArray]) -> gp.GPUArray:
    """The product by strided.cu, or fused.cu."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real, "refusal", lambda _: "not for this product")
        choices.forget()
        found = product()
    choices.forget()
    return found


def same(product: Callable[[], gp.GPUArray], close: np.ndarray[Any, Any]) -> None:
    """The product is close to numbers in float64, and has the bits of strided.cu."""
    found, other = product().to_numpy(), by_gemm(product).to_numpy()
    assert found.tobytes() == other.tobytes() and found.shape == close.shape
    np.testing.assert_allclose(found, close, rtol=0, atol=(1e-4 if found.dtype == np.float32 else 1e-12))


def values(x: gp.GPUArray) -> np.ndarray[Any, Any]:
    return x.astype("float64").to_numpy()


@pytest.mark.parametrize("dtype", TYPES)
def test_every_layout_has_the_bits_of_gemm(dtype: str, architecture: int, launched: list[tuple[int, int]]) -> None:
    m, n, k = 36, 40, 132
    rows, columns = normal(dtype, m, k + 3)[:, 3:], normal(dtype, k, n + 3)[:, 3:]
    left = (normal(dtype, m, k), normal(dtype, k, m).T, rows, normal(dtype, k, m + 3)[:, 3:].T)
    right = (normal(dtype, n, k).T, normal(dtype, k, n), normal(dtype, n, k + 3)[:, 3:].T, columns)
    for (read_a, a), (read_b, b) in product_of(enumerate(left), enumerate(right)):
        same(lambda a=a, b=b: gp.matmul(a, b), values(a) @ values(b))  # type: ignore[misc]
        elements = (read_a | read_b) & ELEMENTS
        assert launched[-1] == (read_a | elements, read_b | elements)


@pytest.mark.parametrize("dtype", TYPES)
def test_odd_extents_stacks_and_views(dtype: str, architecture: int, launched: list[tuple[int, int]]) -> None:
    pairs = [
        (normal(dtype, 33, 1), normal(dtype, 1, 35)),
        (normal(dtype, 67, 129), normal(dtype, 129, 1)),
        (normal(dtype, 1, 17), normal(dtype, 17, 65)),
        (normal(dtype, 2, 1, 5, 7), normal(dtype, 3, 7, 9)),
        (normal(dtype, 40, 24)[::-2, 5:], normal(dtype, 3, 19, 24)[..., 1:]),
        (gp.broadcast_to(normal(dtype, 1, 20), (34, 20)), normal(dtype, 20, 12)),
    ]
    for a, b in pairs:
        before = len(launched)
        same(lambda a=a, b=b: gp.matmul(a, b), values(a) @ values(b))  # type: ignore[misc]
        assert len(launched) == before + 1
    a, b = normal(dtype, 34, 40)[:, ::2], normal(dtype, 20, 12)
    same(lambda: gp.matmul(a, b), values(a) @ values(b))
    assert len(launched) == len(pairs), "an operand without a dense axis is for strided.cu"
    poisoned = gp.full((34, 12), float("nan"), dtype)
    gp.matmul(a[:, :0], b[:0], out=poisoned)
    assert not poisoned.to_numpy().any()


def test_sums_end_with_the_zeros_of_gemm() -> None:
    """A product that underflows to -0 becomes 0 where a step is filled up, and stays where it is not."""
    for k in (1, 8, 16, 17, 32):
        a, b = np.zeros((40, k), np.float32), np.zeros((k, 36), np.float32)
        a[:, -1], b[-1] = 1e-30, -1e-30
        x, y = gp.from_numpy(a), gp.from_numpy(b)
        found = gp.matmul(x, y).to_numpy()
        assert found.tobytes() == by_gemm(lambda x=x, y=y: gp.matmul(x, y)).to_numpy().tobytes()  # type: ignore[misc]
        assert bool(np.signbit(found).all()) == (k % 16 == 0) == bool(np.signbit(found).any())


def test_nan_and_infinity_stay_in_their_rows_and_columns() -> None:
    a, b = np.ones((37, 19), np.float32), np.ones((19, 41), np.float32)
    a[3, 18], b[18, 40] = np.inf, np.nan
    found = gp.matmul(gp.from_numpy(a), gp.from_numpy(b)).to_numpy()
    assert np.isinf(found[3, :40]).all() and np.isnan(found[:, 40]).all()
    assert (np.delete(found[:, :40], 3, 0) == 19).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_epilogues_have_the_bits_of_the_fused_kernel(dtype: str, launched: list[tuple[int, int]]) -> None:
    x, w, bias, r = normal(dtype, 2, 19, 23), normal(dtype, 35, 23), normal(dtype, 35), normal(dtype, 2, 19, 35)
    wanted = values(x) @ values(w).T + values(bias)
    same(lambda: gp.linear(x, w, bias, "relu", r), np.maximum(wanted, 0) + values(r))
    same(lambda: gp.linear(x, w, bias, "silu", r[..., ::-1]), wanted / (1 + np.exp(-wanted)) + values(r)[..., ::-1])

    def scaled() -> gp.GPUArray:
        out = r.clone()[..., ::-1]
        return gp.matmul(x, w.T, alpha=0.5, beta=-2.0, out=out)

    same(scaled, 0.5 * (values(x) @ values(w).T) - 2 * values(r)[..., ::-1])
    assert len(launched) == 3


def test_large_ones_that_lie_along_k_are_copied(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "_COPIED_FROM", 36)
    monkeypatch.setattr(real, "_COPIED_DEPTH", 20)
    a, b = normal("float32", 36, 23), normal("float32", 40, 23).T
    for left, right in ((a, b), (a, normal("float32", 23, 40)), (normal("float32", 23, 36).T, b)):
        same(lambda a=left, b=right: gp.matmul(a, b), values(left) @ values(right))  # type: ignore[misc]
    same(lambda: gp.linear(a, b.T, act="relu"), np.maximum(values(a) @ values(b), 0))
    assert launched == 4 * [(ACROSS, ACROSS)]
    for left, right in ((a[:35], b), (a[:, :19], b[:19])):
        gp.matmul(left, right)
        assert launched[-1] != (ACROSS, ACROSS), "few rows, or a short sum"


def test_a_matrix_of_a_whole_stack_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "_COPIED_FROM", 36)
    monkeypatch.setattr(real, "_COPIED_DEPTH", 20)
    one, stack = normal("float32", 36, 23), normal("float32", 2, 3, 23, 40)
    found = real.operands(gp.broadcast_to(one, (2, 3, 36, 23)), stack)
    assert found is not None and found[0].strides[:2] == (0, 0) and found[2] == (ACROSS, ACROSS)
    same(lambda: gp.matmul(one, stack), values(one) @ values(stack))
    rows = gp.broadcast_to(normal("float32", 3, 40, 23), (2, 3, 40, 23)).swapaxes(-1, -2)
    same(lambda: gp.matmul(one, rows), values(one) @ values(rows))


@pytest.fixture
def prepared() -> Iterator[None]:
    native.forget_prepared()
    native.prepare_calls(True)
    yield
    native.prepare_calls(None)
    native.forget_prepared()


def test_calls_are_prepared(prepared: None, launched: list[tuple[int, int]]) -> None:
    a, memory = normal("float32", 40, 24), normal("float32", 24 * 36 + 1)
    for first in (0, 1, 0, 1):  # whole 16 bytes, and not: other kernels
        b = memory[first : first + 24 * 36].reshape(24, 36)
        np.testing.assert_allclose(gp.matmul(a, b).to_numpy(), values(a) @ values(b), atol=1e-4)
    assert launched == [(0, ACROSS), (ELEMENTS, ELEMENTS + ACROSS)]


@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_fit_multiprocessors(dtype: str, architecture: int, facts: Facts) -> None:
    """The block follows from extents and device alone, and small results are cut into more of them."""
    facts(sm_count=132)
    large, small = (real.block(dtype, 1, size, size, 1024, (0, 1)) for size in (8192, 256))
    assert large.tiles(256, 256) < small.tiles(256, 256)
    assert large.tensor == small.tensor == (dtype == "float64" and architecture == 90)
