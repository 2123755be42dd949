"""mma.sync with a scale for every block of k, in inline PTX on the simulated device: against NumPy, whatever bytes and
threads have the scales."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6] + [-0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
KERNEL = """
extern "C" __global__ void k(const unsigned *a, const unsigned *b, const unsigned *scales, const float *c, float *d) {
  const int i = threadIdx.x;
  float r[4];
  for (int j = 0; j < 4; ++j) r[j] = c[4 * i + j];
  const unsigned short byte = BYTE, thread = THREAD;
  asm("mma.sync.aligned.SHAPE.row.col.kind::KIND.f32.TYPES {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3}, {%10}, {%12, %13}, %11, {BYTE, OTHER};"
      : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3])
      : "r"(a[4 * i]), "r"(a[4 * i + 1]), "r"(a[4 * i + 2]), "r"(a[4 * i + 3]), "r"(b[2 * i]), "r"(b[2 * i + 1]),
        "r"(scales[i]), "r"(scales[32 + i]), "h"(byte), "h"(thread));
  for (int j = 0; j < 4; ++j) d[4 * i + j] = r[j];
}"""
KINDS = [
    ("m16n8k64", "mxf4.block_scale", "e2m1.e2m1.f32.ue8m0", 2),
    ("m16n8k64", "mxf4.block_scale.scale_vec::2X", "e2m1.e2m1.f32.ue8m0", 2),
    ("m16n8k64", "mxf4nvf4.block_scale.scale_vec::2X", "e2m1.e2m1.f32.ue8m0", 2),
    ("m16n8k64", "mxf4nvf4.block_scale.scale_vec::4X", "e2m1.e2m1.f32.ue4m3", 4),
    ("m16n8k32", "mxf8f6f4.block_scale.scale_vec::1X", "e4m3.e5m2.f32.ue8m0", 1),
    ("m16n8k32", "mxf8f6f4.block_scale", "e5m2.e5m2.f32.ue8m0", 1),
]


def small(bits: np.ndarray, kind: str) -> np.ndarray:
    """Values of e2m1, e4m3, e5m2, ue4m3 and ue8m0, by their formula."""
    if kind == "e2m1":
        return E2M1[bits]
    if kind == "ue8m0":
        return 2.0 ** (bits.astype(np.float64) - 127)
    mantissa = 2 if kind == "e5m2" else 3
    bias = 15 if kind == "e5m2" else 7
    exponent, rest = (bits & 0x7F) >> mantissa, (bits & ((1 << mantissa) - 1)) / (1 << mantissa)
    size = np.where(exponent == 0, rest * 2.0 ** (1 - bias), (1 + rest) * 2.0 ** (exponent.astype(np.float64) - bias))
    return np.where(bits & 0x80, -size, size)


def held(matrix: np.ndarray, each: int) -> np.ndarray:
    """A matrix of codes as the registers of 32 lanes: `each` neighbours of a row in one, from 4 lanes on, rows eight
    further first."""
    rows, columns = matrix.shape
    lanes = [
        [
            sum(int(matrix[lane // 4 + 8 * high, lane % 4 * each + far + i]) << 32 // each * i for i in range(each))
            for far in range(0, columns, 4 * each)
            for high in range(rows // 8)
        ]
        for lane in range(32)
    ]
    return np.array(lanes, np.uint32)


def source(shape: str, kind: str, types: str, byte: int, thread: int, other: int, first: bool = False) -> str:
    """first: the kind stands before the shape, as CUTLASS writes it."""
    told = {"SHAPE.row.col.kind::KIND": "kind::KIND.SHAPE.row.col"} if first else {}
    told |= {"SHAPE": shape, "KIND": kind, "TYPES": types, "BYTE": byte, "THREAD": thread, "OTHER": other}
    text = KERNEL
    for word, value in told.items():
        text = text.replace(word, str(value))
    return text


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("shape", "kind", "types", "blocks"), KINDS)
def test_products_of_scaled_blocks(shape: str, kind: str, types: str, blocks: int, first: bool) -> None:
    rng = np.random.default_rng()
    k = int(shape.rpartition("k")[2])
    of_a, of_b, _, of_scales = types.split(".")
    most = 16 if of_a == "e2m1" else 0x78
    a, b = rng.integers(0, most, (16, k)), rng.integers(0, most, (8, k))
    # 2^-6 to 2^6, or 2^-4 to 2^5 with a mantissa
    low, high = (121, 134) if of_scales == "ue8m0" else (0x18, 0x60)
    scales = rng.integers(low, high, (2, 32, 4), dtype=np.uint8)
    c = rng.standard_normal((16, 8)).astype(np.float32)
    byte = blocks * int(rng.integers(4 // blocks))
    thread, other = int(rng.integers(2)), int(rng.integers(4))
    of_row = np.array([scales[0, 4 * (r % 8) + 2 * thread + r // 8, byte : byte + blocks] for r in range(16)])
    of_column = np.array([scales[1, 4 * n + other, byte : byte + blocks] for n in range(8)])
    x = small(a, of_a) * np.repeat(small(of_row, of_scales), k // blocks, 1)
    y = small(b, of_b) * np.repeat(small(of_column, of_scales), k // blocks, 1)
    each = 32 // (4 if of_a == "e2m1" else 8)
    lane = np.arange(32)
    rows, columns = (lane // 4)[:, None] + [0, 0, 8, 8], (lane % 4 * 2)[:, None] + [0, 1, 0, 1]
    arrays = [held(a, each), held(b, each), np.ascontiguousarray(scales).view(np.uint32), c[rows, columns]]
    out = gp.full((32, 4), float("nan"), "float32")
    kernel = gp.jit(source(shape, kind, types, byte, thread, other, first), func="k")
    kernel[1, 32](*(gp.from_numpy(np.ascontiguousarray(one)) for one in arrays), out)
    wanted = x @ y.T + c
    sizes = np.abs(x) @ np.abs(y).T + np.abs(c)
    error = np.abs(out.to_numpy().astype(np.float64) - wanted[rows, columns])
    assert (error <= 1e-6 * sizes[rows, columns]).all()


@pytest.mark.parametrize(
    ("shape", "kind", "types"),
    [
        ("m16n8k32", "mxf4.block_scale", "e2m1.e2m1.f32.ue8m0"),
        ("m16n8k64", "mxf4nvf4.block_scale", "e2m1.e2m1.f32.ue4m3"),
        ("m16n8k64", "mxf4.block_scale.scale_vec::4X", "e2m1.e2m1.f32.ue8m0"),
        ("m16n8k64", "mxf4nvf4.block_scale.scale_vec::4X", "e4m3.e4m3.f32.ue4m3"),
        ("m16n8k64", "mxf4", "e2m1.e2m1.f32"),
    ],
)
def test_what_there_is_not_is_told(shape: str, kind: str, types: str) -> None:
    with pytest.raises(CompileError, match=r"the instruction mma\.sync\.\S+ cannot run"):
        gp.jit(source(shape, kind, types, 0, 0, 0), func="k")


def test_a_byte_that_has_no_scales_is_told() -> None:
    arrays = [gp.from_numpy(np.zeros(128, np.uint32)) for _ in range(3)]
    numbers = [gp.from_numpy(np.zeros(128, np.float32)) for _ in range(2)]
    with pytest.raises(gp.GPUError, match="no lane has scales at this byte and thread"):
        gp.jit(source(*KINDS[0][:3], 1, 0, 0), func="k")[1, 32](*arrays, *numbers)
        gp.synchronize()
