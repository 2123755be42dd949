"""Weights in blocks of few bits by tiles on the simulator, in checked mode: values by the bit, products beside float64,
a row's bits in any batch, and a model that is loaded so."""

from __future__ import annotations

import numpy as np
import pytest
from nn.random_blocks import random_blocks, values
from nn.test_in_blocks import doubles_of

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import ShapeError
from pygpukit.models.convert import convert
from pygpukit.models.dequantise import named
from pygpukit.nn.batch import Batch
from pygpukit.nn.embedding import embed
from pygpukit.nn.linear import in_blocks, in_tiles
from pygpukit.nn.linear.blocks import Blocks, Part
from pygpukit.nn.linear.layer import LinearBF16, norm_rows
from pygpukit.nn.norm import Norm


def by_tiles(kind: str, blocks: np.ndarray, columns: int, order: gp.GPUArray | None = None) -> Blocks:
    tiles = in_tiles.tiled(kind, gp.from_numpy(blocks), columns)
    return Blocks((Part(kind, tiles, order, True),), columns, as_dtype("bfloat16"))


def numbers(rng: np.random.Generator, rows: int, columns: int) -> gp.GPUArray:
    return gp.from_numpy(rng.standard_normal((rows, columns)).astype(np.float32)).astype("bfloat16")


def of(x: gp.GPUArray, rows: slice) -> gp.GPUArray:
    return gp.from_numpy(x.astype("float32").to_numpy()[rows]).astype("bfloat16")


@pytest.mark.parametrize("kind", in_tiles.KINDS)
def test_values_have_the_bits_of_the_formula(kernels_on_sim: None, kind: str) -> None:
    columns, count = 512, 64
    blocks = random_blocks(kind, count, columns, 1)
    weight = by_tiles(kind, blocks, columns)
    want = values(kind, blocks)
    assert in_tiles.takes(kind, count, columns) and weight.shape == want.shape
    assert weight.nbytes == count * in_tiles.row_bytes(kind, columns)
    np.testing.assert_array_equal(weight.to_numpy(), want)
    rounded = convert(want, as_dtype("float32"), as_dtype("bfloat16"))
    np.testing.assert_array_equal(weight.expanded().astype("float32").to_numpy(), doubles_of(rounded))
    np.testing.assert_array_equal(weight[16:48].to_numpy(), want[16:48])
    with pytest.raises(ShapeError, match="rows 16 to 40 of a weight by tiles cannot be taken: give multiples of 16"):
        weight[16:40]
    tokens, out = gp.from_numpy(np.array([63, 8, 16], np.int32)), gp.zeros((3, columns))
    embed(Batch(tokens, tokens, tokens), weight, None, out)
    np.testing.assert_array_equal(out.to_numpy(), want[[63, 8, 16]])


def test_numbers_of_no_usual_size_have_their_bits(kernels_on_sim: None) -> None:
    """NVFP4 divided by numbers for which a quotient is another computation, NaN and zeros with signs; MXFP4's ends."""
    blocks = random_blocks("NVFP4", 32, 256, 3)
    overall = np.array([-1e-33, -3e33, -7e-39, 2e38, -np.inf, 1e-40, -1.0, 0.0], np.float32)
    blocks.reshape(-1, 76)[:, :4] = np.resize(overall, 64).view(np.uint8).reshape(-1, 4)
    blocks.reshape(-1, 76)[::5, 4:12] = np.array([0, 0x80, 0x7F, 0xFF, 1, 0x81, 0x7E, 0xFE], np.uint8)
    with np.errstate(all="ignore"):
        want = values("NVFP4", blocks)
    np.testing.assert_array_equal(by_tiles("NVFP4", blocks, 256).to_numpy(), want)
    blocks = random_blocks("MXFP4", 32, 256, 3)
    blocks.reshape(-1, 68)[::3, :4] = np.array([0, 255, 1, 254], np.uint8)
    with np.errstate(all="ignore"):
        want = values("MXFP4", blocks)
    np.testing.assert_array_equal(by_tiles("MXFP4", blocks, 256).to_numpy(), want)


# (rows, n, units of 256, epilogue, biased), in turn, so that each kind has one and each case five
CASES = [(1, 96, 9, "store", True), (3, 64, 1, "add", True), (11, 32, 3, "silu", True)]


@pytest.mark.parametrize(("kind", "case"), [(kind, CASES[i % 3]) for i, kind in enumerate(in_tiles.KINDS)])
def test_products(kernels_on_sim: None, kind: str, case: tuple[int, int, int, str, bool]) -> None:
    rows, n, units, epilogue, biased = case
    rng = np.random.default_rng(rows)
    columns, count = 256 * units, 2 * n if epilogue == "silu" else n
    blocks = random_blocks(kind, count, columns, rows)
    weight, x = by_tiles(kind, blocks, columns), numbers(rng, rows, columns)
    bias = gp.from_numpy(rng.standard_normal(count).astype(np.float32)).astype("bfloat16") if biased else None
    before = rng.standard_normal((rows, n)).astype(np.float32)
    out = gp.from_numpy(before if epilogue == "add" else np.full((rows, n), np.nan, np.float32))
    out = out if epilogue == "add" else out.astype("bfloat16")
    in_blocks.product(x, weight, bias, out, epilogue)
    own, sizes = x.astype("float32").to_numpy().astype(np.float64), values(kind, blocks).astype(np.float64)
    want, size = own @ sizes.T, np.abs(own) @ np.abs(sizes).T
    if bias is not None:
        want += bias.astype("float32").to_numpy()
    if epilogue == "add":
        want += before
    if epilogue == "silu":
        gate, up = np.split(want, 2, axis=1)
        want = gate / (1 + np.exp(-gate)) * up
        size = np.maximum(*np.split(size, 2, axis=1)) * (np.abs(up) + np.abs(gate) + 1)
    error = np.abs(out.astype("float32").to_numpy() - want)
    rounding = 0.0 if epilogue == "add" else 2.0**-8
    assert (error <= 2e-6 * size + 1e-6 + rounding * np.abs(want)).all()


@pytest.mark.parametrize("kind", ["Q4_K", "Q6_K", "NVFP4", "FP8_128"])
def test_a_rows_bits_do_not_depend_on_the_batch(kernels_on_sim: None, kind: str) -> None:
    """By the kernel for one row, whose sums are those of lanes, and by those for several, of any place in a batch."""
    rng = np.random.default_rng(3)
    columns, count = 2304, 64
    weight, x = by_tiles(kind, random_blocks(kind, count, columns, 4), columns), numbers(rng, 37, columns)
    for epilogue in ("store", "silu"):
        n = count // 2 if epilogue == "silu" else count
        dtype = "bfloat16" if epilogue == "silu" else "float32"
        together = gp.zeros((37, n), dtype)
        in_tiles.product(x, kind, weight.parts[0].array, None, together, epilogue, wide=False)
        for count_of in (37, 13):
            wide = gp.zeros((count_of, n), dtype)
            in_tiles.product(of(x, slice(count_of)), kind, weight.parts[0].array, None, wide, epilogue, wide=True)
            np.testing.assert_array_equal(
                wide.astype("float32").to_numpy(), together.astype("float32").to_numpy()[:count_of]
            )
        expected = together.astype("float32").to_numpy()
        for rows in (slice(0, 1), slice(36, 37), slice(5, 13), slice(3, 14)):
            alone = gp.zeros((rows.stop - rows.start, n), dtype)
            in_blocks.product(of(x, rows), weight, None, alone, epilogue)
            np.testing.assert_array_equal(alone.astype("float32").to_numpy(), expected[rows])


@pytest.mark.parametrize(("kind", "epilogue"), [("Q4_K", "silu"), ("NVFP4", "store"), ("FP8_128", "store")])
def test_a_norm_in_the_product_has_the_bits_of_its_own_launch(kernels_on_sim: None, kind: str, epilogue: str) -> None:
    rng = np.random.default_rng(5)
    columns, count = 768, 64
    weight = by_tiles(kind, random_blocks(kind, count, columns, 4), columns)
    scale, shift = numbers(rng, 1, columns).reshape(columns), numbers(rng, 1, columns).reshape(columns)
    x, n = (
        gp.from_numpy(rng.standard_normal((1, columns)).astype(np.float32)),
        count // (2 if epilogue == "silu" else 1),
    )
    linear = LinearBF16(weight, numbers(rng, 1, count).reshape(count))
    for norm in (Norm(scale), Norm(scale, shift)):
        assert in_blocks.takes_norm(weight, norm, 1) and not in_blocks.takes_norm(weight, norm, 2)
        rows = gp.zeros((1, columns), "bfloat16")
        norm_rows(x, norm, rows)
        expected, found = (gp.from_numpy(np.full((1, n), np.nan, np.float32)).astype("bfloat16") for _ in range(2))
        in_blocks.product(rows, weight, linear.bias, expected, epilogue)
        linear.project(x, found, None, norm=norm, epilogue=epilogue)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.astype("float32").to_numpy(), expected.astype("float32").to_numpy())
    assert not in_blocks.takes_norm(weight, Norm(scale, shift, "layernorm"), 1)


def test_parts_by_tiles_beside_others(kernels_on_sim: None) -> None:
    """A weight of one part by tiles and one of blocks, with an order of columns in the first."""
    rng = np.random.default_rng(8)
    columns = 512
    kinds, counts = ("I4_128", "Q5_K"), (32, 5)
    blocks = [random_blocks(kind, count, columns, 2) for kind, count in zip(kinds, counts, strict=True)]
    order = rng.permutation(columns).astype(np.int32)
    first = by_tiles(kinds[0], blocks[0], columns, gp.from_numpy(order))
    weight = Blocks((*first.parts, Part(kinds[1], gp.from_numpy(blocks[1]))), columns, as_dtype("bfloat16"))
    plain = np.concatenate([values(kind, own) for kind, own in zip(kinds, blocks, strict=True)])
    plain[:32, order] = plain[:32].copy()
    np.testing.assert_array_equal(weight.to_numpy(), plain)
    rounded = doubles_of(convert(plain, as_dtype("float32"), as_dtype("bfloat16")))
    np.testing.assert_array_equal(weight.expanded().astype("float32").to_numpy(), rounded)
    x = numbers(rng, 2, columns)
    own = x.astype("float32").to_numpy().astype(np.float64)
    out = gp.from_numpy(np.full((2, 37), np.nan, np.float32))
    in_blocks.product(x, weight, None, out, "store")
    size = np.abs(own) @ np.abs(plain).T.astype(np.float64)
    assert (np.abs(out.to_numpy() - own @ plain.T) <= 2e-6 * size + 1e-6).all()


@pytest.mark.parametrize(("kind", "rows", "columns"), [("Q4_K", 48, 512), ("Q8_0", 64, 288), ("Q5_K", 64, 512)])
def test_what_has_no_tiles(kind: str, rows: int, columns: int) -> None:
    assert not in_tiles.takes(kind, rows, columns)


def test_rows_are_arranged_where_they_lie(kernels_on_sim: None) -> None:
    """As a loader has them: read as the file has them into the beginning of the memory, then by tiles."""
    blocks = random_blocks("Q4_K", 32, 768, 9)
    tiles = gp.zeros((32, in_tiles.row_bytes("Q4_K", 768)), "uint8")
    rows = in_tiles.as_in_file("Q4_K", tiles, 768)
    assert rows.shape == blocks.shape and rows.nbytes == 32 * 3 * named("Q4_K").bytes
    rows[:] = gp.from_numpy(blocks)
    in_tiles.arrange("Q4_K", tiles, 768)
    expected = in_tiles.tiled("Q4_K", gp.from_numpy(blocks), 768)
    np.testing.assert_array_equal(tiles.to_numpy(), expected.to_numpy())
