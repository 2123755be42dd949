"""Products by CUTLASS: the order of tiles, what a pretended device launches, what is refused, and the compile."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import GPUError, ModelNotFoundError
from pygpukit.jit.compile import nvrtc
from pygpukit.jit.cutlass import place
from pygpukit.jit.inspect.cubin import read_cubin
from pygpukit.kernels import KernelSpec, builder, registry
from pygpukit.kernels.planning import planning
from pygpukit.models import cutlass
from pygpukit.ops.matmul import choose
from pygpukit.ops.matmul.cutlass import grouped, mixed, product, raster, room, scaled
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import tensor_maps

SEED = secrets.randbits(32)
pytestmark = pytest.mark.skipif(bool(nvrtc.missing()), reason="what is launched depends on the compiler: needs NVRTC")


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests go without CUTLASS."""
    monkeypatch.delenv("PYGPUKIT_NO_CUTLASS", raising=False)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for models in which the headers seem to be."""
    monkeypatch.setenv("PYGPUKIT_MODELS", str(tmp_path))
    place.folder().joinpath("include").mkdir(parents=True)
    return tmp_path


def divided(x: int, by: dict[str, int]) -> int:
    """As the kernel divides."""
    if by["multiplier"]:
        x = (x + by["more"]) * by["multiplier"] >> 64
    return x >> by["shift"]


def test_divisions_are_exact(rng: np.random.Generator) -> None:
    divisors = [*range(1, 70), *(2**e + d for e in range(6, 31) for d in (-1, 0, 1)), *rng.integers(1, 2**31, 200)]
    for divisor in map(int, divisors):
        by = raster.division(divisor)
        assert by["multiplier"] < 2**64 and by["divisor"] == divisor
        near = [divisor * int(q) + d for q in rng.integers(0, 2**20, 5) for d in (-1, 0, 1)]
        for x in map(int, [0, 1, divisor, *near, *rng.integers(0, 2**44, 20)]):
            if x >= 0:
                assert divided(x, by) == x // divisor, f"{x} // {divisor}, seed {SEED}"


def places(tiles: raster.Raster, products: int, cluster: int) -> list[tuple[int, int, int]]:
    """Row, column and product of each block's tile, as CUTLASS's scheduler counts."""
    found = []
    batch, line = raster.division(tiles.product), raster.division(tiles.line)
    minor_cluster, major_cluster = (1, cluster) if tiles.along_m else (cluster, 1)
    for index in range(tiles.product * products):
        rank, matrix = index % cluster, divided(index, batch)
        number, major = divmod((index - matrix * tiles.product) // minor_cluster, major_cluster)
        extra = number >> tiles.swizzle
        turn = divided(extra, line)
        minor = ((turn << tiles.swizzle) + number % (1 << tiles.swizzle)) * minor_cluster
        major += (extra - turn * tiles.line) * major_cluster
        minor += 0 if tiles.along_m else rank
        found.append((major, minor, matrix) if tiles.along_m else (minor, major, matrix))
    return found


def test_every_tile_has_its_block(rng: np.random.Generator) -> None:
    for _ in range(100):
        m, n = (int(x) for x in rng.integers(1, 4000, 2))
        products = int(rng.integers(1, 4))
        rows, columns = product.SHAPES[rng.integers(len(product.SHAPES))].rows, int(rng.choice([128, 256]))
        tiles = raster.of(m, n, products, rows, columns, 2)
        found = places(tiles, products, 2)
        assert len(set(found)) == len(found)
        wanted = {(i, j, p) for i in range(-(-m // rows)) for j in range(-(-n // columns)) for p in range(products)}
        assert wanted <= set(found), f"{m} x {n} of {rows} x {columns}, seed {SEED}"
        pairs = zip(found[::2], found[1::2], strict=True)
        assert all(a[0] + 1 == b[0] and a[0] % 2 == 0 and a[1:] == b[1:] for a, b in pairs)  # a cluster shares columns


LAYOUTS = [
    ("rows, columns", "128, 128, 2, false, false", (128, 64)),
    ("rows, rows", "128, 128, 2, false, true", (128, 32)),
    ("columns, columns", "128, 128, 2, true, false", (64, 64)),
    ("columns, rows", "128, 128, 2, true, true", (64, 32)),
]


@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize(("layouts", "expression", "boxes"), LAYOUTS)
def test_what_is_launched(
    layouts: str, expression: str, boxes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[tuple[Any, ...]] = []
    maps: list[tuple[int, ...]] = []
    monkeypatch.setattr(product, "launch", lambda *launched: launches.append(launched))
    told = tensor_maps.tail
    monkeypatch.setattr(tensor_maps, "tail", lambda *fields, **more: (maps.append(fields), told(*fields, **more))[1])
    a, b = gp.zeros((520, 1032), "bfloat16"), gp.zeros((1032, 776), "bfloat16")
    left, right = layouts.split(", ")
    with planning("sm_90a"):
        x = gp.zeros((1032, 520), "bfloat16").T if left == "columns" else a
        y = gp.zeros((776, 1032), "bfloat16").T if right == "columns" else b
        gp.matmul(x, y, backend="cutlass")
        plan = gp.matmul_plan(x, y, backend="cutlass")
    assert plan.backend == "cutlass" and str(plan.tile) == "128x128" and "as backend='cutlass' asks" in plan.reason
    ((spec, grid, block, call, *arguments),) = launches
    assert spec.expression == f"pk::cutlass_product<cutlass::bfloat16_t, {expression}>"
    assert grid == (42, 1, 1) and block == (384, 1, 1)  # 6 x 7 tiles, 520 rows filled up to whole clusters
    assert len(call) % 64 == 0 and call[48:60] == np.array([520, 776, 1032], np.int32).tobytes()
    # Each address is followed by the rest of its map, the first at a multiple of 64 bytes.
    assert [len(x) if isinstance(x, bytes) else 8 for x in arguments] == [8, 120] * 3
    lengths = {"rows": ((1032, 520), (776, 1032)), "columns": ((520, 1032), (1032, 776))}
    assert maps == [
        (2, boxes[0], *lengths[left][0], lengths[left][0][0], 1, 0),
        (2, boxes[1], *lengths[right][1], lengths[right][1][0], 1, 0),
        (2, 64, 776, 520, 776, 1, 520 * 776),
    ]


@pytest.mark.usefixtures("headers")
def test_rows_that_are_no_whole_16_bytes_are_written_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[tuple[Any, ...]] = []
    monkeypatch.setattr(product, "launch", lambda *launched: launches.append(launched))
    with planning("sm_90a"):
        out = gp.matmul(gp.zeros((5, 7), "float16"), gp.zeros((7, 9), "float16"), backend="cutlass")
        stack = gp.matmul(gp.zeros((3, 5, 8), "float16"), gp.zeros((3, 8, 16), "float16"), backend="cutlass")
    assert out.shape == (5, 9) and stack.shape == (3, 5, 16)
    assert launches[0][-2].shape == (5, 16)
    assert launches[1][-2].shape == (3, 5, 16) and launches[1][1] == (6, 1, 1)


SCALINGS: list[
    tuple[Any, Any, bool, list[int], float]
] = [  # of a, of b, by blocks, steps (rows, columns; of k), factor
    (None, None, False, [0, 0, 0, 0], 1.0),
    (0.5, (1,), False, [0, 0, 0, 0], 0.5),
    ((300,), (520,), False, [1, 1, 0, 0], 1.0),
    ((300, 3), (3, 5), True, [3, 1, 1, 5], 1.0),
    (None, (3, 5), True, [0, 1, 0, 5], 1.0),
    ((3, 3), (3, 5), True, [3, 1, 1, 5], 1.0),  # blocks of 128 rows: one for each row
    ((300, 3), 0.25, True, [3, 0, 1, 0], 0.25),
]


@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize(("left", "right", "by_block", "steps", "factor"), SCALINGS)
def test_scales_are_handed_over(
    left: Any, right: Any, by_block: bool, steps: list[int], factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[tuple[Any, ...]] = []
    monkeypatch.setattr(scaled, "launch", lambda *launched: launches.append(launched))

    def scale(said: Any) -> Any:
        return gp.ones(said) if isinstance(said, tuple) else said

    with planning("sm_90a"):
        a, b = gp.zeros((300, 384), "float8_e4m3"), gp.zeros((520, 384), "float8_e4m3").T
        out = gp.matmul_fp8(a, b, scale(left), scale(right), out_dtype="bfloat16", backend="cutlass")
        assert gp.ops.matmul_fp8_plan(a, b, scale(left), scale(right), backend="cutlass").backend == "cutlass"
    assert out.shape == (300, 520)
    ((spec, grid, _, call, *arguments),) = launches
    flag = "true" if by_block else "false"
    assert spec.expression == f"pk::cutlass_scaled<cutlass::float_e4m3_t, cutlass::bfloat16_t, 128, 2, {flag}>"
    assert grid == (20, 1, 1) and call[48:60] == np.array([300, 520, 384], np.int32).tobytes()  # 4 x 5 tiles
    packed, of_rows, of_columns = arguments[-3:]
    has = [isinstance(left, tuple), isinstance(right, tuple)]
    assert packed == np.array([*steps, *has], np.int32).tobytes() + np.float32(factor).tobytes()
    for is_there, values, said in zip(has, (of_rows, of_columns), (left, right), strict=True):
        shape = (384, 3) if said == (3, 3) else said
        assert values.shape == (shape if is_there else (1,) if by_block else (300, 520))


@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize(
    ("m", "n", "columns"),
    # turns of 66 clusters of 256 rows: 32 against 21, 8 against 6, 14 against 10, 2 against 2, 1 against 1
    [(8192, 8192, 192), (4096, 4096, 128), (4096, 7168, 192), (2048, 2048, 128), (1, 8192, 128)],
)
def test_a_wide_tile_is_taken_where_its_turns_end_first(
    m: int, n: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[tuple[Any, ...]] = []
    maps: list[tuple[int, ...]] = []
    monkeypatch.setattr(scaled, "launch", lambda *launched: launches.append(launched))
    told = tensor_maps.tail
    monkeypatch.setattr(tensor_maps, "tail", lambda *fields, **more: (maps.append(fields), told(*fields, **more))[1])
    with planning("sm_90a"):
        a, b = gp.empty((m, 128), "float8_e4m3"), gp.empty((n, 128), "float8_e4m3").T
        gp.matmul_fp8(a, b, out_dtype="bfloat16", backend="cutlass")
        gp.matmul_fp8(a, b, gp.ones((m, 1)), out_dtype="bfloat16", backend="cutlass")
    of_one, of_blocks = (launched[0].expression for launched in launches)
    assert f"cutlass::bfloat16_t, {columns}, 2, false>" in of_one
    assert "cutlass::bfloat16_t, 128, 2, true>" in of_blocks
    assert [fields[1] for fields in maps] == [128, columns // 2, 64, 128, 64, 64]  # lines of a copy


@pytest.mark.usefixtures("headers")
def test_scales_of_which_there_is_no_kernel_are_refused() -> None:
    with planning("sm_90a"):
        a, b = gp.zeros((300, 384), "float8_e4m3"), gp.zeros((520, 384), "float8_e4m3").T
        with pytest.raises(GPUError, match=r"backend='cutlass': beside scales by blocks of k .* one for all of b"):
            gp.matmul_fp8(a, b, None, gp.ones((3, 520)), backend="cutlass")
        with pytest.raises(GPUError, match="backend='cutlass': CUTLASS's kernels take bfloat16 or float16 times fp8"):
            gp.matmul_fp8(a, b.astype("float16"), backend="cutlass")
        with pytest.raises(GPUError, match="beside a weight of fp8 CUTLASS's kernels take scales of all, of rows"):
            gp.matmul_fp8(a.astype("float16"), b, None, gp.ones((3, 5)), backend="cutlass")


@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize("result", ["float16", "float32"])
def test_a_weight_of_fp8_is_the_left_operand(result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[tuple[Any, ...]] = []
    maps: list[tuple[int, ...]] = []
    monkeypatch.setattr(mixed, "launch", lambda *launched: launches.append(launched))
    told = tensor_maps.tail
    monkeypatch.setattr(tensor_maps, "tail", lambda *fields, **more: (maps.append(fields), told(*fields, **more))[1])
    with planning("sm_90a"):
        x, w = gp.zeros((300, 384), "float16"), gp.zeros((520, 384), "float8_e5m2").T
        scales = gp.ones(300), gp.ones((520, 2))[:, 0]
        out = gp.matmul_fp8(x, w, *scales, out_dtype=result, backend="cutlass")
        plan = gp.ops.matmul_fp8_plan(x, w, *scales, backend="cutlass")
        assert gp.ops.matmul_fp8_plan(x, w, *scales).backend != "cutlass", "by name alone: its bits are its own"
    assert plan.backend == "cutlass" and plan.reason.startswith("fp8 decoded to float16 on the way to tensor cores")
    ((spec, grid, block, call, *arguments),) = launches
    types = "cutlass::float_e5m2_t, cutlass::half_t, " + {"float16": "cutlass::half_t", "float32": "float"}[result]
    weight, others = types.split(", ", 1)
    assert spec.expression == f"pk::cutlass_mixed<{weight}, void, {others}, 128, 2>"
    assert grid == (18, 1, 1) and block == (384, 1, 1)  # 6 x 3 tiles: 520 lines of the weight in whole clusters
    assert call[48:60] == np.array([520, 300, 384], np.int32).tobytes()
    packed, of_weight, of_rows = arguments[-3:]
    assert packed == np.array([2, 1, 1, 1, 3, 1], np.int32).tobytes() + np.float32(1).tobytes()
    assert (of_weight.shape, of_rows.shape, out.shape) == ((1039,), (300,), (300, 520))  # 520 scales, a step of 2
    of_result = (out.itemsize, 64, 520, 300, 520, 1, 300 * 520)
    assert maps == [(1, 128, 384, 520, 384, 1, 0), (2, 64, 384, 300, 384, 1, 0), of_result]


@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize(("bits", "scales"), [(8, None), (8, "columns"), (4, "columns"), (4, "groups"), (8, "groups")])
def test_a_weight_of_integers_is_read_as_it_is_stored(
    bits: int, scales: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[tuple[Any, ...]] = []
    maps: list[tuple[tuple[int, ...], dict[str, Any]]] = []
    monkeypatch.setattr(mixed, "launch", lambda *launched: launches.append(launched))
    told = tensor_maps.tail
    monkeypatch.setattr(
        tensor_maps, "tail", lambda *fields, **more: (maps.append((fields, more)), told(*fields, **more))[1]
    )
    with planning("sm_90a"):
        x, w = gp.zeros((300, 512), "bfloat16"), gp.zeros((520, 64 * bits), "uint8" if bits == 4 else "int8").T
        scale = {"columns": gp.ones(520, "float32"), "groups": gp.ones((2, 520), "bfloat16")}.get(scales or "")
        out = gp.ops.matmul_mixed(x, w, scale, backend="cutlass")
    ((spec, _, _, call, *arguments),) = launches
    types = (
        ("cutlass::int4b_t" if bits == 4 else "signed char")
        + ", "
        + ("void" if scales != "groups" else "cutlass::bfloat16_t")
    )
    assert spec.expression == f"pk::cutlass_mixed<{types}, cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 2>"
    assert call[48:60] == np.array([520, 300, 512], np.int32).tobytes()
    line, per_group = 128 * bits // 8, 2 if scales == "groups" else 4
    of_scales = [((2, 1, 520, 2, 520, 1, 0), {"line": 256, "swizzled": False})] if scales == "groups" else []
    assert maps == [
        ((1, 128, 64 * bits, 520, 64 * bits, 1, 0), {"line": line}),
        ((2, 64, 512, 300, 512, 1, 0), {}),
        *of_scales,
        ((2, 64, 520, 300, 520, 1, 300 * 520), {"to_tf32": False}),
    ]
    assert [len(x) if isinstance(x, bytes) else 8 for x in arguments[:8]] == [8, 120] * 4
    packed, of_weight, _ = arguments[-3:]
    has = int(scales == "columns")
    assert packed == np.array([has, 0, has, 0, per_group, 4 // per_group], np.int32).tobytes() + np.float32(1).tobytes()
    assert of_weight.shape == ((520,) if has else (300, 520)) and out.shape == (300, 520)


@pytest.mark.usefixtures("headers")
def test_float32_is_read_along_k(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[tuple[Any, ...]] = []
    maps: list[tuple[tuple[int, ...], dict[str, bool]]] = []
    monkeypatch.setattr(product, "launch", lambda *launched: launches.append(launched))
    told = tensor_maps.tail
    monkeypatch.setattr(tensor_maps, "tail", lambda *fields, **more: (maps.append((fields, more)), told(*fields))[1])
    with planning("sm_90a"):
        a, b = gp.zeros((300, 130)), gp.zeros((130, 260))
        gp.matmul(a, b, tf32=True, backend="cutlass")
        assert "float32 rounded to tf32, summed in float32, by CUTLASS" in str(
            gp.matmul_plan(a, b, tf32=True, backend="cutlass")
        )
    ((spec, *_),) = launches
    assert spec.expression == "pk::cutlass_product<float, 128, 128, 2, false, false>"
    assert maps == [  # rows of 130 are filled up to 132, columns are turned; the result is not rounded
        ((4, 128, 130, 300, 132, 1, 0), {}),
        ((4, 64, 130, 260, 132, 1, 0), {}),
        ((4, 64, 260, 300, 260, 1, 300 * 260), {"to_tf32": False}),
    ]


@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize("by_columns", [True, False])
def test_groups_are_handed_over(by_columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[tuple[Any, ...]] = []
    maps: list[tuple[int, ...]] = []
    monkeypatch.setattr(grouped, "launch", lambda *launched: launches.append(launched))
    told = tensor_maps.tail
    monkeypatch.setattr(tensor_maps, "tail", lambda *fields, **more: (maps.append(fields), told(*fields, **more))[1])
    with planning("sm_90a"):
        x, counts = gp.zeros((700, 136), "float16"), gp.zeros(5, "int32")
        w = gp.zeros((5, 260, 136), "float16").swapaxes(1, 2) if by_columns else gp.zeros((5, 136, 264), "float16")
        out = gp.grouped_matmul(x, w, counts, backend="cutlass")
    n = 260 if by_columns else 264
    assert out.shape == (700, n)
    ((spec, grid, block, call, a, left, b, right, ends, into),) = launches
    flag = "false" if by_columns else "true"
    assert spec.expression == f"pk::cutlass_grouped<cutlass::half_t, 128, 128, {flag}>"
    assert grid == (2 * (2 + 5 + 1) * 3, 1, 1) and block == (384, 1, 1)
    assert call[:24] == np.array([700, n, 136, 5], np.int32).tobytes() + np.int64(264).tobytes()
    assert (ends.dtype, ends.shape, into.shape) == (gp.int64, (5,), (700, 264))  # rows of whole 16 bytes
    operand = (2, 64, 136, 260, 136, 5, 260 * 136) if by_columns else (2, 32, 264, 136, 264, 5, 264 * 136)
    assert maps == [(2, 128, 136, 700, 136, 1, 0), operand]
    assert len(left) == len(right) == 120 and (a.shape, b.size) == ((700, 136), w.size)


def tiles_of(ends: list[int], rows: int, n: int, clusters: int) -> list[tuple[int, int, int]]:
    """First row, tile of columns and group of each block's tiles, as grouped.cu counts."""
    across, found = -(-n // 128), []
    for block in range(2 * clusters):
        turn, group, begin, before = block // 2, 0, 0, 0
        while group <= len(ends):
            end = ends[group] if group < len(ends) else rows
            below = -(-(end - begin) // 256)
            if turn - before < below * across:
                place = turn - before
                found.append((begin + (place % below * 2 + block % 2) * 128, place // below, group))
                turn += clusters
            else:
                begin, before, group = end, before + below * across, group + 1
    return found


def test_every_row_of_a_group_has_its_tile(rng: np.random.Generator) -> None:
    for _ in range(60):
        groups, n, clusters = (int(x) for x in rng.integers(1, (9, 700, 70)))
        counts = rng.integers(0, 600, groups) * rng.integers(0, 2, groups)
        rows = int(counts.sum() + rng.integers(0, 300))
        ends = np.cumsum(counts).tolist()
        found = tiles_of(ends, rows, n, clusters)
        assert len(set(found)) == len(found), f"seed {SEED}"
        owner = np.searchsorted(ends, np.arange(rows), side="right")  # of rows after the last end: one more
        made = np.zeros((rows, -(-n // 128)), int)
        for row, column, group in found:
            made[row : row + 128, column] += owner[row : row + 128] == group
        assert np.all(made == 1), f"{counts} of {rows} by {clusters} clusters, seed {SEED}"
        assert len(found) <= 2 * grouped._tiles(rows, groups, n)


def test_groups_that_it_does_not_take_are_refused(headers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, counts = gp.zeros((32, 16), "float16"), gp.zeros((2, 16, 8), "float16"), gp.zeros(2, "int32")

    def said(x: gp.GPUArray, w: gp.GPUArray) -> str:
        with pytest.raises(GPUError) as caught:
            gp.grouped_matmul(x, w, counts, backend="cutlass")
        return str(caught.value)

    assert "the simulated device does not run CUTLASS's kernels" in said(x, w)
    with pytest.raises(ValueError, match=r"backend='tile'; it is 'cutlass', or None"):
        gp.grouped_matmul(x, w, counts, backend="tile")
    with planning("sm_90a"):
        assert "multiply float16 and bfloat16, not float32" in said(x.astype("float32"), w.astype("float32"))
        assert gp.grouped_matmul(x[:0], w, counts, backend="cutlass").shape == (0, 8)
    with planning("sm_80"):
        assert "those of SM 9.0; this device is SM 8.0" in said(x, w)
    monkeypatch.setenv("PYGPUKIT_MODELS", str(headers / "elsewhere"))
    with planning("sm_90a"):
        assert "fetch them with: pygpukit get cutlass; leave backend out" in said(x, w)


def refused(*settings: Any, **more: Any) -> str:
    with pytest.raises(GPUError) as caught:
        gp.matmul(*settings, backend="cutlass", **more)
    return str(caught.value)


def test_refusals_name_what_is_wrong(headers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = gp.zeros((32, 32), "float16")
    stack = gp.zeros((2, 32, 32), "float16")
    assert "the simulated device does not run CUTLASS's kernels" in refused(half, half)
    with planning("sm_90a"):
        assert "and float32 with tf32=True, not float32" in refused(half.astype("float32"), half.astype("float32"))
        assert "this one repeats some" in refused(half, stack)
    with planning("sm_80"):
        assert "those of SM 9.0; this device is SM 8.0" in refused(half, half)
    monkeypatch.setenv("PYGPUKIT_NO_CUTLASS", "1")
    with planning("sm_90a"):
        assert "PYGPUKIT_NO_CUTLASS=1 forbids it" in refused(half, half)
    monkeypatch.delenv("PYGPUKIT_NO_CUTLASS")
    monkeypatch.setenv("PYGPUKIT_MODELS", str(headers / "elsewhere"))
    with planning("sm_90a"):
        assert "fetch them with: pygpukit get cutlass; leave backend out" in refused(half, half)
        assert gp.matmul_plan(half, half).backend != "cutlass"


@pytest.mark.usefixtures("headers")
def test_plans_take_it_where_the_table_says_that_it_is_faster() -> None:
    def plan(m: int, n: int, k: int, dtype: str = "bfloat16", **settings: Any) -> Any:
        return gp.matmul_plan(gp.empty((m, k), dtype), gp.empty((k, n), dtype), **settings)

    with planning("sm_90a"):
        kernels = choose._TENSOR_CORES[0]
        rest = [kernel for kernel in kernels if kernel not in (product, scaled)]
        for m, n, k in ((4096, 4096, 4096), (8192, 1024, 8192), (1024, 1024, 1024), (17, 4096, 4096)):
            p = Problem.of("half", gp.empty((m, k), "bfloat16"), gp.empty((k, n), "bfloat16"), gp.bfloat16)
            taking = [kernel.time_us(p) for kernel in rest if not kernel.refusal(p)]
            faster = product.time_us(p) < min(taking)
            chosen = plan(m, n, k)
            assert (chosen.backend == "cutlass") == faster
            if faster:
                assert chosen.reason.endswith("faster than the other kernels by times of an H100, with the same bits")
        assert plan(1024, 1024, 1024).backend != "cutlass"
        assert scaled.refusal(p) == product.refusal(replace(p, family="tf32")) == room.UNMEASURED
        assert "finish a product in their launch" in product.refusal(replace(p, epilogue="elements"))


def test_units_are_compiled_ahead_where_the_headers_are(headers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [unit for one in (product, scaled, mixed, grouped) for unit in registry.units(one.SOURCE.source)]
    assert len(listed) == 64 and all(unit.is_ahead("sm_90a") and not unit.is_ahead("sm_80") for unit in listed)
    monkeypatch.setenv("PYGPUKIT_MODELS", str(headers / "elsewhere"))
    assert not any(unit.is_ahead("sm_90a") for unit in listed)
    assert list(registry.units(product.SOURCE.source)) == listed[:18]  # and found in a bundle without them


@pytest.mark.timeout(900)
@pytest.mark.turns(2)  # each takes half a minute of a processor
@pytest.mark.parametrize(
    ("source", "kind", "instruction"),
    [
        (product.SOURCE, "<cutlass::bfloat16_t, 128, 256, 2, false, true>", "m64n256k16.f32.bf16.bf16"),
        (grouped.SOURCE, "<cutlass::bfloat16_t, 128, 128, true>", "m64n128k16.f32.bf16.bf16"),
        (scaled.SOURCE, "<cutlass::float_e4m3_t, cutlass::bfloat16_t, 128, 2, true>", "m64n128k32.f32.e4m3.e4m3"),
        (scaled.SOURCE, "<cutlass::float_e5m2_t, cutlass::half_t, 192, 2, false>", "m64n192k32.f32.e5m2.e5m2"),
        (mixed.SOURCE, "<cutlass::float_e4m3_t, void, cutlass::bfloat16_t, float, 128, 2>", "m64n128k16.f32.bf16.bf16"),
        (mixed.SOURCE, "<cutlass::int4b_t, cutlass::half_t, cutlass::half_t, float, 128, 2>", "m64n128k16.f32.f16.f16"),
    ],
)
def test_a_kernel_compiles_for_sm_90a(source: KernelSpec, kind: str, instruction: str) -> None:
    if missing := nvrtc.missing():
        pytest.skip(missing)
    try:
        cutlass.get()
    except ModelNotFoundError as error:
        pytest.skip(f"the headers of CUTLASS are not here: {error}")
    (unit,) = (one for one in registry.units(source.source) if one.expressions[0].endswith(kind))
    compiled = builder.compile_unit(unit, "sm_90a")
    kernels = read_cubin(compiled.image).kernels
    (kernel,) = (kernels[name] for name in kernels if "cutlass_" in name)
    assert kernel.local_bytes == 0 and kernel.registers <= 168
    assert f"wgmma.mma_async.sync.aligned.{instruction}" in compiled.ptx
