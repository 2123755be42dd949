"""On the simulator a row has the same bits from the kernels for few rows and from those for many, in every family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit.ops.matmul import choose, fp8
from pygpukit.ops.matmul.cuda_cores import gemv
from pygpukit.ops.matmul.tile import fp8_weight, half
from pygpukit.ops.matmul.tile import gemv as tile_gemv
from pygpukit.ops.matmul.tile.tiling import tiles

ROWS = (1, 3, 8, 17, 64, 65, 200)


@pytest.fixture(autouse=True)
def _kernels(kernels_on_sim: None, quickly_compiled: None, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    """Compiled without optimisation and checks, which takes the least time: the sweep has these kernels checked."""
    monkeypatch.delenv("PYGPUKIT_CHECK")
    monkeypatch.setattr(choose, "is_sim", lambda: False)
    facts(sm_count=132)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType, str], list[Any]]:
    """Of a function of a module: the first argument of every call."""

    def noted(module: ModuleType, name: str) -> list[Any]:
        calls: list[Any] = []
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: (calls.append(given[0]), function(*given))[1])
        return calls

    return noted


def normal(dtype: str, *shape: int) -> gp.GPUArray:
    """Fresh normal numbers."""
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)


def same_bits(product: Callable[[gp.GPUArray], gp.GPUArray], rows: gp.GPUArray) -> None:
    """The last rows, alone and as many as ROWS says, have the bits that they have among all."""
    whole = product(rows).to_numpy()
    assert len(np.unique(whole, axis=0)) == len(whole) == max(ROWS)
    for m in ROWS:
        found = product(rows[len(rows) - m :]).to_numpy()
        assert found.shape == whole[-m:].shape and found.tobytes() == whole[-m:].tobytes(), m


@pytest.mark.parametrize("along_k", [False, True])
def test_on_cuda_cores(along_k: bool, seen: Callable[[ModuleType, str], list[Any]]) -> None:
    calls = seen(gemv, "launch")
    x, w = normal("float32", 200, 260), normal("float32", 34, 260) if along_k else normal("float32", 260, 34).T
    bias = normal("float32", 34)
    same_bits(lambda rows: gp.linear(rows, w, bias, "silu"), x)
    assert [len(rows) for rows in calls] == [m for m in ROWS if m <= 16]
    columns = gp.matmul(w, x[:5].T).to_numpy()  # few columns: the operands change places
    assert calls[-1].shape == (5, 260)
    assert np.ascontiguousarray(columns.T).tobytes() == gp.matmul(x[:5], w.T).to_numpy().tobytes()


def test_of_half_precision(seen: Callable[[ModuleType, str], list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    every = replace(tile_gemv.block(), up_to_rows=64)
    (other,) = (one for one in tiles("half") if (one.rows, one.columns) == (64, 64))
    monkeypatch.setattr(tile_gemv, "block", lambda: every)
    monkeypatch.setattr(half, "fastest", lambda *_: other)
    calls = seen(tile_gemv, "product")
    x, w = normal("bfloat16", 200, 152), normal("bfloat16", 40, 152).T
    same_bits(lambda rows: gp.matmul(rows, w), x)
    assert [len(rows.array) for rows in calls] == [m for m in ROWS if m <= 64]
    assert gp.matmul_plan(x[:64], w).tile == every and gp.matmul_plan(x[:65], w).tile == other


def test_with_fp8_weights(seen: Callable[[ModuleType, str], list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fp8_weight, "_TILES", fp8_weight._TILES[:2])  # a third takes a second to compile
    calls = seen(fp8_weight, "product")
    x, w = normal("bfloat16", 200, 144), normal("float8_e4m3", 34, 144)
    scales = gp.from_numpy(np.random.default_rng().uniform(0.5, 2, (1, 2)).astype(np.float32))
    same_bits(lambda rows: gp.ops.gemv_fp8_bf16_batched(rows, w, scales), x)
    assert len(calls) == len(ROWS) + 1


@pytest.mark.parametrize("n", [1, 2, 128, 129])
def test_blocks_of_any_number_of_columns_are_for_tensor_cores(n: int) -> None:
    x, w, scales = normal("bfloat16", 3, 300), normal("float8_e4m3", n, 300), gp.ones((3, -(-n // 128)))
    left, right = fp8._checked("matmul_fp8", x, w.T, None, scales)
    assert right.lines == 128 and fp8_weight.unscalable(x, w.T, left, right) == ""
