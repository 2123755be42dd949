"""Surfaces, and what textures and surfaces share: lifetimes, refusals, and their place in the pool's books."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from alone import alone
from numpy.typing import NDArray
from texture_kernels import TYPES, fetch, spelled

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import DTypeError, GPUError, KernelArgumentError, OutOfMemoryError, ShapeError
from pygpukit.jit import JITKernel, jit
from pygpukit.memory import set_limit, stats

pytestmark = pytest.mark.usefixtures("backend_name")

# By the shape of the surface: the name, and the place of element (x, y, z) after x's bytes.
SHAPES = {
    "surf1D": ((7,), "", {}),
    "surf2D": ((5, 7), ", y", {}),
    "surf3D": ((3, 5, 7), ", y, z", {}),
    "surf1DLayered": ((3, 7), ", y", {"layered": True}),
    "surf2DLayered": ((3, 5, 7), ", y, z", {"layered": True}),
    "surfCubemap": ((6, 7, 7), ", y, z", {"cubemap": True}),
    "surfCubemapLayered": ((2, 6, 7, 7), ", y, z", {"cubemap": True, "layered": True}),
}


def moving(name: str, type: str, place: str) -> JITKernel:
    """A kernel that moves every element one to the left, around the row, through another surface."""
    source = f"""
    extern "C" __global__ void move(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {{
        const int x = threadIdx.x, y = blockIdx.x % height, z = blockIdx.x / height;
        {type} value;
        {name}read(&value, from, (int)sizeof(value) * ((x + 1) % width){place});
        if (threadIdx.x % 2) value = {name}read<{type}>(from, (int)sizeof(value) * ((x + 1) % width){place});
        {name}write(value, to, (int)sizeof(value) * x{place});
    }}"""
    return jit(source, "move")


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_read_and_written(name: str) -> None:
    shape, place, settings = SHAPES[name]
    values = np.random.default_rng().normal(size=shape).astype(np.float32)
    whole = int(np.prod(shape[:-1]))
    height = 1 if name == "surf1D" else 3 if name == "surf1DLayered" else shape[-2]
    with gp.Surface(gp.from_numpy(values), **settings) as source, gp.Surface(gp.zeros(shape), **settings) as target:
        assert source.to_numpy().tobytes() == values.tobytes()
        moving(name, "float", place)[whole, 7](source, target, 7, height)
        assert np.array_equal(target.to_numpy(), np.roll(values, -1, -1))
        assert np.array_equal(source.to_array().to_numpy(), values)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_is_moved(dtype: str, channels: int) -> None:
    shape = (5, 7) if channels == 1 else (5, 7, channels)
    bits = np.random.default_rng().integers(0, 1 << 32, shape, np.uint32)
    values = bits.astype(dtype)
    settings = {"channels": channels}
    with gp.Surface(gp.from_numpy(values), **settings) as source:
        target = gp.Surface(gp.from_numpy(np.zeros_like(values)), **settings)
        moving("surf2D", spelled(dtype, channels), ", y")[5, 7](source, target, 7, 5)
    assert target.to_numpy().tobytes() == np.roll(values, -1, 1).tobytes()


def test_boundary_modes() -> None:
    kernel = jit(
        """extern "C" __global__ void edges(cudaSurfaceObject_t s, float *out) {
            const int at[5][2] = {{-1, 0}, {4, 1}, {1, -3}, {2, 7}, {1, 1}};
            for (int i = 0; i < 5; ++i) {
                out[i] = surf2Dread<float>(s, 4 * at[i][0], at[i][1], cudaBoundaryModeZero);
                out[5 + i] = surf2Dread<float>(s, 4 * at[i][0], at[i][1], cudaBoundaryModeClamp);
            }
            surf2Dwrite(100.0f, s, -4, 0, cudaBoundaryModeZero);
            surf2Dwrite(200.0f, s, 16, 9, cudaBoundaryModeClamp);
        }""",
        "edges",
    )
    out = gp.from_numpy(np.full(10, np.nan, np.float32))
    with gp.Surface(gp.from_numpy(np.float32([[1, 2, 3, 4], [5, 6, 7, 8]]))) as surface:
        kernel[1, 1](surface, out)
        assert out.to_numpy().tolist() == [0, 0, 0, 0, 6, 1, 8, 2, 7, 6]
        assert surface.to_numpy().tolist() == [[1, 2, 3, 4], [5, 6, 7, 200]]


def test_a_texture_of_a_surface_reads_what_kernels_wrote() -> None:
    double = jit(
        """extern "C" __global__ void twice(cudaSurfaceObject_t s) {
            surf2Dwrite(2 * surf2Dread<float>(s, 4 * threadIdx.x, 0), s, 4 * threadIdx.x, 0);
        }""",
        "twice",
    )
    surface = gp.Surface(gp.from_numpy(np.float32([[1, 2, 3]])))
    texture = gp.Texture(surface, "linear")
    double[1, 3](surface)
    surface.close()
    found = fetch(texture, "tex2D<T>(t, p[0], p[1])", np.float32([[1, 0.5], [2, 0.5]]))
    assert found[:, 0].tolist() == [3, 5]


# ---- lifetimes


FIRST = """extern "C" __global__ void first(cudaTextureObject_t t, float *out) { out[0] = tex1D<float>(t, 0.5f); }"""


def texture(value: float = 5) -> gp.Texture:
    return gp.Texture(gp.full((3,), value, "float32"))


def test_one_that_was_dropped_lives_until_its_launches_are_done() -> None:
    kernel, out = jit(FIRST, "first"), gp.zeros(20)
    for number in range(20):
        kernel[1, 1](texture(number), out[number : number + 1])
    gc.collect()
    assert out.to_numpy().tolist() == list(range(20))


def test_a_closed_one_is_refused_by_name() -> None:
    kernel, out, image = jit(FIRST, "first"), gp.zeros(1), texture()
    kernel[1, 1](image, out)
    image.close()
    image.close()
    assert image.closed and "closed Texture 3 float32" in repr(image)
    assert out.to_numpy()[0] == 5
    with pytest.raises(KernelArgumentError, match="parameter 't': the texture was closed"):
        kernel[1, 1](image, out)
    surface = gp.Surface(gp.zeros(3))
    surface.close()
    with pytest.raises(ValueError, match="the surface was closed"):
        surface.to_array()
    with pytest.raises(ValueError, match="the surface was closed"):
        gp.Texture(surface)


def test_a_graph_holds_what_it_was_captured_with() -> None:
    kernel, out, image, stream = jit(FIRST, "first"), gp.zeros(1), texture(), gp.Stream()
    with stream.capture() as graph:
        kernel[1, 1](image, out)
    with pytest.raises(GPUError, match="part of a graph"):
        image.close()
    graph.launch(stream)
    stream.synchronize()
    assert out.to_numpy()[0] == 5
    del graph
    gc.collect()
    image.close()
    gp.synchronize()


# ---- arguments


def test_what_a_parameter_takes() -> None:
    kernel, out, image, surface = jit(FIRST, "first"), gp.zeros(1), texture(), gp.Surface(gp.zeros(3))
    kernel[1, 1](image.handle, out)
    assert out.to_numpy()[0] == 5
    for wrong, told in [
        (surface, "expected a texture, got a surface"),
        (out, r"expected a texture, got a value of type GPUArray; make one: gp\.Texture\(array\)"),
        (None, "expected a texture, got a value of type NoneType"),
        ("image", "expected a texture, got a value of type str"),
        (-1, "the value does not fit uint64"),
    ]:
        with pytest.raises(KernelArgumentError, match=f"parameter 't': {told}"):
            kernel[1, 1](wrong, out)
    number = jit(
        """typedef cudaTextureObject_t image_t;
        extern "C" __global__ void plain(unsigned long long t, image_t u, float *out) {
            out[0] = tex1D<float>(t, 0.5f) + tex1D<float>(u, 0.5f);
        }""",
        "plain",
    )
    assert [one.kind for one in number.signature.parameters] == ["scalar", "texture", "pointer"]
    number[1, 1](image, image, out)
    assert out.to_numpy()[0] == 10
    signed = jit('extern "C" __global__ void s(long long t, float *out) { out[0] = t; }', "s")
    with pytest.raises(KernelArgumentError, match="expected an integer for int64"):
        signed[1, 1](image, out)


X = np.zeros((4, 6), np.float32)


@pytest.mark.parametrize(
    ("array", "settings", "error", "told"),
    [
        (X, {}, TypeError, "made of a GPUArray, not of a ndarray"),
        (gp.zeros, {}, TypeError, "not of a function"),
        ("float64", {}, DTypeError, "no elements of float64"),
        ((4, 6), {"channels": 3}, ValueError, "channels is 3"),
        ((4, 6), {"channels": 4}, ShapeError, "needs a last axis of 4"),
        ((2, 2, 2, 2), {}, ShapeError, "4 axes are left"),
        ((4, 0), {}, ShapeError, "at least one element"),
        ((5, 4, 4), {"cubemap": True}, ShapeError, r"\(6, N, N\), not \(5, 4, 4\)"),
        ((6, 4, 5), {"cubemap": True}, ShapeError, "cubemap is an array"),
        ((4, 6), {"filter": "cubic"}, ValueError, "'point' or 'linear'"),
        ((4, 6), {"address": "repeat"}, ValueError, "'wrap' or 'clamp' or 'mirror' or 'border'"),
        ((4, 6), {"address": ()}, ValueError, "one mode, or one for each"),
        ((4, 6), {"read": "float"}, ValueError, "'element' or 'normalized'"),
        ((4, 6), {"read": "normalized"}, ValueError, "integers of 8 and 16 bits"),
        ((4, 6), {"border": (1.0, 2.0)}, ValueError, "border has 2 numbers"),
        ("int32", {"filter": "linear"}, ValueError, r"astype\(gp.float32\)"),
        ("uint8", {"filter": "linear"}, ValueError, 'read="normalized"'),
        ((4, 6), {"mipmaps": "mean"}, ValueError, "need normalized=True"),
        ("uint8", {"mipmaps": "mean", "normalized": True}, ValueError, "needs floats"),
        ((4, 6), {"layout": "linear"}, ShapeError, r"arrays of shape \(W,\)"),
        ((4, 6), {"layout": "pitched", "mipmaps": "mean", "normalized": True}, ValueError, 'need layout="array"'),
        ((4, 6), {"layout": "tiled"}, ValueError, "layout is 'tiled'"),
    ],
)
def test_settings_are_refused_with_what_fits(
    array: object, settings: dict[str, object], error: type[Exception], told: str
) -> None:
    made = gp.zeros(array) if isinstance(array, tuple) else array
    made = gp.zeros((4, 6), array) if isinstance(array, str) else made
    with pytest.raises(error, match=told):
        gp.Texture(made, **settings)


def test_memory_that_is_not_aligned_is_refused() -> None:
    whole = gp.Texture.empty((300,))
    gp.Texture(whole, layout="linear").close()
    with pytest.raises(ValueError, match=r"multiple of 512 bytes.*gp\.Texture\.empty\(\)"):
        gp.Texture(whole[1:], layout="linear")
    with pytest.raises(ShapeError, match="one beside the other"):
        gp.Texture(whole[::2], layout="linear")
    with pytest.raises(ValueError, match="rows at one of 32"):
        gp.Texture(whole.reshape(100, 3), layout="pitched")


# ---- the pool's books


def blocks(name: str) -> list[int]:
    """Bytes of the live blocks of that name."""
    return [row[2] for row in _core.pool_blocks() if _core.name(row[4]) == name]


def test_the_pool_counts_and_shows_them() -> None:
    gp.synchronize()
    before = stats()
    image = gp.Texture(gp.zeros((100, 100), "uint8"), name="the image")
    assert blocks("the image") == [10000]
    assert stats()["used"] >= before["used"] + 10000
    surface = gp.Surface(gp.zeros((64, 64)), name="the canvas")
    sharing = gp.Texture(surface)
    assert blocks("the canvas") == [16384]
    surface.close()
    assert blocks("the canvas") == [16384]
    sharing.close()
    image.close()
    gp.synchronize()
    assert blocks("the canvas") == blocks("the image") == []
    array = gp.Texture.empty((1000,))
    used = stats()["used"]
    gp.Texture(array, layout="linear")
    assert stats()["used"] == used


def test_a_limit_holds_for_them() -> None:
    alone(__file__, "limited")


def limited() -> None:
    array, quota = gp.zeros((1024, 1024)), stats()["quota"]
    gp.memory.trim()
    set_limit(stats()["used"] + (6 << 20))
    try:
        image = gp.Texture(array)
        with pytest.raises(OutOfMemoryError, match="texture"):
            gp.Texture(array, "linear", name="one too many")
        assert blocks("one too many") == []
        image.close()
        second = gp.Texture(array)
    finally:
        set_limit(quota)
    found: NDArray = fetch(second, "tex2D<T>(t, p[0], p[1])", np.float32([[3, 4]]))
    assert found[0, 0] == 0
