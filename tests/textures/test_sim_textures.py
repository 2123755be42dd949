"""Textures and surfaces on the simulated device: what checked mode tells and where, legacy references, coordinates that
no manual speaks of, and what NVRTC takes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from check_run import run
from hypothesis import given
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import CompileError, GPUError
from pygpukit.jit import jit
from pygpukit.jit.compile import sim_textures, simulator
from pygpukit.textures.shape import shape_of

HEAD = 'extern "C" __global__ void k(unsigned long long t, float *out, int at) {\n'


def told(line: str, value: object, at: int = 0) -> tuple[str, str, int]:
    """Kind, message and line of what checked mode finds in one line of a kernel."""
    found = run(HEAD + line + "\n}", 1, 1, value, gp.zeros(8), at)
    assert found is not None
    return found.kind, found.message, found.line


@pytest.fixture
def image() -> gp.Texture:
    return gp.Texture(gp.zeros((3, 4)))


def test_an_object_that_is_none(image: gp.Texture) -> None:
    number = image.handle
    image.close()
    kind, message, line = told("  out[0] = tex2D<float>(t, 1, 1);", number)
    assert (kind, line) == ("wrong object", 2)
    assert message.startswith(f"tex2D(): {number:#x} is no texture object, or one that was closed at ")
    assert told("out[0] = surf1Dread<float>(t, 0);", 5)[0] == "wrong object"


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        ("tex1D<float>(t, 0)", "2-D"),
        ("tex3D<float>(t, 0, 0, 0)", "2-D"),
        ("tex2DLayered<float>(t, 0, 0, 0)", "2-D"),
        ("texCubemap<float>(t, 0, 0, 1)", "2-D"),
        ("tex1Dfetch<float>(t, 0)", "2-D"),
    ],
)
def test_an_object_of_another_shape(call: str, shape: str, image: gp.Texture) -> None:
    kind, message, line = told(f"out[0] = {call};", image)
    assert (kind, line) == ("wrong object", 2) and f"of another shape: {shape}" in message


@pytest.mark.parametrize(
    ("dtype", "settings", "asked", "message"),
    [
        ("float32", {}, "int", "asks for int32, the texture gives float32"),
        ("float32", {}, "float4", "asks for float32 x 4, the texture gives float32"),
        ("float16", {}, "int", "asks for int32, the texture gives float32"),
        ("uint8", {}, "float", "asks for float32, the texture gives uint8"),
        ("uint8", {}, "char", "asks for int8, the texture gives uint8"),
        ("int16", {}, "int", "asks for int32, the texture gives int16"),
        ("uint8", {"read": "normalized"}, "unsigned char", "asks for uint8, the texture gives float32"),
    ],
)
def test_another_type_than_the_textures(dtype: str, settings: dict[str, str], asked: str, message: str) -> None:
    line = f"{asked} v = tex2D<{asked}>(t, 1.0f, 1.0f); out[0] = *(char *)&v;"
    kind, found, at = told(line, gp.Texture(gp.zeros((3, 4), dtype), **settings))
    assert (kind, at) == ("wrong type", 2) and message in found


@pytest.mark.parametrize("at", [-1, 10, 2**31 - 1])
def test_a_fetch_outside_linear_memory(at: int) -> None:
    texture = gp.Texture(gp.Texture.empty((10,)), layout="linear")
    kind, message, line = told("out[0] = tex1Dfetch<float>(t, at);", texture, at)
    assert (kind, line) == ("out of bounds", 2) and f"element {at} of a texture of 10 elements" in message


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("surf2Dread<float>(t, 16, 0)", "out of bounds", "x is byte 16 of 16"),
        ("surf2Dread<float>(t, -4, 0)", "out of bounds", "x is byte -4 of 16"),
        ("(surf2Dwrite(1.0f, t, 0, 3), 0)", "out of bounds", "y is 3 of 3"),
        ("surf2Dread<float>(t, 3, 0)", "misaligned", "x counts bytes"),
        ("surf2Dread<float4>(t, 0, 0).x", "wrong type", "moves float32 x 4, the surface has float32"),
        ("surf3Dread<float>(t, 0, 0, 0)", "wrong object", "another shape: 2-D"),
    ],
)
def test_surface_accesses(call: str, kind: str, message: str) -> None:
    found, text, line = told(f"out[0] = {call};", gp.Surface(gp.zeros((3, 4))))
    assert (found, line) == (kind, 2) and message in text


def test_without_checks_a_surface_traps_all_the_same() -> None:
    kernel = jit(HEAD + "surf2Dwrite(1.0f, t, 16, 0);\n}", "k", check=False)
    kernel[1, 1](gp.Surface(gp.zeros((3, 4))), gp.zeros(8), 0)
    with pytest.raises(GPUError, match="x is byte 16 of 16"):
        gp.synchronize()


@pytest.mark.parametrize("address", ["clamp", "wrap", "mirror", "border"])
@pytest.mark.parametrize("filter", ["point", "linear"])
def test_coordinates_that_are_no_numbers(filter: str, address: str) -> None:
    values = gp.from_numpy(np.float32([1, 2, 3]))
    texture = gp.Texture(values, filter, address, normalized=True)
    kernel = jit(
        'extern "C" __global__ void k(cudaTextureObject_t t, const float *x, float *out) {'
        " out[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]); }",
        "k",
    )
    out = gp.zeros(5)
    kernel[1, 5](texture, gp.from_numpy(np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38])), out)
    found = out.to_numpy()
    assert np.isfinite(found).all() and found.min() >= 0 and found.max() <= 3
    if address == "clamp":
        assert found.tolist()[1:] == [3, 1, 3, 1]
    if address == "border":
        assert found.tolist()[1:] == [0, 0, 0, 0]


def test_legacy_references_are_refused_with_the_remedy() -> None:
    for kind, object in (("texture", "Texture"), ("surface", "Surface")):
        source = f"{kind}<float, 2> image;\n" + HEAD + "}"
        with pytest.raises(CompileError, match=rf"1:1: {kind} references .*cuda{object}Object_t.*gp\.{object}"):
            simulator.compile(source)
    own = "template <class T> struct texture { T value; };\ntexture<float> image;\n" + HEAD + "out[0] = 1;\n}"
    assert simulator.compile(own).kernels == ("k",)


def test_only_sources_that_may_use_them_read_their_header() -> None:
    assert sim_textures.switches("x = tex2D<float>(t, 1, 2);", []) and sim_textures.switches('#include "a.h"', [])
    assert sim_textures.switches("#include <a.h>", ["-Ifolder"]) and sim_textures.switches("", ["-DF=tex1Dfetch"])
    assert not sim_textures.switches("#include <cuda_fp16.h>\nint texture, surface, tex;", ["-DN=4"])


FUNCTIONS = """
template <class T> __device__ void all(cudaTextureObject_t t, cudaSurfaceObject_t s, T *o) {
  bool b; float2 g2 = {}; float4 g4 = {}; T v;
  o[0] = tex1Dfetch<T>(t, 1); o[1] = tex1D<T>(t, 1); o[2] = tex2D<T>(t, 1, 2); o[3] = tex3D<T>(t, 1, 2, 3);
  o[4] = tex1DLayered<T>(t, 1, 2); o[5] = tex2DLayered<T>(t, 1, 2, 3); o[6] = texCubemap<T>(t, 1, 2, 3);
  o[7] = texCubemapLayered<T>(t, 1, 2, 3, 4); o[8] = tex1DLod<T>(t, 1, 2); o[9] = tex2DLod<T>(t, 1, 2, 3);
  o[10] = tex3DLod<T>(t, 1, 2, 3, 4); o[11] = tex1DLayeredLod<T>(t, 1, 2, 3); o[12] = texCubemapLod<T>(t, 1, 2, 3, 4);
  o[13] = tex2DLayeredLod<T>(t, 1, 2, 3, 4); o[14] = texCubemapLayeredLod<T>(t, 1, 2, 3, 4, 5);
  o[15] = tex1DGrad<T>(t, 1, 2, 3); o[16] = tex2DGrad<T>(t, 1, 2, g2, g2); o[17] = tex3DGrad<T>(t, 1, 2, 3, g4, g4);
  o[18] = tex1DLayeredGrad<T>(t, 1, 2, 3, 4); o[19] = tex2DLayeredGrad<T>(t, 1, 2, 3, g2, g2);
  o[20] = texCubemapGrad<T>(t, 1, 2, 3, g4, g4); o[21] = texCubemapLayeredGrad<T>(t, 1, 2, 3, 4, g4, g4);
  o[22] = tex2D<T>(t, 1, 2, &b); o[23] = tex3D<T>(t, 1, 2, 3, &b); o[24] = tex2DLayered<T>(t, 1, 2, 3, &b);
  o[25] = tex2DLod<T>(t, 1, 2, 3, &b); o[26] = tex2DGrad<T>(t, 1, 2, g2, g2, &b);
  tex1Dfetch(&v, t, 1); tex2D(&v, t, 1.0f, 2.0f); texCubemap(&v, t, 1, 2, 3); tex2D(&v, t, 1, 2, &b); o[27] = v;
  surf1Dwrite(v, s, 0); surf2Dwrite(v, s, 0, 1, cudaBoundaryModeClamp); surf3Dwrite(v, s, 0, 1, 2);
  surf1DLayeredwrite(v, s, 0, 1); surf2DLayeredwrite(v, s, 0, 1, 2, cudaBoundaryModeZero);
  surfCubemapwrite(v, s, 0, 1, 2); surfCubemapLayeredwrite(v, s, 0, 1, 2);
  surf1Dread(&v, s, 0); o[28] = surf2Dread<T>(s, 0, 1, cudaBoundaryModeTrap);
  o[29] = surf3Dread<T>(s, 0, 1, 2); o[30] = surf1DLayeredread<T>(s, 0, 1); o[31] = surf2DLayeredread<T>(s, 0, 1, 2);
  o[32] = surfCubemapread<T>(s, 0, 1, 2); o[33] = surfCubemapLayeredread<T>(s, 0, 1, 2);
}
"""
ALL = "\n".join(
    f'extern "C" __global__ void k_{vector}(cudaTextureObject_t t, cudaSurfaceObject_t s, {vector} *o) '
    "{ all(t, s, o); }"
    for base in ("char", "uchar", "short", "ushort", "int", "uint", "float")
    for vector in (f"{base}1", f"{base}2", f"{base}4")
)


def test_every_function_of_every_type_compiles() -> None:
    assert len(simulator.compile(FUNCTIONS + ALL).kernels) == 21


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_nvrtc_takes_the_same_sources(arch: str) -> None:
    wheels = [Path(entry, "nvidia", "cu13", "lib") for entry in sys.path if entry]
    files = [str(file) for folder in wheels for file in sorted(folder.glob("libnvrtc.so.13"))]
    if not files:
        pytest.skip("nvidia-cuda-nvrtc is not installed")
    native.nvrtc_open(files)
    status, log, cubin = native.nvrtc_compile(FUNCTIONS + ALL, "cell.cu", [f"--gpu-architecture={arch}"], {}, [])[:3]
    assert (status, log) == (0, "") and cubin[:4] == b"\x7fELF"


@given(st.text(alphabet="texur<>;1D fa(,)\n", max_size=80))
def test_no_text_breaks_the_search_for_references(text: str) -> None:
    for offset, message in sim_textures.references(text):
        assert text[offset:].startswith(("texture", "surface")) and "gp." in message


def test_an_axis_that_a_texture_lacks_is_clamped() -> None:
    """With another mode an H200 filters a row with the border above it."""
    border = (3, 3, 3)
    shapes = [gp.zeros(5), gp.zeros((4, 5)), gp.zeros((3, 4, 5))]
    seen = [shape_of(array, "texture", 1, False, False).addresses(border) for array in shapes]
    assert seen == [(3, 1, 1), (3, 3, 1), border]
    assert shape_of(gp.zeros((3, 5)), "texture", 1, True, False).addresses(border) == (3, 1, 1)
