"""Weights in blocks of few bits on the simulator, in checked mode: values by the bit, products beside float64."""

from __future__ import annotations

import numpy as np
import pytest
from nn.random_blocks import random_blocks, values

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.models.convert import convert
from pygpukit.models.dequantise import named
from pygpukit.nn.batch import Batch
from pygpukit.nn.embedding import embed
from pygpukit.nn.linear import in_blocks
from pygpukit.nn.linear.blocks import Blocks, Part


def weight_of(parts: list[tuple[str, np.ndarray]], columns: int) -> Blocks:
    return Blocks(tuple(Part(kind, gp.from_numpy(blocks)) for kind, blocks in parts), columns, as_dtype("bfloat16"))


def doubles_of(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("kind", in_blocks.KINDS)
def test_values_have_the_bits_of_the_formula(kernels_on_sim: None, kind: str) -> None:
    columns = 512 if named(kind).elements == 256 else 384
    blocks = random_blocks(kind, 3, columns, 1)
    weight = weight_of([(kind, blocks)], columns)
    want = convert(values(kind, blocks), as_dtype("float32"), as_dtype("bfloat16"))
    np.testing.assert_array_equal(weight.expanded().astype("float32").to_numpy(), doubles_of(want))


# (rows, n, chunks of 256, epilogue, biased), in turn, so that each kind has one and each case four
CASES = [(1, 16, 1.0, "store", True), (3, 21, 2.5, "add", True), (8, 9, 9.0, "silu", False)]


@pytest.mark.parametrize(("kind", "case"), [(kind, CASES[i % 3]) for i, kind in enumerate(in_blocks.KINDS)])
def test_products(kernels_on_sim: None, kind: str, case: tuple[int, int, float, str, bool]) -> None:
    rows, n, chunks, epilogue, biased = case
    rng = np.random.default_rng(rows)
    columns = int(256 * (chunks if named(kind).elements < 256 else np.ceil(chunks)))
    count = 2 * n if epilogue == "silu" else n
    blocks = random_blocks(kind, count, columns, rows)
    weight = weight_of([(kind, blocks)], columns)
    x = gp.from_numpy(rng.standard_normal((rows, columns)).astype(np.float32)).astype("bfloat16")
    bias = gp.from_numpy(rng.standard_normal(count).astype(np.float32)).astype("bfloat16") if biased else None
    before = rng.standard_normal((rows, n)).astype(np.float32)
    out = gp.from_numpy(before if epilogue == "add" else np.full((rows, n), np.nan, np.float32))
    out = out if epilogue == "add" else out.astype("bfloat16")
    in_blocks.product(x, weight, bias, out, epilogue)
    numbers, sizes = x.astype("float32").to_numpy().astype(np.float64), values(kind, blocks).astype(np.float64)
    want, size = numbers @ sizes.T, np.abs(numbers) @ np.abs(sizes).T
    want += 0 if bias is None else bias.astype("float32").to_numpy()
    if epilogue == "add":
        want += before
    if epilogue == "silu":
        gate, up = np.split(want, 2, axis=1)
        want = gate / (1 + np.exp(-gate)) * up
        size = np.maximum(*np.split(size, 2, axis=1)) * (np.abs(up) + np.abs(gate) + 1)
    error = np.abs(out.astype("float32").to_numpy() - want)
    rounding = 0.0 if epilogue == "add" else 2.0**-8
    assert (error <= 2e-6 * size + 1e-6 + rounding * np.abs(want)).all()


def test_columns_in_an_order_of_their_own(kernels_on_sim: None) -> None:
    """Parts of two orders, of none, and of the first again: values, products, rows of a table and neighbours."""
    rng = np.random.default_rng(6)
    kinds = ["I8Z_32", "I8Z_32", "Q8_0", "I8Z_32"]
    columns, rows, blocks = 384, 5, [random_blocks(kind, 5, 384, i) for i, kind in enumerate(kinds)]
    orders = [rng.permutation(columns).astype(np.int32) for _ in range(2)]
    one, other = (gp.from_numpy(order) for order in orders)
    parts = [
        Part(kind, gp.from_numpy(of), order)
        for kind, of, order in zip(kinds, blocks, (one, other, None, one), strict=True)
    ]
    weight = Blocks(tuple(parts), columns, as_dtype("bfloat16"))
    assert weight.nbytes == sum(of.nbytes for of in blocks) + 2 * columns * 4
    plain = np.concatenate([values(kind, of) for kind, of in zip(kinds, blocks, strict=True)])
    for first, order in ((0, orders[0]), (5, orders[1]), (15, orders[0])):
        plain[first : first + 5, order] = plain[first : first + 5].copy()
    np.testing.assert_array_equal(weight.to_numpy(), plain)
    rounded = doubles_of(convert(plain, as_dtype("float32"), as_dtype("bfloat16")))
    np.testing.assert_array_equal(weight.expanded().astype("float32").to_numpy(), rounded)
    np.testing.assert_array_equal(weight[3:12].expanded().astype("float32").to_numpy(), rounded[3:12])
    table, picked = Blocks((parts[0],), columns, weight.dtype), gp.zeros((2, columns))
    tokens = gp.from_numpy(np.array([4, 1], np.int32))
    embed(Batch(tokens, tokens, tokens), table, None, picked)
    np.testing.assert_array_equal(picked.to_numpy(), plain[[4, 1]])
    x = gp.from_numpy(rng.standard_normal((rows, columns)).astype(np.float32)).astype("bfloat16")
    numbers = x.astype("float32").to_numpy().astype(np.float64)
    for own in (slice(0, 20), slice(3, 17)):
        out = gp.from_numpy(np.full((rows, own.stop - own.start), np.nan, np.float32))
        in_blocks.product(x, weight[own], None, out, "store")
        size = np.abs(numbers) @ np.abs(plain[own]).T.astype(np.float64)
        assert (np.abs(out.to_numpy() - numbers @ plain[own].T) <= 2e-6 * size + 1e-6).all()
        alone = gp.zeros((1, out.shape[1]), "float32")
        in_blocks.product(x[2:3], weight[own], None, alone, "store")
        np.testing.assert_array_equal(alone.to_numpy(), out.to_numpy()[2:3])


def test_a_rows_bits_do_not_depend_on_the_batch(kernels_on_sim: None) -> None:
    rng = np.random.default_rng(3)
    weight = weight_of([("Q4_K", random_blocks("Q4_K", 19, 768, 4)), ("Q6_K", random_blocks("Q6_K", 8, 768, 5))], 768,
                       )  # fmt: skip
    x = gp.from_numpy(rng.standard_normal((37, 768)).astype(np.float32)).astype("bfloat16")
    together, wide = (gp.zeros((37, 27), "float32") for _ in range(2))
    in_blocks.product(x, weight, None, together, "store", wide=False)
    in_blocks.product(x, weight, None, wide, "store", wide=True)
    np.testing.assert_array_equal(wide.to_numpy(), together.to_numpy())
    for rows in (slice(0, 1), slice(36, 37), slice(5, 13), slice(3, 20)):
        alone = gp.zeros((rows.stop - rows.start, 27), "float32")
        in_blocks.product(gp.from_numpy(x.astype("float32").to_numpy()[rows]).astype("bfloat16"), weight, None, alone,
                          "store")  # fmt: skip
        np.testing.assert_array_equal(alone.to_numpy(), together.to_numpy()[rows])
