"""On the simulator: products of fp8 by mma.sync: right with every scale, a row's bits its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_facts import Facts, having

import pygpukit as gp
from pygpukit.ops.matmul import choose
from pygpukit.ops.matmul.mma import fp8
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.fp8 import Scale

TYPES = ("float8_e4m3", "float8_e5m2")
NO_SCALE = Scale(None, 1, (0, 0))
Values = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _as_on_sm_89(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    monkeypatch.delenv("PYGPUKIT_CHECK")  # tests/sweep has these kernels checked
    monkeypatch.setattr(choose, "is_sim", lambda: False)
    monkeypatch.setattr(fp8, "is_sim", lambda: False)
    monkeypatch.setattr(half, "missing", lambda: "there is no tileiras")
    monkeypatch.setattr(choose.lost, "tell", lambda *_: None)
    facts(sm_count=76, capability=89, shared_bytes=101376)


def eight(dtype: str, *shape: int) -> gp.GPUArray:
    """Fresh normal numbers."""
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)


def scales(*shape: int) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().uniform(0.25, 4, shape).astype(np.float32))


def wide(x: gp.GPUArray) -> Values:
    return x.astype("float64").to_numpy()


def bits(x: gp.GPUArray) -> bytes:
    return x.to_numpy().tobytes()


def close(got: gp.GPUArray, x: Values, y: Values) -> None:
    rounding = {"float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-11}[str(got.dtype)]
    bound = rounding * np.abs(x @ y) + (x.shape[-1] + 8) * 2.0**-24 * (abs(x) @ abs(y))
    assert np.all(np.abs(wide(got) - x @ y) <= bound)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_block_gives_the_same_right_bits(dtype: str) -> None:
    a, b = eight(dtype, 67, 300), eight(dtype, 133, 300)
    wanted: bytes | None = None
    for block in fp8.blocks():
        out = gp.full((67, 133), float("nan"), "float32")
        fp8.product(a, b.T, NO_SCALE, NO_SCALE, out, block)
        close(out, wide(a), wide(b).T)
        wanted = wanted or bits(out)
        assert bits(out) == wanted, block


def test_every_kind_of_scale() -> None:
    m, n, k = 131, 260, 300
    a, b = eight("float8_e4m3", m, k), eight("float8_e4m3", n, k).T
    x, y = wide(a), wide(b)
    one, rows, columns = scales(1), scales(m), scales(n)
    deep, groups, squares = scales(m, 3), scales(2, 3), scales(3, 3)
    by = {1: lambda s: s, 128: lambda s: np.repeat(s, 128, 0)}

    def of_a(s: gp.GPUArray, lines: int) -> Values:
        return x * by[lines](np.repeat(wide(s), 128, 1))[:m, :k]

    of_b = y * np.repeat(np.repeat(wide(squares), 128, 0)[:k], 128, 1)[:, :n]
    cases: list[tuple[Any, Any, Values, Values]] = [
        (2.0, one, 2 * x, wide(one) * y),
        (rows, columns, wide(rows)[:, None] * x, wide(columns) * y),
        (None, columns[::-1], x, wide(columns)[::-1] * y),
        (deep, squares, of_a(deep, 1), of_b),
        (groups, squares.T.clone().T, of_a(groups, 128), of_b),
        (rows, squares, wide(rows)[:, None] * x, of_b),
        (deep, 0.5, of_a(deep, 1), 0.5 * y),
    ]
    for left, right, u, v in cases:
        for result in ("float32", "bfloat16"):
            got = gp.matmul_fp8(a, b, left, right, out_dtype=result, backend="mma")
            close(got, u, v)
    assert gp.ops.matmul_fp8_plan(a, b, deep, squares, backend="mma").kernel is fp8


def test_a_row_has_its_bits_among_any_rows() -> None:
    a, b, left, right = eight("float8_e4m3", 150, 400), eight("float8_e4m3", 40, 400).T, scales(150, 4), scales(4, 1)
    for s, t in ((left, right), (None, None)):
        whole = gp.matmul_fp8(a, b, s, t, backend="mma")
        assert bits(gp.matmul_fp8(a, b, s, t, backend="mma")) == bits(whole)
        for first, last in ((0, 1), (5, 22), (63, 130), (149, 150)):
            part = gp.matmul_fp8(a[first:last], b, None if s is None else s[first:last], t, backend="mma")
            assert bits(part) == bits(whole[first:last].clone())


def test_views_odd_lengths_and_what_lies_beside_the_result() -> None:
    for m, n, k in ((1, 1, 1), (3, 37, 129), (40, 20, 16)):
        a, b = eight("float8_e5m2", 2 * m, k + 3), eight("float8_e5m2", k + 3, n + 1)
        for left, right in ((a[::2, 3:], b[3:, 1:]), (a[:m, ::-1], b[:, ::-1]), (a[m:], b)):
            around = gp.full((m, 2 * right.shape[1] + 1), 7, "float16")
            out = around[:, 1::2]
            gp.matmul_fp8(left, right, out=out, backend="mma")
            close(out, wide(left), wide(right))
            assert np.all(wide(around[:, ::2]) == 7)
        flat = gp.full(m * n + 6, 7, "bfloat16")
        gp.matmul_fp8(a[:m], b[:, :n], out=flat[3:-3].reshape(m, n), backend="mma")
        close(flat[3:-3].reshape(m, n), wide(a[:m]), wide(b[:, :n]))
        assert np.all(wide(flat)[[0, 1, 2, -3, -2, -1]] == 7)


def test_without_tiles_plans_take_it_from_sm_89_on() -> None:
    a = gp.zeros((256, 256), "float8_e4m3")
    plan = gp.ops.matmul_fp8_plan(a, a)
    assert plan.backend == "mma" and plan.kernel is fp8 and "no tileiras" in plan.reason
    with having(shared_bytes=50_000):
        assert fp8.blocks() and all(one.rows <= 64 for one in fp8.blocks())
    with having(capability=86):
        assert gp.ops.matmul_fp8_plan(a, a).backend == "plain"
        with pytest.raises(
            gp.GPUError, match=r"backend='mma': mma.sync takes fp8 from SM 8.9 on; this device is SM 8.6"
        ):
            gp.matmul_fp8(a, a, backend="mma")
    with pytest.raises(gp.GPUError, match=r"backend='mma': tensor cores take operands of one type"):
        gp.matmul_fp8(a, a.astype("bfloat16"), backend="mma")


def test_empty_products() -> None:
    for m, n, k in ((0, 8, 8), (8, 0, 8), (8, 8, 0)):
        got = gp.matmul_fp8(gp.zeros((m, k), "float8_e4m3"), gp.zeros((k, n), "float8_e4m3"), backend="mma")
        assert got.shape == (m, n) and not got.to_numpy().any()


def test_a_number_that_is_none_stays_in_its_row_and_column() -> None:
    a, b = np.random.default_rng().standard_normal((40, 200)).astype(np.float32), eight("float8_e4m3", 200, 50)
    a[3, 150] = np.nan
    got = gp.matmul_fp8(gp.from_numpy(a).astype("float8_e4m3"), b, backend="mma")
    spoiled = np.isnan(got.to_numpy())
    assert spoiled[3].all() and spoiled.sum() == 50
