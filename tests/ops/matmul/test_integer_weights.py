"""Half precision times weights of int8 and int4 beside float64 of NumPy: odd sizes, scales, views, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.ops import matmul_mixed

pytestmark = pytest.mark.usefixtures("operation_backend")

rng = np.random.default_rng()
LIMITS = {8: (-128, 128), 4: (-8, 8)}


def weight(numbers: np.ndarray, bits: int) -> gp.GPUArray:
    """Numbers (k, n) as a weight, dense along k."""
    if bits == 8:
        return gp.from_numpy(np.ascontiguousarray(numbers.T.astype(np.int8))).T
    k, n = numbers.shape
    pairs = np.pad(numbers, ((0, k % 2), (0, 0))).T.reshape(n, -(-k // 2), 2) & 15
    return gp.from_numpy((pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8)).T


def near(found: gp.GPUArray, wanted: np.ndarray, roundings: int) -> None:
    close = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
    got, limit = found.astype("float64").to_numpy(), roundings * max(close.get(found.dtype.name, 0), 2.0**-17)
    assert got.shape == wanted.shape and np.all(np.abs(got - wanted) <= limit * np.abs(wanted).max(initial=0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 17, 5), (33, 130, 65), (5, 256, 7), (0, 4, 3), (4, 6, 0), (4, 0, 3)])
def test_products_are_those_of_the_numbers(dtype: str, bits: int, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    x = gp.from_numpy(rng.standard_normal((m, k), np.float32) / 8).astype(dtype)
    numbers = rng.integers(*LIMITS[bits], (k, n))
    exact = x.astype("float64").to_numpy() @ numbers
    near(matmul_mixed(x, weight(numbers, bits)), exact, 1)
    scale = rng.uniform(0.25, 4, n).astype(np.float32)
    out = matmul_mixed(x, weight(numbers, bits), gp.from_numpy(scale), out_dtype="float32")
    assert out.dtype == gp.float32
    near(out.astype(dtype), exact * scale, 2)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_scale_of_groups_is_rounded_with_the_numbers(bits: int) -> None:
    x = gp.from_numpy(rng.standard_normal((9, 512), np.float32)).astype("bfloat16")
    numbers = rng.integers(*LIMITS[bits], (512, 11))
    for groups in (1, 2, 4):
        scale = gp.from_numpy(rng.uniform(0.25, 4, (groups, 11)).astype(np.float32)).astype("bfloat16")
        spread = scale.astype("float32").to_numpy().repeat(512 // groups, axis=0)
        rounded = gp.from_numpy(numbers.astype(np.float32) * spread).astype("bfloat16").astype("float64").to_numpy()
        near(matmul_mixed(x, weight(numbers, bits), scale), x.astype("float64").to_numpy() @ rounded, 1)


def test_views_are_read_as_their_numbers() -> None:
    x = gp.from_numpy(rng.standard_normal((40, 66), np.float32)).astype("float16")[::3, 1:-1:2]
    numbers = rng.integers(-128, 128, (64, 9))
    w = gp.from_numpy(numbers.astype(np.int8))[::2]
    near(matmul_mixed(x, w), x.astype("float64").to_numpy() @ numbers[::2], 1)


def test_a_row_has_its_bits_in_any_batch() -> None:
    x = gp.from_numpy(rng.standard_normal((40, 128), np.float32)).astype("bfloat16")
    w = weight(rng.integers(-8, 8, (128, 24)), 4)
    whole = matmul_mixed(x, w).to_numpy()
    for rows in (1, 5, 33):
        assert matmul_mixed(x[:rows], w).to_numpy().tobytes() == whole[:rows].tobytes()


REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ((("float32", 4, 8), ("int8", 8, 2)), {}, DTypeError, "x is float32 and w int8; x is float16 or bfloat16"),
    ((("float16", 4, 8), ("int16", 8, 2)), {}, DTypeError, "w int16; x is float16 or bfloat16, w int8, or uint8"),
    ((("float16", 4, 8), ("int8", 4, 2)), {}, ShapeError, r"\(4, 8\) and w of int8 \(4, 2\); they must be .* \(k, n\)"),
    ((("float16", 4, 8), ("uint8", 8, 2)), {}, ShapeError, r"they must be \(m, k\) and \(k/2, n\)"),
    ((("float16", 4, 256), ("int8", 256, 2), ("float16", 8, 2)), {}, ShapeError, "groups of a whole number of 128 of"),
    (
        (("float16", 4, 8), ("int8", 8, 2), ("bfloat16", 1, 2)),
        {},
        ShapeError,
        r"float32 \(2,\), or float16 \(groups, 2",
    ),
    ((("float16", 4, 8), ("int8", 8, 2)), {"out_dtype": "int32"}, DTypeError, "a result of int32; it can be float16"),
    ((("float16", 4, 8), ("int8", 8, 2)), {"backend": "tile"}, ValueError, "backend='tile'; it is 'cutlass', or None"),
    ((("float16", 4, 8), ("int8", 8, 2)), {"backend": "cutlass"}, GPUError, "leave backend out for decoded weights"),
]


@pytest.mark.parametrize(("operands", "more", "error", "said"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(
    operands: tuple[Any, ...], more: dict[str, Any], error: type[Exception], said: str
) -> None:
    arrays = [gp.zeros(tuple(shape), dtype) for dtype, *shape in operands]
    if error is GPUError and gp.backend() == "cuda":
        pytest.skip("where CUTLASS's kernels run, they take it")
    with pytest.raises(error, match=said):
        matmul_mixed(*arrays, **more)
