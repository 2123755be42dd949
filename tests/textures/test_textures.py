"""Textures: every function, filter, address mode, shape and type against the programming guide's formulas, on both
backends; on a device within one step of the filter's fraction."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from texture_kernels import TYPES, fetch
from texture_model import STEP, fetched, normalised, on_cube

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")
SIZES = (7, 5, 3)  # width, height, depth
CALLS = {1: "tex1D<T>(t, p[0])", 2: "tex2D<T>(t, p[0], p[1])", 3: "tex3D<T>(t, p[0], p[1], p[2])"}


def places(
    generator: np.random.Generator, sizes: tuple[int, ...], normalized: bool, filter: str = "linear", count: int = 300
) -> NDArray:
    """Random places in and around a texture, and near the middles and edges of its elements.

    Never where the last bit of a float decides: with a point filter at least 1/128 from the edges of elements, since a
    device may round a place to 1/256, and else between steps of a fraction.
    """
    out = generator.uniform(-1.4, 2.4, (count, len(sizes)))
    out[: count // 3] = generator.integers(-2, 9, (count // 3, len(sizes))) / 2 / np.asarray(sizes)
    parts, offset = (64, 1 / 128) if filter == "point" else (1024, 1 / 4096)
    texels = np.floor(out * np.asarray(sizes) * parts) / parts + offset
    return (texels / np.asarray(sizes) if normalized else texels).astype(np.float32)


def close(
    found: NDArray, expected: NDArray, span: float, linear: bool, axes: int = 1, exact_model: bool = False
) -> None:
    """Equal, or with a linear filter within one step of each axis' fraction of the span of values; on the simulated
    device equal, where the model has its fractions."""
    steps = 0 if not linear or (exact_model and gp.backend() == "sim") else axes
    allowed = (steps * STEP + 2e-6) * span
    assert np.all(np.abs(found - expected) <= allowed), np.abs(found - expected).max()


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("address", ["clamp", "wrap", "mirror", "border"])
def test_filters_and_address_modes(axes: int, filter: str, normalized: bool, address: str) -> None:
    generator = np.random.default_rng()
    sizes = SIZES[:axes]
    values = generator.normal(size=sizes[::-1]).astype(np.float32)
    at = places(generator, sizes, normalized, filter)
    modes = [address, "clamp", "mirror"][:axes]
    with gp.Texture(gp.from_numpy(values), filter, tuple(modes), normalized, border=2.5) as texture:
        found = fetch(texture, CALLS[axes], at)
    model = fetched(
        values[..., None].astype(np.float64), list(at.astype(np.float64).T), modes,
        normalized=normalized, linear=filter == "linear", border=(2.5,) * 4,
    )  # fmt: skip
    close(found, model, float(np.ptp(values)) + 5, filter == "linear", axes, exact_model=True)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", [*TYPES, "float16"])
def test_types_are_read_exactly(dtype: str, channels: int) -> None:
    generator = np.random.default_rng()
    shape = (5, 7, channels) if channels > 1 else (5, 7)
    values = generator.integers(0, 1 << 32, shape, np.uint32)
    floats = dtype.startswith("float")
    source = generator.normal(size=shape).astype(dtype) if floats else values.astype(dtype)
    at = np.argwhere(np.ones((7, 5))).astype(np.float32) + 0.5
    kind = "float32" if floats else dtype
    with gp.Texture(gp.from_numpy(source), channels=channels) as texture:
        found = fetch(texture, CALLS[2], at, kind, channels)
        pointer = fetch(texture, "T v; tex2D(&v, t, p[0], p[1]); put(v, out, i);", at, kind, channels)
    x, y = at.astype(int).T
    expected = source.reshape(5, 7, channels)[y, x].astype(kind)
    assert found.tobytes() == expected.tobytes() == pointer.tobytes()


@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_integers_as_normalised_floats(dtype: str, filter: str) -> None:
    generator = np.random.default_rng()
    limits = np.iinfo(dtype)
    source = generator.integers(limits.min, limits.max, (5, 7, 4), dtype, endpoint=True)
    source[0, 0] = limits.min
    at = places(generator, (7, 5), False, filter)
    at[0] = 0.5
    with gp.Texture(gp.from_numpy(source), filter, read="normalized", channels=4) as texture:
        found = fetch(texture, CALLS[2], at, "float32", 4)
    model = fetched(normalised(source), list(at.astype(np.float64).T), ["clamp"] * 2, linear=filter == "linear")
    close(found, model, 2.0, filter == "linear", 2, exact_model=True)


@pytest.mark.parametrize("axes", [1, 2])
def test_layers(axes: int) -> None:
    generator = np.random.default_rng()
    sizes = SIZES[:axes]
    values = generator.normal(size=(4, *sizes[::-1])).astype(np.float32)
    at = places(generator, sizes, False)
    low, high = (
        (-2, 7) if gp.backend() == "sim" else (0, 4)
    )  # of a layer outside the manual says nothing for negative ones
    layer = generator.integers(low, high, len(at))
    rows = np.column_stack([at, layer]).astype(np.float32)
    call = f"tex{axes}DLayered<T>(t, {', '.join(f'p[{i}]' for i in range(axes))}, (int)p[{axes}])"
    with gp.Texture(gp.from_numpy(values), "linear", layered=True) as texture:
        found = fetch(texture, call, rows)
    expected = np.empty_like(found, dtype=np.float64)
    for number in range(4):
        here = np.clip(layer, 0, 3) == number
        points = list(at[here].astype(np.float64).T)
        expected[here] = fetched(values[number][..., None].astype(np.float64), points, ["clamp"] * axes, linear=True)
    close(found, expected, float(np.ptp(values)), True, axes)


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("filter", ["point", "linear"])
def test_cubemaps(filter: str, layered: bool) -> None:
    generator = np.random.default_rng()
    values = generator.normal(size=(3 if layered else 1, 6, 8, 8)).astype(np.float32)
    directions = generator.uniform(-1, 1, (600, 3))
    face, s, t = on_cube(directions.astype(np.float32).astype(np.float64))
    inner = (np.abs(s - 0.5) < 0.43) & (np.abs(t - 0.5) < 0.43)  # devices differ across the edges of faces
    fractions = np.stack([s, t]) * 8 % 1
    inner &= np.all(np.abs(fractions - 0.5) < 0.48, axis=0)
    directions, face, s, t = directions[inner], face[inner], s[inner], t[inner]
    layer = generator.integers(0, len(values), len(directions))
    name = "texCubemapLayered<T>(t, p[0], p[1], p[2], (int)p[3])" if layered else "texCubemap<T>(t, p[0], p[1], p[2])"
    source = gp.from_numpy(values if layered else values[0])
    with gp.Texture(source, filter, cubemap=True, layered=layered) as texture:
        found = fetch(texture, name, np.column_stack([directions, layer]).astype(np.float32))
    for at in range(len(directions)):
        elements = values[layer[at], face[at]][..., None].astype(np.float64)
        model = fetched(
            elements, [s[at : at + 1], t[at : at + 1]], ["clamp"] * 2, normalized=True, linear=filter == "linear"
        )
        close(found[at], model[0], 1.01 * float(np.ptp(values)), filter == "linear", 2)


@pytest.mark.parametrize("mipmap_filter", ["point", "linear"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_levels(axes: int, mipmap_filter: str) -> None:
    generator = np.random.default_rng()
    sizes = (13, 9, 6)[:axes]
    values = generator.normal(size=sizes[::-1]).astype(np.float32)
    levels = [values]
    while max(levels[-1].shape) > 1:
        level = levels[-1]
        for axis in range(axes):
            count = level.shape[axis] // 2
            if count:
                level = level.take(range(0, 2 * count, 2), axis) / 2 + level.take(range(1, 2 * count, 2), axis) / 2
        levels.append(level)
    at = generator.uniform(0, 1, (200, axes)).astype(np.float32)
    level = (generator.integers(-4, 4 * len(levels), len(at)) / 4 + 1 / 16).astype(np.float32)
    arguments = ", ".join(f"p[{i}]" for i in range(axes))
    rows = np.column_stack([at, level]).astype(np.float32)
    settings = {"filter": "linear", "normalized": True, "mipmaps": "mean", "mipmap_filter": mipmap_filter}
    with gp.Texture(gp.from_numpy(values), **settings) as texture:
        found = fetch(texture, f"tex{axes}DLod<T>(t, {arguments}, p[{axes}])", rows)
        plain = fetch(texture, f"tex{axes}D<T>(t, {arguments})", rows)
        steep = 2.0 / sizes[0]  # two elements a step: the first level
        gradients = {
            1: f"tex1DGrad<T>(t, p[0], {steep}f, 0.f)",
            2: f"tex2DGrad<T>(t, p[0], p[1], float2{{{steep}f, 0.f}}, float2{{0.f, 0.f}})",
            3: f"tex3DGrad<T>(t, p[0], p[1], p[2], float4{{{steep}f}}, float4{{}})",
        }
        steps = fetch(texture, gradients[axes], rows)

    def of(number: int) -> NDArray:
        elements, points = levels[number][..., None].astype(np.float64), list(at.astype(np.float64).T)
        return fetched(elements, points, ["clamp"] * axes, normalized=True, linear=True)[:, 0]

    every = np.array([of(number) for number in range(len(levels))])
    wanted = np.clip(level, 0, len(levels) - 1).astype(np.float64)
    if mipmap_filter == "point":
        expected = every[np.floor(wanted + 0.5).astype(int), np.arange(len(at))]
    else:
        low = np.floor(wanted).astype(int)
        high = np.minimum(low + 1, len(levels) - 1)
        every_place = np.arange(len(at))
        expected = every[low, every_place] * (1 - wanted + low) + every[high, every_place] * (wanted - low)
    span = float(np.ptp(values))
    close(found[:, 0], expected, span, True, axes + 1)
    close(plain[:, 0], every[0], span, True, axes)
    close(steps[:, 0], every[1], span, True, axes + 1)


def test_levels_of_layers_and_cubes() -> None:
    big, small = np.float32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]), np.float32([[[10]], [[20]]])
    settings = {"normalized": True, "layered": True}
    at = np.float32([[0.25, 0.25, 0, 0], [0.75, 0.75, 1, 0], [0.5, 0.5, 0, 1], [0.5, 0.5, 1, 1]])
    with gp.Texture(gp.from_numpy(big), mipmaps=[gp.from_numpy(small)], **settings) as texture:
        found = fetch(texture, "tex2DLayeredLod<T>(t, p[0], p[1], (int)p[2], p[3])", at)
        far = "tex2DLayeredGrad<T>(t, p[0], p[1], (int)p[2], float2{p[3], 0.f}, float2{0.f, 0.f})"
        steps = fetch(texture, far, at)
    assert found[:, 0].tolist() == steps[:, 0].tolist() == [1, 8, 10, 20]
    line = gp.from_numpy(np.float32([[1, 2], [3, 4]]))
    with gp.Texture(line, mipmaps=[gp.from_numpy(np.float32([[10], [20]]))], **settings) as texture:
        found = fetch(texture, "tex1DLayeredLod<T>(t, p[0], (int)p[2], p[3])", at)
        steps = fetch(texture, "tex1DLayeredGrad<T>(t, p[0], (int)p[2], p[3], 0.f)", at)
    assert found[:, 0].tolist() == steps[:, 0].tolist() == [1, 4, 10, 20]
    cube = gp.from_numpy(np.arange(24, dtype=np.float32).reshape(6, 2, 2))
    ends = gp.from_numpy(np.arange(100, 106, dtype=np.float32).reshape(6, 1, 1))
    rays = np.float32([[1, 0.1, 0.1, 1], [-1, 0.1, 0.1, 1], [0.1, 1, 0.1, 1], [0.1, 0.1, -1, 0], [0.1, -1, 0.1, 1]])
    with gp.Texture(cube, cubemap=True, mipmaps=[ends]) as texture:
        found = fetch(texture, "texCubemapLod<T>(t, p[0], p[1], p[2], p[3])", rays)
    assert found[:, 0].tolist() == [100, 101, 102, 20, 103]
    both, all_ends = (gp.from_numpy(np.stack([one.to_numpy()] * 2)) for one in (cube, ends))
    with gp.Texture(both, cubemap=True, layered=True, mipmaps=[all_ends]) as texture:
        found = fetch(texture, "texCubemapLayeredLod<T>(t, p[0], p[1], p[2], 1, p[3])", rays)
    assert found[:, 0].tolist() == [100, 101, 102, 20, 103]


def test_gather() -> None:
    generator = np.random.default_rng()
    values = generator.normal(size=(5, 7, 4)).astype(np.float32)
    at = (np.argwhere(np.ones((8, 6))) + generator.uniform(-0.4, 0.4, (48, 2))).astype(np.float32)
    with gp.Texture(gp.from_numpy(values), channels=4) as texture:
        found = [fetch(texture, f"tex2Dgather<T>(t, p[0], p[1], {channel})", at, channels=4) for channel in range(4)]
        first = fetch(texture, "tex2Dgather<T>(t, p[0], p[1])", at, channels=4)
    x, y = (np.floor(at - 0.5)).astype(int).T
    for channel in range(4):
        corners = [(x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y)]
        expected = [values[np.clip(j, 0, 4), np.clip(i, 0, 6), channel] for i, j in corners]
        assert np.array_equal(found[channel], np.stack(expected, axis=1))
    assert np.array_equal(first, found[0])


def test_linear_memory_is_the_arrays_own() -> None:
    array = gp.Texture.empty((1000,), "int32")
    array[...] = gp.from_numpy(np.arange(1000, dtype=np.int32))
    at = np.float32([[0], [7], [999]])
    with gp.Texture(array, layout="linear") as texture:
        found = fetch(texture, "tex1Dfetch<T>(t, (int)p[0])", at, "int32")
        assert found[:, 0].tolist() == [0, 7, 999]
        array[...] = array * 2
        gp.synchronize()
        assert fetch(texture, "tex1Dfetch<T>(t, (int)p[0])", at, "int32")[:, 0].tolist() == [0, 14, 1998]
        outside = fetch(texture, "tex1Dfetch<T>(t, (int)p[0])", np.float32([[-1], [1000]]), "int32")
    assert outside[:, 0].tolist() == [0, 0]


@pytest.mark.parametrize("channels", [1, 4])
def test_pitched_memory_is_the_arrays_own(channels: int) -> None:
    generator = np.random.default_rng()
    values = generator.normal(size=(5, 7, channels)).astype(np.float32)
    array = gp.Texture.empty((5, 7), channels=channels)
    array[...] = gp.from_numpy(values if channels > 1 else values[..., 0])
    at = places(generator, (7, 5), True)
    settings = {"filter": "linear", "address": ("wrap", "mirror"), "normalized": True, "layout": "pitched"}
    with gp.Texture(array, channels=channels, **settings) as texture:
        found = fetch(texture, CALLS[2], at, channels=channels)
    points = list(at.astype(np.float64).T)
    model = fetched(values.astype(np.float64), points, ["wrap", "mirror"], normalized=True, linear=True)
    close(found, model, float(np.ptp(values)), True, 2, exact_model=True)
