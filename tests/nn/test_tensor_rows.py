"""Products of few rows on tensor cores: as NumPy has them, a row with the same bits among any others, in any form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.nn.linear import tensor
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm
from pygpukit.ops.elementwise.pointwise import CTYPES

EPILOGUES = {"store": "pk::kStore", "add": "pk::kAdd", "silu": "pk::kSilu"}


def doubles(array: gp.GPUArray) -> np.ndarray[Any, Any]:
    return array.astype("float32").to_numpy().astype(np.float64)


def check(dtype: str, n: int, k: int, epilogue: Any, counts: tuple[int, ...], forms: tuple[tensor.Form, ...]) -> None:
    random = np.random.default_rng()
    both = 2 * n if epilogue == "silu" else n

    def values(*shape: int) -> gp.GPUArray:
        return gp.from_numpy(random.standard_normal(shape).astype(np.float32)).astype(dtype)

    linear, x = LinearBF16(values(both, k), values(both)), values(max(counts), k)
    before = random.standard_normal((max(counts), n)).astype(np.float32)
    assert linear.bias is not None and isinstance(linear.weight, gp.GPUArray)
    expected = doubles(x) @ doubles(linear.weight).T + doubles(linear.bias)
    if epilogue == "silu":
        expected = expected[:, :n] / (1 + np.exp(-expected[:, :n])) * expected[:, n:]
    elif epilogue == "add":
        expected = expected + before
    first = None
    for count in counts:
        for form in (None, *forms):
            out = gp.from_numpy(before[:count] if epilogue == "add" else np.full((count, n), np.nan, np.float32))
            if form is None:
                linear.project(x[:count], out, None, epilogue=epilogue)
            else:
                call = linear._call(count, n, None)
                types = f"{CTYPES[dtype]}, {CTYPES['float32']}"
                operands = (linear.weight, linear.bias, out)
                tensor.some_rows(types, EPILOGUES[epilogue], x[:count], operands, call, False, form)
            found = out.to_numpy()
            np.testing.assert_allclose(found, expected[:count], rtol=1e-5, atol=2e-5 * np.abs(expected).max())
            first = found[:1].tobytes() if first is None else first
            assert found[:1].tobytes() == first, (count, form)


def test_rows_have_the_bits_of_one_alone(kernels_on_sim: None) -> None:
    check("bfloat16", 40, 136, "silu", (1, 3, 9), ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "n", "k", "epilogue"),
    [("float16", 100, 576, "store"), ("bfloat16", 16, 24, "add"), ("bfloat16", 33, 328, "silu")],
)
def test_every_form_gives_the_same_bits(kernels_on_sim: None, dtype: str, n: int, k: int, epilogue: str) -> None:
    check(dtype, n, k, epilogue, (1, 2, 17, 70), tensor.FORMS)


@pytest.mark.slow
def test_the_largest_logits_of_blocks_hold_the_first_of_the_largest(kernels_on_sim: None) -> None:
    random = np.random.default_rng()
    weight = random.integers(-2, 3, (300, 64)).astype(np.float32)  # small whole numbers: equal logits
    weight[200] = weight[17] = 2 * np.sign(random.standard_normal(64))
    norm = Norm(gp.from_numpy(np.ones(64, np.float32)).astype("bfloat16"), None, "rmsnorm", 0.0)
    linear, x = LinearBF16(gp.from_numpy(weight).astype("bfloat16")), np.sign(weight[17:18])
    out, bests = gp.zeros((1, 300)), linear.new_bests()
    assert bests is not None
    linear.project(gp.from_numpy(x), out, None, norm=norm, bests=bests)
    logits = out.to_numpy()[0]
    np.testing.assert_allclose(logits, weight @ x[0], rtol=1e-6)
    assert ~np.uint32(int(bests.to_numpy().max()) & 0xFFFFFFFF) == np.uint32(logits.argmax()) == 17


def test_forms_are_for_more_and_more_rows_and_fit_every_device() -> None:
    assert [form.across for form in tensor.FORMS[:3]] == [1, 2, 4]
    smallest = min(form.shared_bytes for form in tensor.FORMS)
    assert smallest <= 99 << 10  # of SM 8.6 and 8.9
    assert all(form.down % 2 == 0 for form in tensor.FORMS)  # of pairs, too
