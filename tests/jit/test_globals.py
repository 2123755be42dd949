"""kernel.globals: __device__ and __constant__ variables read, written and viewed from Python; on both backends."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.jit import JITKernel, jit

pytestmark = pytest.mark.usefixtures("backend_name")

SOURCE = """
constexpr int kRows = 2;
#define COLUMNS 3
struct Pair { int first; float second; };

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter;
static __device__ double grid[kRows][COLUMNS];
static __constant__ int steps[] = {1, 2, 3};
__device__ const float fixed[2] = {5, 6};
__device__ Pair pair;
__device__ bool flag = true;
__device__ unsigned char one, two[2] = {1, 2}, three{3};
namespace ns {
__device__ float4 vectors[4 * kRows];
static __constant__ short step;
namespace {
__device__ unsigned hidden = 7;
}
}
__device__ float unused[5];

__global__ void read(double* out) {
    out[0] = table[2]; out[1] = grid[1][2]; out[2] = steps[1]; out[3] = fixed[1]; out[4] = pair.second;
    out[5] = two[1]; out[6] = ns::vectors[1].z; out[7] = ns::step; out[8] = ns::hidden; out[9] = flag; out[10] = three;
}
__global__ void count(int n) { if (blockIdx.x * blockDim.x + threadIdx.x < n) atomicAdd(&counter, 1); }
"""

SHAPES = {
    "table": ("float32", (4,)),
    "counter": ("int32", ()),
    "grid": ("float64", (2, 3)),
    "steps": ("int32", (3,)),
    "fixed": ("float32", (2,)),
    "pair": ("uint8", (8,)),
    "flag": ("bool", ()),
    "one": ("uint8", ()),
    "two": ("uint8", (2,)),
    "three": ("uint8", ()),
    "ns::vectors": ("float32", (8, 4)),
    "ns::step": ("int16", ()),
    "ns::hidden": ("uint32", ()),
    "unused": ("float32", (5,)),
}


@pytest.fixture
def kernel() -> JITKernel:
    return jit(SOURCE, "read")


def seen(kernel: JITKernel) -> list[float]:
    out = gp.zeros(11, dtype="float64")
    kernel[1, 1](out)
    return [float(value) for value in out.to_numpy()]


def test_names_types_and_shapes_follow_the_declarations(kernel: JITKernel) -> None:
    found = {name: (str(one.dtype.name), one.shape) for name, one in kernel.globals.items()}
    assert found == SHAPES
    assert all(one.nbytes == one.array().nbytes and one.address for one in kernel.globals.values())
    assert kernel.globals["table"].space == "__constant__"
    assert kernel.globals["grid"].space == "__device__"
    assert repr(kernel.globals["ns::step"]) == "<GlobalVariable __constant__ ns::step>"


def test_initial_values_can_be_read(kernel: JITKernel) -> None:
    variables = kernel.globals
    np.testing.assert_array_equal(variables["table"].read(), np.array([1, 2, 3, 4], np.float32))
    assert variables["ns::hidden"].read() == 7
    assert variables["steps"].read().tolist() == [1, 2, 3]
    assert variables["two"].read().tolist() == [1, 2]
    assert bool(variables["flag"].read()) is True
    assert seen(kernel) == [3, 0, 2, 6, 0, 2, 0, 0, 7, 1, 3]


def test_what_is_written_is_what_kernels_read(kernel: JITKernel) -> None:
    variables = kernel.globals
    variables["table"].write([9, 8, 7, 6])
    variables["grid"].write(np.arange(6.0).reshape(2, 3))
    variables["steps"].write(gp.from_numpy(np.array([4, 5, 6], np.int32)))
    variables["pair"].write(np.array([(1, 2.5)], dtype="i4,f4").tobytes())
    variables["two"].array()[1] = 77
    variables["vectors"].write(np.arange(32, dtype=np.float32).reshape(8, 4))
    variables["step"].write(np.int16(-3))
    variables["hidden"].write(2**32 - 1)
    variables["flag"].write(False)
    assert seen(kernel) == [7, 5, 5, 6, 2.5, 77, 6, -3, 2**32 - 1, 0, 3]
    assert variables["grid"].read()[1].tolist() == [3, 4, 5]


def test_kernels_of_one_unit_share_the_variables(kernel: JITKernel) -> None:
    count = kernel.unit.kernel("count")
    count.globals["counter"].write(100)
    count[4, 64](250)
    count[4, 64](250)
    assert int(kernel.globals["counter"].read()) == 600
    assert int(jit(SOURCE, "count").globals["counter"].read()) == 0, "another compile has variables of its own"


def test_writes_are_in_the_order_of_the_current_stream(kernel: JITKernel) -> None:
    stream, out = gp.Stream(), gp.zeros((20, 11), dtype="float64")
    gp.synchronize()
    with stream:
        for step in range(20):
            kernel.globals["table"].write(np.full(4, step, np.float32))
            kernel[1, 1](out[step])
        values = out.to_numpy()[:, 0]
    assert values.tolist() == list(range(20))


def test_a_view_keeps_the_module_loaded() -> None:
    view = jit(SOURCE, "read").globals["table"].array()
    gc.collect()
    gp.synchronize()  # dropped modules are unloaded here
    assert view.to_numpy().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("table", [1, 2], ShapeError, r"shape \(4,\), the value \(2,\)"),
        ("table", np.zeros((4, 1), np.float32), ShapeError, r"\(4, 1\)"),
        ("table", np.zeros(4), DTypeError, "float32, the value float64"),
        ("table", np.zeros(4, np.int32), DTypeError, "int32"),
        ("table", "four", DTypeError, "table is float32"),
        ("table", [1j, 0, 0, 0], DTypeError, "complex128"),
        ("counter", 1.5, DTypeError, "int32, the value float64"),
        ("counter", 2**40, OverflowError, "int"),
        ("flag", 1, DTypeError, "bool"),
        ("pair", b"1234567", ValueError, "8 bytes, the value 7"),
        ("fixed", [1, 2], GPUError, "const"),
    ],
)
def test_what_does_not_fit_is_refused(
    kernel: JITKernel, name: str, value: object, error: type[Exception], message: str
) -> None:
    before = kernel.globals[name].read().tolist()
    with pytest.raises(error, match=message):
        kernel.globals[name].write(value)
    assert kernel.globals[name].read().tolist() == before


def test_unknown_and_ambiguous_names_say_what_there_is() -> None:
    kernel = jit("namespace a { __device__ int x; } namespace b { __device__ int x; } __global__ void k() {}")
    assert list(kernel.globals) == ["a::x", "b::x"]
    with pytest.raises(KeyError, match="one of a::x, b::x"):
        kernel.globals["x"]
    with pytest.raises(KeyError, match="no variable of the source; it has: a::x, b::x"):
        kernel.globals["y"]
    assert not jit("__global__ void k() {}").globals


def test_half_types_go_as_bits_or_as_numbers() -> None:
    kernel = jit(
        "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n__constant__ __nv_bfloat16 b[2]; __device__ half2 h[2];\n"
        "__global__ void k(float* out) { out[0] = __bfloat162float(b[1]); out[1] = __high2float(h[1]); }"
    )
    assert (kernel.globals["b"].dtype, kernel.globals["h"].shape) == ("bfloat16", (2, 2))
    kernel.globals["b"].write([1.0, -2.5])
    kernel.globals["h"].write(np.array([[1, 2], [3, 4.5]], np.float16))
    out = gp.zeros(2)
    kernel[1, 1](out)
    assert out.to_numpy().tolist() == [-2.5, 4.5]
    assert kernel.globals["b"].read().tolist() == [0x3F80, 0xC020]
    kernel.globals["b"].write(np.array([0x4000, 0x4040], np.uint16))
    assert kernel.globals["b"].array().astype("float32").to_numpy().tolist() == [2, 3]
