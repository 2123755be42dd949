"""jit(): kernels that launch, with every wrong argument refused by name before anything runs."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import CompileError, GPUError, KernelArgumentError
from pygpukit.jit import JITKernel, jit
from pygpukit.jit.inspect.occupancy import Occupancy

SCALE = """
extern "C" __global__
void scale(float* x, float factor, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) x[idx] *= factor;
}
"""

# One output slot a type: what arrives in the kernel is what was passed, converted.
SCALARS = """
extern "C" __global__ void store(
    double* out, bool b, unsigned char c, short s, unsigned u, long long l, float f, double d) {
    out[0] = b; out[1] = c; out[2] = s; out[3] = u; out[4] = l; out[5] = f; out[6] = d;
}
"""

INDEX = """
__global__ void where(int* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x * 1000 + threadIdx.x; }
"""


@pytest.fixture(scope="module")
def scale() -> JITKernel:
    return jit(SCALE, func="scale")


def launches() -> int:
    return int(_core.counters()["launches"])


def test_the_package_and_the_function_share_the_name() -> None:
    assert gp.jit(SCALE, func="scale").name == "scale"
    import pygpukit.jit.compile.compiler  # noqa: F401  (importing a submodule sets the attribute `jit` to the package)

    assert callable(gp.jit)


def test_keywords_positions_and_a_given_grid_do_the_same(scale: JITKernel) -> None:
    data = np.arange(1000, dtype=np.float32)
    for call in (
        lambda x: scale(x, factor=0.5, n=x.size),
        lambda x: scale(x, 0.5, x.size),
        lambda x: scale(n=1000, x=x, factor=0.5),
        lambda x: scale[4, 256](x, 0.5, 1000),
        lambda x: scale[(4,), (256, 1, 1)](x, 0.5, n=1000),
        lambda x: scale[[2, 1], 512](x, 0.5, 1000),
        lambda x: scale[np.int64(4), 256, gp.Stream()](x, 0.5, 1000),
        lambda x: scale[4, 256, 128](x, 0.5, 1000),
        lambda x: scale[4, 256, 0, None](x, 0.5, 1000),
        lambda x: scale(x, 0.5, 1000, grid_size=4),
    ):
        x = gp.from_numpy(data)
        before = launches()
        call(x)
        gp.synchronize()
        np.testing.assert_array_equal(x.to_numpy(), data * np.float32(0.5))
        assert launches() == before + 1


def test_a_launcher_is_kept_for_each_configuration(scale: JITKernel) -> None:
    assert scale[4, 256] is scale[4, 256]
    assert scale[(4, 1, 1), (256, 1)] is scale[(4, 1, 1), (256, 1)]
    assert scale[4, 256] is not scale[4, 128]


def test_the_grid_covers_the_size_parameter() -> None:
    kernel = jit(INDEX.replace("int* out", "int* out, int n"))
    out = gp.zeros(768, dtype="int32")
    kernel(out, 513)  # three blocks of 256: all of them write past n
    written = np.count_nonzero(out.to_numpy()[512:]) if kernel.block_size == 256 else None
    assert written == 256
    np.testing.assert_array_equal(out.to_numpy()[256:512], 1000 + np.arange(256))


def test_without_a_size_parameter_the_largest_array_counts() -> None:
    kernel = JITKernel(
        "__global__ void fill(float* small, int* big) { big[blockIdx.x * blockDim.x + threadIdx.x] = gridDim.x; }",
        "fill",
        block_size=64,
    )
    big = gp.zeros(128, dtype="int32")
    kernel(gp.zeros(3), big)
    np.testing.assert_array_equal(big.to_numpy(), np.full(128, 2))


def test_zero_elements_launch_one_guarded_block(scale: JITKernel) -> None:
    x = gp.ones(4)
    before = launches()
    scale(x, 5.0, 0)
    gp.synchronize()
    assert launches() == before + 1
    np.testing.assert_array_equal(x.to_numpy(), np.ones(4, np.float32))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("__global__ void k(int a) {}", "no array is given"),
        ("__global__ void k(float* x) { x[blockIdx.y] = 0; }", "reads the y index"),
        ("__global__ void k(float* x) { extern __shared__ float t[]; x[0] = t[0]; }", "dynamic shared memory"),
    ],
)
def test_a_grid_that_cannot_be_inferred_is_asked_for(source: str, message: str) -> None:
    kernel = jit(source)
    argument = gp.ones(4) if "float* x" in source else 1
    with pytest.raises(KernelArgumentError, match=message) as caught:
        kernel(argument)
    assert "k[grid, block" in str(caught.value)
    assert caught.value.parameter == "grid"


def test_the_size_cannot_be_negative_or_fractional(scale: JITKernel) -> None:
    for wrong in (-1, 2.5, "many"):
        with pytest.raises(KernelArgumentError, match="'n'"):
            scale(gp.ones(4), 1.0, wrong)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (5, r"scale\[grid, block\]"),
        ((1,), r"scale\[grid, block\]"),
        ((1, 2, 3, None, 5), r"scale\[grid, block\]"),
        ((0, 32), "grid is 0"),
        ((-1, 32), "grid is -1"),
        ((1, (1, 2, 3, 4)), "block is"),
        ((1.5, 32), "grid is 1.5"),
        (("2", 32), "grid is '2'"),
        ((1, 32, "stream"), "stream is a str"),
        ((1, 32, -4, None), "shared_bytes is -4"),
        ((1, 2048), "2048"),
    ],
)
def test_bad_configurations_are_refused(scale: JITKernel, config: object, message: str) -> None:
    before = launches()
    with pytest.raises((KernelArgumentError, ValueError, GPUError), match=message):
        scale[config](gp.ones(4), 1.0, 4)
    assert launches() == before


def test_scalars_are_converted_to_the_declared_types() -> None:
    store = jit(SCALARS)
    out = gp.zeros(7, dtype="float64")
    store[1, 1](out, True, 255, -32768, 4294967295, -(2**62), 0.1, 0.1)
    np.testing.assert_array_equal(out.to_numpy(), [1, 255, -32768, 4294967295, -(2.0**62), np.float32(0.1), 0.1])
    store[1, 1](out, np.bool_(False), np.uint8(7), np.int16(-7), np.int64(8), 9.0, np.float64(1.5), 2)
    np.testing.assert_array_equal(out.to_numpy(), [0, 7, -7, 8, 9, 1.5, 2])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("c", 300),
        ("c", -1),
        ("s", 40000),
        ("u", -1),
        ("u", 2**32),
        ("l", 2**63),
        ("s", 0.5),
        ("f", "1"),
        ("d", None),
        ("b", 2),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(name: str, value: object) -> None:
    store = jit(SCALARS)
    arguments: dict[str, object] = {"b": True, "c": 1, "s": 1, "u": 1, "l": 1, "f": 1.0, "d": 1.0, name: value}
    before = launches()
    with pytest.raises(KernelArgumentError, match=f"'{name}'") as caught:
        store[1, 1](gp.zeros(7, dtype="float64"), **arguments)
    assert caught.value.parameter == name
    assert launches() == before


def test_arrays_are_checked(scale: JITKernel) -> None:
    x = gp.ones((8, 8))
    before = launches()
    for wrong, message in (
        (gp.ones(4, dtype="float64"), "float64"),
        (gp.ones(4, dtype="int32"), "int32"),
        (x.T, r"contiguous\(\)"),
        (np.ones(4, np.float32), "GPUArray"),
        (3, "GPUArray"),
    ):
        with pytest.raises(KernelArgumentError, match=message) as caught:
            scale(wrong, 1.0, 4)
        assert caught.value.parameter == "x"
    assert launches() == before


def test_counts_and_names_are_checked(scale: JITKernel) -> None:
    x = gp.ones(4)
    before = launches()
    with pytest.raises(KernelArgumentError, match="'n': missing"):
        scale(x, 1.0)
    with pytest.raises(KernelArgumentError, match="'factor': missing"):
        scale(x, n=4)
    with pytest.raises(KernelArgumentError, match="takes 3 arguments, got 4"):
        scale(x, 1.0, 4, 5)
    with pytest.raises(KernelArgumentError, match="'m': no such parameter"):
        scale(x, 1.0, 4, m=5)
    with pytest.raises(KernelArgumentError, match="'x': given twice"):
        scale(x, 1.0, 4, x=x)
    assert launches() == before


def test_none_is_a_null_pointer_and_void_takes_any_array() -> None:
    kernel = jit("__global__ void k(void* any, float* maybe, int* out) { out[0] = (any != 0) + 2 * (maybe != 0); }")
    out = gp.zeros(1, dtype="int32")
    for any_array, maybe, expected in ((gp.ones(3, dtype="float64"), None, 1), (None, gp.ones(3), 2), (None, None, 0)):
        kernel[1, 1](any_array, maybe, out)
        assert int(out.to_numpy()[0]) == expected


def test_structs_are_passed_as_bytes() -> None:
    kernel = jit(
        "struct P { int a; double b; };\n__global__ void k(double* out, P p, float4 v) { out[0] = p.a + p.b + v.w; }"
    )
    out = gp.zeros(1, dtype="float64")
    p = np.zeros(1, dtype=np.dtype([("a", "i4"), ("b", "f8")], align=True))
    p["a"], p["b"] = 3, 0.25
    kernel[1, 1](out, p.tobytes(), np.array([0, 0, 0, 4], np.float32))
    assert float(out.to_numpy()[0]) == 7.25
    with pytest.raises(KernelArgumentError, match=r"'p'.*16 bytes"):
        kernel[1, 1](out, b"12345", b"0" * 16)


def test_templates_need_an_instantiation() -> None:
    source = (
        "template <typename T> __global__ void add(T* x, T y, int n) { int i = threadIdx.x; if (i < n) x[i] += y; }"
    )
    for made in (jit(source, func="add<double>"), jit(source, name_expressions=["add<double>"])):
        x = gp.ones(4, dtype="float64")
        made(x, 0.5, 4)
        np.testing.assert_array_equal(x.to_numpy(), np.full(4, 1.5))
        assert made.signature.parameters[0].dtype == "float64"
    with pytest.raises(ValueError, match="template"):
        jit(source, func="add")
    with pytest.raises(ValueError, match="template"):
        jit(source)
    with pytest.raises(ValueError, match="no template 'sub'"):
        jit(source, func="sub<int>")


def test_functions_are_found_by_name() -> None:
    source = "namespace a { __global__ void one(int* x) { x[0] = 1; } }\n" + SCALE
    assert jit(source, func="a::one").name == "a::one"
    assert jit(source, func="one").signature.name == "a::one"
    with pytest.raises(ValueError, match=r"Function 'two' not found in the source; it has: a::one, scale"):
        jit(source, func="two")
    with pytest.raises(ValueError, match="2 kernels; give func="):
        jit(source)
    with pytest.raises(ValueError, match="Function not found"):
        jit("__device__ int x;")


def test_the_first_error_has_line_and_column() -> None:
    with pytest.raises(CompileError) as caught:
        jit(SCALE.replace("x[idx]", "y[idx]"), func="scale", name="demo.cu")
    first = next(one for one in caught.value.diagnostics if one.severity == "error")
    assert (first.file, first.line) == ("demo.cu", 5)
    assert SCALE.splitlines()[4].index("x[idx]") + 1 == first.column
    assert "y" in first.message


def test_defines_options_and_block_size() -> None:
    kernel = jit(
        "__global__ void k(int* out) { out[0] = THREE + FOUR; }",
        defines={"THREE": 3},
        options=["-DFOUR=4"],
        block_size=32,
    )
    out = gp.zeros(1, dtype="int32")
    kernel(out)
    assert int(out.to_numpy()[0]) == 7
    assert (kernel.block_size, kernel.options) == (32, ["-DFOUR=4"])
    with pytest.raises(ValueError, match="block_size is 0"):
        jit(SCALE, block_size=0)
    with pytest.raises(TypeError, match="list of strings"):
        jit(SCALE, options="-DB=4")  # type: ignore[arg-type]


def test_include_folders(tmp_path: Path) -> None:
    (tmp_path / "step.cuh").write_text("__device__ int step(int x) { return x + STEP; }\n")
    source = '#include "step.cuh"\n__global__ void k(int* out) { out[0] = step(40); }'
    out = gp.zeros(1, dtype="int32")
    jit(source, include=[tmp_path], defines={"STEP": 2})[1, 1](out)
    assert int(out.to_numpy()[0]) == 42
    with pytest.raises(ValueError, match="no folder"):
        jit(source, include=[tmp_path / "absent"])


def test_launch_bounds_shrink_the_inferred_block() -> None:
    kernel = jit("__global__ void __launch_bounds__(64) k(int* out, int n) { out[0] = blockDim.x; }")
    out = gp.zeros(1, dtype="int32")
    kernel(out, 1000)
    assert int(out.to_numpy()[0]) == 64


def test_what_a_kernel_tells_about_itself(scale: JITKernel) -> None:
    assert repr(scale) == "<JITKernel scale(float* x, float factor, int n)>"
    assert scale.__name__ == scale.name == "scale"
    assert scale.source == SCALE
    assert scale.is_compiled
    assert list(inspect.signature(scale).parameters) == ["x", "factor", "n"]
    assert scale.__doc__ is not None and "factor: float - converted to float32" in scale.__doc__
    assert scale.shared_bytes == 0
    assert scale.registers is not None and scale.local_bytes is not None
    fits = scale.occupancy(256)
    assert isinstance(fits, Occupancy)
    assert 0 < fits.fraction <= 1
    assert fits.warps == 8 * fits.blocks


def test_the_documented_constructor() -> None:
    kernel = JITKernel(SCALE, "scale", ["-DUNUSED=1"], 128)
    x = gp.ones(10)
    kernel(x, factor=2.0, n=10)
    np.testing.assert_array_equal(x.to_numpy(), np.full(10, 2, np.float32))
    assert (kernel.name, kernel.block_size, kernel.options) == ("scale", 128, ["-DUNUSED=1"])


def test_each_compile_has_globals_of_its_own() -> None:
    source = "__device__ int count; __global__ void k(int* out) { out[0] = ++count; }"
    out = gp.zeros(1, dtype="int32")
    for _ in range(2):
        kernel = jit(source)
        kernel[1, 1](out)
        kernel[1, 1](out)
        assert int(out.to_numpy()[0]) == 2
