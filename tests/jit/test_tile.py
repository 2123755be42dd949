"""Tile kernels as far as no GPU is needed: read, compiled for every architecture, run on the simulated device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import CompileError, DriverError, KernelArgumentError, KernelCheckError, NvrtcError
from pygpukit.jit import toolchain
from pygpukit.jit.compile import tile
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.launch import configuration
from pygpukit.jit.launch.assumptions import CheckedLauncher
from pygpukit.jit.source.signature import scan

MATMUL = """#include <cuda_tile.h>
#include <cuda_bf16.h>
namespace ct = cuda::tiles;
using namespace ct::literals;
extern "C" __tile_global__ void product(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
                                        float* __restrict__ c, int m, int n, int k) {
  auto left = ct::partition_view{ct::tensor_span{ct::assume_aligned<16>(a), ct::extents{m, ct::assume_divisible<8>(k)}},
                                 ct::shape<64, 32>{}};
  auto right = ct::partition_view{ct::tensor_span{b, ct::extents{k, n}}, ct::shape<32, 64>{}};
  auto out = ct::partition_view{ct::tensor_span{c, ct::extents{m, n}}, ct::shape<64, 64>{}};
  auto sum = ct::full<ct::tile<float, ct::shape<64, 64>>>(0.0f);
  for (auto i : ct::irange(0, (k + 31) / 32))
    sum = ct::mma(left.load_masked(ct::bid().x, i), right.load_masked(i, ct::bid().y), sum);
  out.store_masked(sum, ct::bid().x, ct::bid().y);
}
"""

needs_nvrtc = pytest.mark.skipif(not gp.get_nvrtc_path(), reason="NVRTC is not installed (extra cuda13)")
needs_assembler = pytest.mark.skipif(toolchain.tileiras() is None, reason="needs tileiras: the extra `tile`")


def test_a_tile_kernel_is_read() -> None:
    (kernel,) = scan(MATMUL)
    assert kernel.tile and kernel.extern_c and [p.name for p in kernel.parameters] == ["a", "b", "c", "m", "n", "k"]
    assert kernel.assumptions == (("a", "aligned", 16), ("k", "divisible", 8))
    (plain,) = scan("__global__ void f(int n) {}")
    assert not plain.tile and plain.assumptions == ()


@needs_assembler
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_compiles_for_each_architecture(arch: str) -> None:
    image = compile_source(MATMUL, name="product", arch=arch)
    assert image.image[:4] == b"\x7fELF" and b".text.product\0" in image.image and image.ptx == ""
    again = compile_source(MATMUL, name="product", arch=arch)
    assert again.origin == "memory" and again.image == image.image


@needs_assembler
def test_an_error_is_on_its_line() -> None:
    with pytest.raises(CompileError) as caught:
        compile_source(MATMUL.replace("float* __restrict__ c", "flaot* __restrict__ c"), name="product", arch="sm_90a")
    (first, *_) = caught.value.diagnostics
    assert first.line == 6 and "flaot" in first.message


@needs_assembler
def test_a_template_is_instantiated() -> None:
    source = MATMUL.replace('extern "C" __tile', "template <int Rows> __tile").replace("64", "Rows")
    image = compile_source(source, name="product", arch="sm_90a", name_expressions=["product<32>"])
    assert image.symbol("product<32>").encode() in image.image


@needs_nvrtc
def test_without_the_assembler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    used = toolchain.taken()
    assert used is not None
    monkeypatch.setattr(toolchain, "_opened", replace(used, tileiras=None, lacks={"tileiras": "it was not found"}))
    with pytest.raises(NvrtcError, match=r"\[cuda\]"):
        compile_source(MATMUL + "// uncached", name="product", arch="sm_90a")
    assert tile.identity() == b""


@needs_nvrtc
def test_a_source_has_one_kind_of_kernels() -> None:
    with pytest.raises(ValueError, match="'product' and the kernel 'other'"):
        compile_source(MATMUL + "__global__ void other() {}", name="both", arch="sm_90a")


def test_the_simulated_device_runs_it_and_says_what_a_checked_one_finds() -> None:
    shapes = {"a": (70, 40), "b": (40, 90)}
    a, b = (np.random.default_rng().integers(-4, 5, shape).astype(np.float32) for shape in shapes.values())
    c = gp.full((70, 90), float("nan"), "float32")
    arrays = gp.from_numpy(a).astype("bfloat16"), gp.from_numpy(b).astype("bfloat16"), c
    gp.jit(MATMUL, func="product")[2, 2](*arrays, 70, 90, 40)
    np.testing.assert_array_equal(c.to_numpy(), a @ b)
    checked = gp.jit(MATMUL.replace("left.load_masked", "left.load"), func="product", check=True)
    with pytest.raises(KernelCheckError, match=r"index 40 is outside .* whose dimension 1 has 40 elements"):
        checked[2, 2](*arrays, 70, 90, 40)
        gp.synchronize()
    with pytest.raises(KernelCheckError, match=r"reads a\[2800\], past the end"):
        gp.jit(MATMUL, func="product", check=True)[2, 2](*arrays, 71, 90, 40)
        gp.synchronize()


def test_the_simulated_device_says_which_assumption_is_broken_in_a_body() -> None:
    source = MATMUL.replace("ct::extents{k, n}", "ct::extents{k, ct::assume_divisible<4>(n + 0)}")
    arrays = [gp.zeros(4096, "bfloat16"), gp.zeros(4096, "bfloat16"), gp.zeros(4096, "float32")]
    with pytest.raises(DriverError, match=r"assume_divisible<4>: the kernel was given 6, at product:9"):
        gp.jit(source, func="product", name="product")[1, 1](*arrays, 8, 6, 8)
        gp.synchronize()


OUTSIDE = """#include <cuda_tile.h>
namespace ct = cuda::tiles;
template <typename T>
__tile_global__ void copy(const T* x, T* y, int rows, int columns, int row, int column) {
  auto from = ct::partition_view{ct::tensor_span{x, ct::extents{rows, columns}}, ct::shape<4, 8>{}};
  auto to = ct::partition_view{ct::tensor_span{y, ct::extents{4, 8}}, ct::shape<4, 8>{}};
  to.store_masked(from.load_masked(row, column), 0, 0);
}
extern "C" __tile_global__ void put(int* x, int rows, int row) {
  auto to = ct::partition_view{ct::tensor_span{x, ct::extents{rows}}, ct::shape<4>{}};
  to.store_masked(ct::full<ct::tile<int, ct::shape<4>>>(7), row);
}
"""


@pytest.mark.parametrize(("element", "dtype", "poison"), [("float", "float32", None), ("int", "int32", 0x5A5A5A5A)])
def test_a_tile_wholly_outside_its_tensor_is_poison_on_the_simulated_device(
    element: str, dtype: str, poison: int | None
) -> None:
    values = np.arange(1, 6 * 9 + 1, dtype=dtype).reshape(6, 9)
    x = gp.from_numpy(values)
    copy = gp.jit(OUTSIDE, func=f"copy<{element}>")
    padded = np.zeros((8, 16), dtype)
    padded[:6, :9] = values
    for row, column in ((0, 0), (1, 1), (2, 0), (0, 2), (-1, 0), (1, -1)):
        y = gp.full((4, 8), 3, dtype)
        copy[1](x, y, 6, 9, row, column)
        wanted = np.full((4, 8), poison, dtype)
        if 0 <= row < 2 and 0 <= column < 2:
            wanted = padded[row * 4 : row * 4 + 4, column * 8 : column * 8 + 8]
        np.testing.assert_array_equal(y.to_numpy(), wanted, err_msg=f"tile {row}, {column}")


def test_a_tile_wholly_outside_its_tensor_is_a_finding() -> None:
    x, y = gp.ones((6, 9), "float32"), gp.zeros((4, 8), "float32")
    copy = gp.jit(OUTSIDE, func="copy<float>", name="outside", check=True)
    copy[1](x, y, 6, 9, 1, 1)  # a part of it is inside
    gp.synchronize()
    for place, said in (
        ((2, 0), "index 8 is outside .* dimension 0 has 6 elements: tile 2 along it lies wholly outside"),
        ((0, -1), "index -8 is outside .* dimension 1 has 9 elements: tile -1 along it lies wholly outside"),
    ):
        with pytest.raises(KernelCheckError, match=f"{said}, where load_masked is undefined, at outside:7") as caught:
            copy[1](x, y, 6, 9, *place)
            gp.synchronize()
        (finding,) = caught.value.findings
        assert finding.kind == "out of bounds" and finding.line == 7 and "copy" in finding.kernel
    z = gp.zeros(8, "int32")
    gp.jit(OUTSIDE, func="put")[1](z, 8, 2)
    assert not z.to_numpy().any()
    with pytest.raises(KernelCheckError, match="tile 2 along it lies wholly outside, where store_masked is undefined"):
        gp.jit(OUTSIDE, func="put", check=True)[1](z, 8, 2)
        gp.synchronize()


def test_the_brackets_of_a_tile_kernel() -> None:
    one = (1, 1, 1)
    assert configuration.parse_tile("f", 4) == ((4, 1, 1), one, 0, None)
    assert configuration.parse_tile("f", (4, 2)) == ((4, 2, 1), one, 0, None)
    assert configuration.parse_tile("f", ((4, 2), (1,), 0)) == ((4, 2, 1), one, 0, None)
    stream = gp.Stream()
    assert configuration.parse_tile("f", (4, stream)) == ((4, 1, 1), one, 0, stream.native)
    for config, parameter in ((((4,), 128), "block"), ((0,), "grid"), (((4,), 1, 512), None)):
        with pytest.raises(KernelArgumentError) as caught:
            configuration.parse_tile("f", config)
        assert parameter is None or caught.value.parameter == parameter


def test_assumptions_are_checked_before_the_launch() -> None:
    (signature,) = scan(MATMUL)
    calls: list[tuple[object, ...]] = []
    launch = CheckedLauncher(lambda *args, **kwargs: calls.append(args), signature)  # type: ignore[arg-type]
    a = gp.from_numpy(np.zeros(64, np.float32))
    launch(a, a, a, 3, 5, 8)
    with pytest.raises(KernelArgumentError, match="'a': the kernel assumes that it is a multiple of 16 bytes"):
        launch(a[1:], a, a, 3, 5, 8)
    with pytest.raises(KernelArgumentError, match="'k': the kernel assumes that it is divisible by 8, and it is 9"):
        launch(a, a, a, 3, 5, 9)
    with pytest.raises(KernelArgumentError, match="'k'"):
        launch(a, a, a, m=3, n=5, k=12)
    assert len(calls) == 1 and isinstance(a, native.ArrayBase)
