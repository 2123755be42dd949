"""The kernels for fp4 on the simulator: a row's bits are its own, and NumPy converts to the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops
from pygpukit.ops import host
from pygpukit.ops.matmul.fp4 import block_scaled
from pygpukit.ops.matmul.fp4 import gemv as fp4_gemv


@pytest.fixture(autouse=True)
def _quickly(kernels_on_sim: None, quickly_compiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled without optimisation and checks: the sweep has these kernels checked."""
    monkeypatch.delenv("PYGPUKIT_CHECK")


def normal(*shape: int) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32))


def bits(array: gp.GPUArray) -> bytes:
    return array.to_numpy().tobytes()


def test_a_rows_bits_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row, eight, those of a block and of two, alone and among others; with a w of several k a warp."""
    a, weight = normal(33, 1100).astype("bfloat16"), ops.quantize_nvfp4(normal(5, 1100))
    whole = gp.matmul_fp4(a, weight, out_dtype="float32")
    for rows in (1, 8, 9):
        assert bits(gp.matmul_fp4(a[-rows:], weight, out_dtype="float32")) == bits(whole[-rows:]), rows
    assert ops.matmul_fp4_plan(a, weight).backend == "few"
    assert ops.matmul_fp4_plan(gp.zeros((385, 1100), "bfloat16"), weight, invariant=False).backend == "decoded"
    monkeypatch.setattr(fp4_gemv, "MAX_ROWS", 3)
    assert ops.matmul_fp4_plan(a, weight).backend == "decoded"


def test_numpy_converts_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(9, 70) * gp.exp(normal(9, 1) * 5)
    x[3, 3] = float("inf")
    found = [ops.quantize_nvfp4(x), ops.quantize_mxfp4(x)]
    numbers = [ops.dequantize_fp4(one, "float16") for one in found]
    with monkeypatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        by_numpy = [ops.quantize_nvfp4(x), ops.quantize_mxfp4(x)]
        numbers_by_numpy = [ops.dequantize_fp4(one, "float16") for one in by_numpy]
    for one, other in zip(found, by_numpy, strict=True):
        assert [bits(part) for part in one if part is not None] == [bits(part) for part in other if part is not None]
    for number, by_numpy_number in zip(numbers, numbers_by_numpy, strict=True):
        values, expected = number.to_numpy(), by_numpy_number.to_numpy()
        np.testing.assert_array_equal(values, expected)  # NaN where NumPy has one: a device has one NaN, NumPy many
        np.testing.assert_array_equal(np.signbit(values[expected == 0]), np.signbit(expected[expected == 0]))


def test_two_operands_where_no_tensor_cores_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel for the decoded left operand: the product of the numbers, a row's bits its own."""
    monkeypatch.setattr(block_scaled, "is_sim", lambda: False)
    a, w = normal(5, 100), normal(9, 100)
    for x, y in (
        (ops.quantize_nvfp4(a, 0.3), ops.quantize_nvfp4(w)),
        (ops.quantize_mxfp4(a), ops.quantize_mxfp4(w)),
    ):
        assert ops.matmul_fp4_plan(x, y).backend == "numbers"
        exact = [ops.dequantize_fp4(one, "float32").to_numpy().astype(np.float64) for one in (x, y)]
        whole = gp.matmul_fp4(x, y)
        np.testing.assert_allclose(whole.to_numpy(), exact[0] @ exact[1].T, rtol=1e-5, atol=1e-4)
        alone = ops.Fp4Matrix(x.codes[2:3], x.scales[2:3], x.scale)
        assert bits(gp.matmul_fp4(alone, y)) == bits(whole[2:3])
