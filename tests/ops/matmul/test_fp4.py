"""fp4 with scales of blocks against its definition; products with it against float64; what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from device_facts import Facts
from fp4_reference import NUMBERS, SCALES, numbers_of, packed, quantised

import pygpukit as gp
from pygpukit import ops
from pygpukit.ops.matmul.fp4 import block_scaled

pytestmark = pytest.mark.usefixtures("backend_name")
Values = np.ndarray[Any, Any]


def normal(*shape: int, dtype: str = "float32") -> tuple[gp.GPUArray, Values]:
    """Fresh normal numbers: on the device, and as they are there in float32."""
    array = gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)
    return array, array.astype("float32").to_numpy()


def near(found: gp.GPUArray, wanted: Values, error: float) -> None:
    values = found.astype("float64").to_numpy()
    assert values.shape == wanted.shape
    assert np.abs(values - wanted).max(initial=0) <= error * np.abs(wanted).max(initial=0)


def decoded(matrix: Any) -> Values:
    return ops.dequantize_fp4(matrix).to_numpy().astype(np.float64)


def test_every_code_and_every_middle() -> None:
    """A block whose scale is 1: each number, each middle between two, and their neighbours, with both signs."""
    middles = (NUMBERS[1:] + NUMBERS[:-1]) / 2
    values = np.concatenate([NUMBERS, middles, *(np.nextafter(middles, side, dtype=np.float32) for side in (0, 9))])
    lines = np.zeros((2 * len(values), 32), np.float32)
    lines[:, 0], lines[:, 16], lines[:, 17] = 6, 6, np.concatenate([values, -values])
    lines[:, 1] = lines[:, 17]
    want, _, _ = quantised(lines, 16, False, 1.0)
    codes, scales, scale = ops.quantize_nvfp4(gp.from_numpy(lines), 1.0)
    assert scale == 1.0 and codes.dtype == "uint8" and scales.dtype == "float8_e4m3"
    assert (scales.astype("float32").to_numpy() == 1).all()
    np.testing.assert_array_equal(codes.to_numpy(), packed(want))
    assert set(want.ravel()) == set(range(16))
    tie = dict(zip(middles.tolist(), (0, 2, 2, 4, 4, 6, 6), strict=True))
    assert {value: int(want[len(NUMBERS) + i, 17]) for i, value in enumerate(middles.tolist())} == tie
    codes, scales, scale = ops.quantize_mxfp4(gp.from_numpy(lines))
    assert scale is None and (scales.to_numpy() == 127).all()
    np.testing.assert_array_equal(codes.to_numpy(), packed(want))
    every = gp.from_numpy(np.arange(256, dtype=np.uint8).reshape(16, 16))
    exponents = gp.from_numpy(np.full((16, 1), 128, np.uint8))
    both = np.arange(256)[:, None] >> np.array([0, 4]) & 15
    numbers = np.where(both & 8, -2, 2) * NUMBERS[both & 7]
    np.testing.assert_array_equal(decoded((every, exponents)), numbers.reshape(16, 32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_conversion_is_that_of_the_definition(dtype: str) -> None:
    array, _ = normal(7, 77, dtype=dtype)
    array = gp.concatenate([array, array * 2.0**-9, gp.zeros((1, 77), dtype)])
    array[2, 40], array[3, 76] = float("nan"), float("-inf")
    for given in (array, array.T.clone().T, array[::-2, 3:]):
        x = given.astype("float32").to_numpy()
        for made, parts in [
            (ops.quantize_nvfp4(given), quantised(x, 16, False)),
            (ops.quantize_nvfp4(given, 0.01), quantised(x, 16, False, 0.01)),
            (ops.quantize_nvfp4(given, gp.full((1,), 0.01, "float32")), quantised(x, 16, False, 0.01)),
            (ops.quantize_mxfp4(given), quantised(x, 32, True)),
        ]:
            np.testing.assert_array_equal(made.codes.to_numpy(), packed(parts[0]))
            wanted = numbers_of(*parts)
            assert np.isnan(wanted).any() or given.shape[0] < 7
            np.testing.assert_allclose(decoded(made), wanted, rtol=1e-6)
            finite = np.isfinite(x).all(axis=1)
            if made.scale is None or not isinstance(made.scale, float):  # a block's largest is at most one step off
                error = np.abs(decoded(made)[finite, : x.shape[1]] - x[finite]).max()
                assert error <= np.abs(x[finite]).max() / (4 if made.name == "MXFP4" else 5.5)


def test_scales_are_rounded_to_nearest_even() -> None:
    """Blocks whose largest number asks for a middle between two scales, for more than 448, and for next to nothing."""
    wanted = np.concatenate([(SCALES[1:] + SCALES[:-1]) / 2, [448, 500, 1e30, 2.0**-11, 0]])
    lines = np.zeros((len(wanted), 16), np.float32)
    lines[:, 3] = 6 * wanted
    scales = ops.quantize_nvfp4(gp.from_numpy(lines), 1.0).scales.view("uint8").to_numpy()[:, 0]
    middle = np.arange(126)
    assert scales.tolist() == [*(middle + middle % 2), 126, 126, 126, 0, 0]
    powers = np.zeros((4, 32), np.float32)
    powers[:, 5] = 7.99, 8, 2.0**-140, 3e38
    assert ops.quantize_mxfp4(gp.from_numpy(powers)).scales.to_numpy()[:, 0].tolist() == [127, 128, 0, 252]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_with_half_precision(dtype: str) -> None:
    (w, _), (a, x) = normal(37, 200), normal(2, 5, 200, dtype=dtype)
    of_16 = ops.quantize_nvfp4(w)
    of_32 = ops.Fp4Matrix(of_16.codes[:, :96], of_16.scales[:, :6])
    weights = [of_16, ops.quantize_nvfp4(w, 0.5), of_32]
    weights += [ops.quantize_mxfp4(w)] if dtype == "bfloat16" else []
    for weight in weights:
        k = min(200, weight.columns)
        wanted = x[..., :k].astype(np.float64) @ decoded(weight)[:, :k].T
        near(gp.matmul_fp4(a[..., :k], weight, out_dtype="float32"), wanted, 2e-6)
        near(gp.matmul_fp4(a[..., :k], weight), wanted, 2.0**-8)
        near(gp.matmul_fp4(a[1, 3, :k], weight), wanted[1, 3], 2.0**-8)
        near(gp.matmul_fp4(a[:, ::-2, :k], weight, out_dtype="float16"), wanted[:, ::-2], 2.0**-8)
        out = gp.full((37, 2, 5), float("nan"), dtype).transpose(1, 2, 0)
        assert gp.matmul_fp4(a[..., :k], weight, out=out) is out
        near(out, wanted, 2.0**-8)
        near(gp.matmul_fp4(a.reshape(10, 200)[:, :k], weight, invariant=False), wanted.reshape(10, 37), 2.0**-8)
    many, y = normal(390, 200, dtype=dtype)
    near(gp.matmul_fp4(many, weights[0], invariant=False), y.astype(np.float64) @ decoded(weights[0])[:, :200].T, 0.02)


def test_nothing_is_lost_of_what_is_not_finite_or_empty() -> None:
    w, _ = normal(6, 64)
    w[2, 3] = float("nan")
    found = gp.matmul_fp4(gp.ones((3, 64), "bfloat16"), ops.quantize_nvfp4(w)).astype("float32").to_numpy()
    assert np.isnan(found[:, 2]).all() and np.isfinite(np.delete(found, 2, 1)).all()
    for n, k in ((0, 64), (6, 0)):
        empty = ops.quantize_nvfp4(gp.zeros((n, k)))
        assert empty.scale is not None and float(empty.scale) == 1
        assert not gp.matmul_fp4(gp.ones((3, k), "bfloat16"), empty).to_numpy().any()
        assert ops.dequantize_fp4(empty, "float16").shape == (n, k)
    assert gp.matmul_fp4(gp.ones((0, 64), "bfloat16"), ops.quantize_nvfp4(w)).shape == (0, 6)


def test_products_of_two() -> None:
    if why := block_scaled.refusal():
        pytest.skip(why)
    (a, _), (w, _) = normal(5, 200), normal(37, 200)
    for make in (ops.quantize_nvfp4, ops.quantize_mxfp4):
        x, y = make(a), make(w)
        near(gp.matmul_fp4(x, y), decoded(x) @ decoded(y).T, 2e-6)
        near(gp.matmul_fp4(x, y, out_dtype="bfloat16"), decoded(x) @ decoded(y).T, 2.0**-8)
    bf16 = [one.astype("bfloat16") for one in (a, w)]
    wanted = decoded(ops.quantize_nvfp4(bf16[0])) @ decoded(ops.quantize_nvfp4(bf16[1])).T
    near(ops.matmul_nvf4_bf16_sm120(bf16[0], bf16[1].T), wanted, 2.0**-8)


def test_products_of_two_on_another_architecture(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    """The left operand is decoded: its numbers but for the scale of all are bfloat16's, exactly."""
    (a, _), (w, _) = normal(5, 200), normal(37, 200)
    pairs = [(ops.quantize_nvfp4(a, 0.37), ops.quantize_nvfp4(w)), (ops.quantize_mxfp4(a), ops.quantize_mxfp4(w))]
    pairs += [(ops.Fp4Matrix(*ops.quantize_nvfp4(a)[:2]), ops.quantize_nvfp4(w, 0.5))]
    monkeypatch.setattr(block_scaled, "is_sim", lambda: False)
    facts(capability=90)
    for x, y in pairs:
        plan = ops.matmul_fp4_plan(x, y)
        assert plan.backend == "numbers" and "SM 12.0; this device is SM 9.0" in plan.reason
        near(gp.matmul_fp4(x, y), decoded(x) @ decoded(y).T, 2e-6)
        out = gp.full((37, 5), float("nan"), "bfloat16").T
        assert gp.matmul_fp4(x, y, out=out) is out
        near(out, decoded(x) @ decoded(y).T, 2.0**-8)
    bf16 = [one.astype("bfloat16") for one in (a, w)]
    wanted = decoded(ops.quantize_nvfp4(bf16[0])) @ decoded(ops.quantize_nvfp4(bf16[1])).T
    near(ops.matmul_nvf4_bf16_sm120(bf16[0], bf16[1].T), wanted, 2.0**-8)
    assert not ops.nvf4_nvf4_sm120_available()


def test_every_number_of_fp4_is_bfloat16s() -> None:
    """Each code times each scale, of both formats."""
    codes = np.tile(np.arange(0, 256, dtype=np.uint8), 1).reshape(-1, 8)  # 16 numbers a block
    scales = np.arange(128, dtype=np.uint8)[:127]  # finite numbers of float8_e4m3 without their sign
    for of_block, type_of, bits in ((8, "float8_e4m3", scales), (16, "uint8", np.arange(1, 252, dtype=np.uint8))):
        rows = codes.reshape(-1, of_block)
        every = np.repeat(rows, len(bits), 0), np.tile(bits, len(rows))[:, None]
        matrix = ops.Fp4Matrix(gp.from_numpy(every[0]), gp.from_numpy(every[1]).view(type_of))
        exact = ops.dequantize_fp4(matrix, "float32").to_numpy()
        assert np.isfinite(exact).all() and len(np.unique(exact)) > 200
        np.testing.assert_array_equal(ops.dequantize_fp4(matrix, "bfloat16").astype("float32").to_numpy(), exact)


def test_what_does_not_fit_is_refused() -> None:
    a, w = gp.ones((3, 64), "bfloat16"), ops.quantize_nvfp4(gp.ones((5, 64)))
    powers = ops.quantize_mxfp4(gp.ones((5, 64)))
    for wrong, error, message in [
        (lambda: gp.matmul_fp4(a, a), gp.DTypeError, r"w is a GPUArray; it is \(codes, scales\) or"),
        (lambda: gp.matmul_fp4(a.astype("float32"), w), gp.DTypeError, "a is float32; with weights of NVFP4 it is bf"),
        (lambda: gp.matmul_fp4(a.astype("float16"), powers), gp.DTypeError, "of MXFP4 it is bfloat16: use .astype"),
        (lambda: gp.matmul_fp4(a[:, :48], w), gp.ShapeError, r"a has shape \(3, 48\) and w 5 rows of 64 numbers"),
        (lambda: gp.matmul_fp4(w, powers), gp.ShapeError, "a is NVFP4 of blocks of 16, k 64, and w MXFP4 of blocks"),
        (lambda: gp.matmul_fp4(a, (w.codes, w.scales[:4])), gp.ShapeError, r"scales \(4, 4\) of float8_e4m3; they are"),
        (lambda: gp.matmul_fp4(a, (w.codes, w.scales.view("uint8"))), gp.ShapeError, r"of uint8 \(n, k/32\)"),
        (lambda: gp.matmul_fp4(a, (w.scales, w.codes)), gp.DTypeError, "codes of w are float8_e4m3"),
        (lambda: gp.matmul_fp4(a, w, out_dtype="int8"), gp.DTypeError, "a result of int8; it can be float16, bf"),
        (lambda: gp.matmul_fp4(a, w, out=gp.ones((3, 4), "bfloat16")), gp.ShapeError, r"out has shape \(3, 4\)"),
        (lambda: gp.matmul_fp4(a, w._replace(scale=0.0)), ValueError, "w: scale=0.0; give a finite number above 0"),
        (lambda: gp.matmul_fp4(a, w._replace(scale=gp.ones(2))), gp.DTypeError, "one element of float32"),
        (lambda: ops.quantize_nvfp4(a, float("nan")), ValueError, "quantize_nvfp4: scale=nan"),
        (lambda: ops.quantize_mxfp4(gp.ones(4)), gp.ShapeError, r"x has shape \(4,\); it is \(n, k\)"),
        (lambda: ops.quantize_mxfp4(gp.ones((4, 4), "int32")), gp.DTypeError, "x is int32; it is float16"),
        (lambda: ops.dequantize_fp4(w, "int32"), gp.DTypeError, "numbers of int32"),
    ]:
        with pytest.raises(error, match=message):
            wrong()
    numbers: Any = (1e-50, 1e300, 10**400, -1, "2", [1.0], 1j)
    for number in numbers:
        said = re.escape(f"scale={number!r}; give a finite number above 0")
        with pytest.raises(gp.InvalidSpecError, match=f"matmul_fp4: w: {said}"):
            gp.matmul_fp4(a, w._replace(scale=number))
        with pytest.raises(gp.InvalidSpecError, match=f"quantize_nvfp4: {said}"):
            ops.quantize_nvfp4(a, number)
    flags: Any = ("no", 0, float("nan"))
    for flag in flags:
        for name, call in (("matmul_fp4", gp.matmul_fp4), ("matmul_fp4_plan", ops.matmul_fp4_plan)):
            with pytest.raises(TypeError, match=f"{name}: invariant={flag!r}; it is True, False or None"):
                call(a, w, invariant=flag)


def test_scales_of_all_may_be_numbers_of_numpy() -> None:
    a, w = normal(3, 64, dtype="bfloat16")[0], ops.quantize_nvfp4(normal(5, 64)[0])
    wanted = gp.matmul_fp4(a, w._replace(scale=2.0)).to_numpy().tobytes()
    scales: Any = (np.float32(2), np.int64(2), np.array(2.0))
    for scale in scales:
        assert gp.matmul_fp4(a, w._replace(scale=scale)).to_numpy().tobytes() == wanted
        assert ops.dequantize_fp4(w._replace(scale=scale)).shape == (5, 64)


def test_the_documented_names() -> None:
    (weight, w), (a, x) = normal(96, 10, dtype="bfloat16"), normal(96, dtype="bfloat16")
    data_bytes, scale_bytes = ops.nvf4_get_sizes(96, 10)
    data, scale = gp.zeros((48, 10), "uint8"), gp.zeros((3, 10), "uint8")
    assert (data.nbytes, scale.nbytes) == (data_bytes, scale_bytes) == ops.gemv_nvf4_get_sizes(96, 10)
    assert ops.quantize_bf16_to_nvf4(weight, data, scale) is None
    codes, scales, _ = quantised(np.ascontiguousarray(w.T), 32, False, 1.0)
    np.testing.assert_array_equal(data.to_numpy(), packed(codes).T)
    wanted = x.astype(np.float64) @ numbers_of(codes, scales, 1.0).T
    near(ops.gemv_nvf4_bf16(a, data, scale), wanted, 2.0**-8)
    out = gp.zeros(10, "bfloat16")
    assert ops.gemv_nvf4_bf16_sm120(a, data, scale.view("float8_e4m3"), out=out, alpha=0.5) is out
    near(out, 0.5 * wanted, 2.0**-8)
    assert ops.gemv_nvf4_available() and ops.gemv_nvf4_bf16_sm120_available()
    assert ops.nvf4_bf16_sm120_available() is ops.gemm_nvf4_bf16_sm120_available() is False
    with pytest.raises(
        gp.ShapeError, match=r"out_data has shape \(3, 10\) and out_scale \(3, 10\); they are \(48, 10\)"
    ):
        ops.quantize_bf16_to_nvf4(weight, scale, scale)
    with pytest.raises(gp.ShapeError, match="K a multiple of 32"):
        ops.quantize_bf16_to_nvf4(weight[:95], data, scale)
    alphas: Any = (-1, 0, None, 1e300, "2")
    for alpha in alphas:
        with pytest.raises(ValueError, match=f"gemv_nvf4_bf16: alpha={re.escape(repr(alpha))}; give a finite number"):
            ops.gemv_nvf4_bf16(a, data, scale, alpha=alpha)
    sizes: Any = ((64.5, 8), (-64, 8), (64, -1), (64, "8"), (True, 8))
    for extents in sizes:
        with pytest.raises(gp.InvalidSpecError, match=r"nvf4_get_sizes: .*; give a whole number, 0 or more"):
            ops.nvf4_get_sizes(*extents)
    assert ops.nvf4_get_sizes(0, 8) == (0, 0)


def test_plans_say_which_kernel() -> None:
    w = ops.quantize_nvfp4(gp.ones((4, 64)))
    a = gp.ones((390, 64), "bfloat16")
    plans = [str(ops.matmul_fp4_plan(a, w, invariant=one)) for one in (None, False)]
    with gp.fastest_products():
        assert str(ops.matmul_fp4_plan(a, w)) == plans[1]
    if gp.is_cuda_available():
        assert plans[0].startswith("few: NVFP4 decoded to bfloat16") and plans[1].startswith("decoded: NVFP4")
    else:
        assert plans[0] == plans[1] == "numpy: the simulated device computes with NumPy"
