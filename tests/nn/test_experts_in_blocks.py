"""Experts with weights in blocks of few bits on the simulator, in checked mode: beside float64, and by the bit."""

from __future__ import annotations

import numpy as np
import pytest
from nn.random_blocks import random_blocks, values

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.models.dequantise import named
from pygpukit.nn.linear import in_blocks as kinds
from pygpukit.nn.linear.blocks import Blocks, Part
from pygpukit.nn.moe import in_blocks
from pygpukit.nn.moe.in_blocks import Form

BFLOAT16 = as_dtype("bfloat16")


def weight_of(kind: str, rows: int, columns: int, seed: int) -> tuple[Blocks, np.ndarray]:
    blocks = random_blocks(kind, rows, columns, seed)
    return Blocks((Part(kind, gp.from_numpy(blocks)),), columns, BFLOAT16), values(kind, blocks).astype(np.float64)


def rows_of(count: int, columns: int, seed: int) -> gp.GPUArray:
    numbers = np.random.default_rng(seed).standard_normal((count, columns)).astype(np.float32)
    return gp.from_numpy(numbers).astype("bfloat16")


def product(x: gp.GPUArray, weight: Blocks, counts: list[int], form: Form | None = None) -> np.ndarray:
    out = gp.from_numpy(np.full((x.shape[0], weight.shape[0] // len(counts)), np.nan, np.float32)).astype("bfloat16")
    in_blocks.product(x, weight, gp.from_numpy(np.array(counts, np.int32)), out, form)
    return out.astype("float32").to_numpy()


def check(made: np.ndarray, x: gp.GPUArray, numbers: np.ndarray, counts: list[int]) -> None:
    wide, n, first = x.astype("float32").to_numpy().astype(np.float64), len(numbers) // len(counts), 0
    for expert, count in enumerate(counts):
        own, weight = wide[first : first + count], numbers[expert * n : (expert + 1) * n]
        want, size = own @ weight.T, np.abs(own) @ np.abs(weight).T
        assert (np.abs(made[first : first + count] - want) <= 2e-6 * size + 1e-6 + 2.0**-8 * np.abs(want)).all()
        first += count


# Few rows with some experts that have none; more than a tile of one; several tiles of 64, the last a part.
CASES = [(Form(8), [2, 0, 1, 9]), (Form(32), [0, 37]), (Form(64, 1), [67, 0, 3]), (Form(64, 2), [5, 66])]


KINDS = ("Q4_K", "Q6_K", "I8Z_128", "MXFP4")  # of every kind: sweep_experts_in_blocks.py


@pytest.mark.parametrize(("kind", "case"), list(zip(KINDS, CASES, strict=True)), ids=str)
def test_products(kernels_on_sim: None, kind: str, case: tuple[Form, list[int]]) -> None:
    form, counts = case
    columns = 512 if named(kind).elements == 256 else 384
    weight, numbers = weight_of(kind, len(counts) * 21, columns, 1)
    x = rows_of(sum(counts), columns, 2)
    check(product(x, weight, counts, form), x, numbers, counts)


@pytest.mark.parametrize("kind", ["MXFP4", "NVFP4"])
@pytest.mark.parametrize("columns", [96, 352, 288])
def test_a_row_ends_within_a_block(kernels_on_sim: None, kind: str, columns: int) -> None:
    """As gpt-oss' rows of 2880 do: what lies behind counts for nothing, in products and in values."""
    whole = -(-columns // 128) * 128
    packed, counts = random_blocks(kind, 2 * 21, whole, 9), [3, 9]
    weight = Blocks((Part(kind, gp.from_numpy(packed)),), columns, BFLOAT16)
    numbers = values(kind, packed)[:, :columns]
    np.testing.assert_array_equal(weight.to_numpy(), numbers)
    x = rows_of(12, columns, 10)
    made = [product(x, weight, counts, form) for form in (Form(8), Form(32), Form(64, 1), Form(64, 2))]
    check(made[0], x, numbers.astype(np.float64), counts)
    for other in made[1:]:
        np.testing.assert_array_equal(other, made[0])
    expanded = weight.expanded().astype("float32").to_numpy()
    np.testing.assert_allclose(expanded, numbers, rtol=2.0**-8, atol=0)


@pytest.mark.parametrize("kind", ["Q4_K", "FP8_32"])
def test_a_row_has_the_same_bits_by_every_kernel(kernels_on_sim: None, kind: str) -> None:
    """Over more chunks than a block has warps, and columns of more than one block of the widest kernel."""
    columns, counts = 2304 + 256 * (kind == "Q4_K"), [3, 9, 0]
    weight, numbers = weight_of(kind, 3 * 37, columns, 3)
    x = rows_of(12, columns, 4)
    made = [product(x, weight, counts, form) for form in (Form(8), Form(32), Form(64, 1), Form(64, 2))]
    check(made[0], x, numbers, counts)
    for other in made[1:]:
        np.testing.assert_array_equal(other, made[0])
    whole, alone = x.astype("float32").to_numpy(), [0, 1, 0]
    for row in (3, 11):
        own = gp.from_numpy(whole[row : row + 1]).astype("bfloat16")
        np.testing.assert_array_equal(product(own, weight, alone), made[0][row : row + 1])


def test_wide_columns_of_several_blocks(kernels_on_sim: None) -> None:
    weight, numbers = weight_of("I4_32", 2 * 300, 64, 5)
    x = rows_of(4, 64, 6)
    check(product(x, weight, [1, 3], Form(64, 2)), x, numbers, [1, 3])


@pytest.mark.parametrize("experts", [1, 33, 1024])
def test_rows_are_found_among_many_experts(kernels_on_sim: None, experts: int) -> None:
    rng = np.random.default_rng(experts)
    counts = np.bincount(rng.integers(0, experts, 40), minlength=experts).tolist()
    weight, numbers = weight_of("I8_32", experts, 32, 7)
    x = rows_of(40, 32, 8)
    check(product(x, weight, counts), x, numbers, counts)


def test_the_kernel_follows_from_how_many_rows_an_expert_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "wide_stages", lambda kind, _: 2 if kind == "Q4_K" else 0)
    assert in_blocks.form_of("Q4_K", 8, 128) == in_blocks.form_of("Q4_K", 512, 128) == (8, 0)
    assert in_blocks.form_of("Q4_K", 2048, 128) == (32, 0)
    assert in_blocks.form_of("Q4_K", 8000, 128) == (64, 2)
    assert in_blocks.form_of("Q8_0", 8000, 128) == (32, 0)
