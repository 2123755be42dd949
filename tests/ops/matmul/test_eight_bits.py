"""The documented names for products with 8-bit floats, beside float64; their aliases, and what they refuse."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit import ops

pytestmark = pytest.mark.usefixtures("operation_backend")
Values = np.ndarray[Any, Any]


def normal(dtype: str, *shape: int) -> tuple[gp.GPUArray, Values]:
    """Fresh normal numbers, and what they are in float64."""
    made = gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)
    return made, made.astype("float64").to_numpy()


def scales(*shape: int) -> tuple[gp.GPUArray, Values]:
    found = np.random.default_rng().uniform(0.5, 2, shape).astype(np.float32)
    return gp.from_numpy(found), found.astype(np.float64)


def spread(scale: Values, n: int, k: int) -> Values:
    """Scales of blocks, one for each number."""
    return scale.repeat(128, -2)[..., :n, :].repeat(128, -1)[..., :k]


def near(found: gp.GPUArray, wanted: Values, relative: float) -> None:
    assert found.shape == wanted.shape
    largest = np.abs(wanted).max(initial=0.0)
    np.testing.assert_allclose(found.astype("float64").to_numpy(), wanted, rtol=0, atol=relative * largest)


def test_rows_of_experts() -> None:
    experts, n, k = 3, 200, 300
    a, x = normal("bfloat16", 11, k)
    weight, w = normal("float8_e4m3", experts, n, k)
    scale, s = scales(experts, 2, 3)
    ids = np.array([2, 0, 1, 1, -1, 2, 3, 0, 0, 1, 2])
    full = w * spread(s, n, k)
    wanted = np.stack([full[i] @ row if 0 <= i < experts else np.zeros(n) for i, row in zip(ids, x, strict=True)])
    for dtype, given in (("int32", weight), ("int64", weight.view("uint8"))):
        out = gp.full((11, n), float("nan"), "float32").astype("bfloat16")
        which = gp.from_numpy(ids.astype(dtype))
        assert ops.grouped_gemm_fp8_bf16(a, given, scale, which, out=out) is out
        near(out, wanted, 2**-7)
        near(ops.grouped_gemm_fp8_bf16(a, given, scale, which), wanted, 2**-7)
    none = gp.from_numpy(np.full(11, -1, np.int32))
    assert not ops.grouped_gemm_fp8_bf16(a, weight, scale, none).astype("float32").to_numpy().any()
    assert ops.grouped_gemm_fp8_bf16(a[:0], weight, scale, none[:0]).shape == (0, n)
    with pytest.raises(gp.ShapeError, match=r"row_expert_ids \(3,\); they are \(m, k\)"):
        ops.grouped_gemm_fp8_bf16(a, weight, scale, none[:3])
    with pytest.raises(gp.DTypeError, match="row_expert_ids float32"):
        ops.grouped_gemm_fp8_bf16(a, weight, scale, gp.zeros(11))
    with pytest.raises(gp.DTypeError, match="the weight is int8"):
        ops.grouped_gemm_fp8_bf16(a, weight.view("int8"), scale, none)


def test_products_of_one_row_and_of_weights() -> None:
    (a, x), (weight, w) = normal("bfloat16", 5, 300), normal("float8_e4m3", 300, 200)
    scale, s = scales(3, 2)
    near(ops.w8a16_gemm_sm120(a, weight.view("uint8"), scale), x @ (w * spread(s, 300, 200)), 2**-7)
    with pytest.raises(gp.DTypeError, match="w8a16_gemm_sm120: a is float32"):
        ops.w8a16_gemm_sm120(a.astype("float32"), weight, scale)
    other, y = normal("bfloat16", 7, 300)
    out = gp.zeros(7, "bfloat16")
    assert ops.gemv_bf16(a[1], other, out=out) is out
    near(out, y @ x[1], 2**-7)
    with pytest.raises(gp.DTypeError, match=r"gemv_bf16: a is bfloat16 of shape \(5, 300\); it is bfloat16 \(k,\)"):
        ops.gemv_bf16(a, other)


def test_products_of_float32_in_eight_bits(facts: Facts) -> None:
    (a, x), (b, y) = normal("float32", 33, 300), normal("float32", 300, 17)
    if ops.fp8_sm90_available():
        found = ops.matmul_fp8_sm90(a * 1e-3, b)
        assert found.dtype == "float32"
        near(found, 1e-3 * x @ y, 0.1)
        assert not ops.matmul_fp8_sm90(gp.zeros((3, 4)), gp.ones((4, 2))).to_numpy().any()
        assert ops.matmul_fp8_sm90(a[:0], b).shape == (0, 17)
    with pytest.raises(gp.ShapeError, match=r"a has shape \(33, 300\) and b \(33, 300\)"):
        ops.matmul_fp8_sm90(a, a)
    with pytest.raises(gp.DTypeError, match="matmul_fp8_sm90: b is float64"):
        ops.matmul_fp8_sm90(a, b.astype("float64"))
    facts(capability=120)
    assert not ops.fp8_sm90_available()
    with pytest.raises(gp.GPUError, match=r"matmul_fp8_sm90: .* SM 9.0; this device is SM 12.0"):
        ops.matmul_fp8_sm90(a, b)


def test_sizes_and_tables() -> None:
    assert ops.fp8_get_sizes(300, 200) == (3, 2, 24)
    assert ops.fp8_fp8_get_scale_sizes(5, 200, 300) == (15, 6)
    assert ops.fp8_get_sizes(0, 200) == (0, 2, 0)
    for bad in (-1, 2.5, "3"):
        with pytest.raises(ValueError, match=re.escape(f"K={bad!r}")):
            ops.fp8_get_sizes(bad, 200)  # type: ignore[arg-type]
    for name in ("fp8_init_lut", "grouped_gemm_init_lut", "w8a16_gemm_init_lut", "gemm_w8a16_init_lut"):
        getattr(ops, name)()


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("gemm_fp8_available", "fp8_available"),
        ("gemm_fp8_f32_sm90", "matmul_fp8_sm90"),
        ("gemm_fp8_f32_sm90_available", "fp8_sm90_available"),
        ("gemm_fp8_f32_sm100", "matmul_fp8_sm100"),
        ("gemm_fp8_f32_sm100_available", "fp8_sm100_available"),
        ("gemm_fp8_f32_sm120", "matmul_fp8_sm120"),
        ("gemm_fp8_f32_sm120_available", "fp8_sm120_available"),
        ("gemm_fp8_fp8_blockwise_sm120", "matmul_fp8_fp8_blockwise_sm120"),
        ("gemm_fp8_fp8_get_scale_sizes", "fp8_fp8_get_scale_sizes"),
        ("gemm_fp8_fp8_sm120", "matmul_fp8_fp8_sm120"),
        ("gemm_fp8_fp8_sm120_available", "fp8_fp8_sm120_available"),
        ("gemm_w8a16_bf16_sm120", "w8a16_gemm_sm120"),
        ("gemv_bf16_bf16_sm120", "gemv_bf16"),
        ("gemv_fp8_bf16_sm120", "gemv_fp8_bf16"),
        ("gemv_fp8_bf16_batched_sm120", "gemv_fp8_bf16_batched"),
        ("grouped_gemm_fp8_bf16_sm120", "grouped_gemm_fp8_bf16"),
    ],
)
def test_a_name_has_its_other_form(alias: str, name: str) -> None:
    assert getattr(ops, alias) is getattr(ops, name)
