"""Which kernel makes a convolution, and what the tile kernels read in place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import as_dtype
from pygpukit.ops import host
from pygpukit.ops.matmul.layout.operand import Operand
from pygpukit.ops.nn.conv import choose, gathered, layout, tile
from pygpukit.ops.nn.conv.problem import Problem
from pygpukit.ops.nn.conv.settings import Settings

pytestmark = pytest.mark.usefixtures("backend_name")


def test_the_plan_says_which_kernel_and_why() -> None:
    x, w = gp.zeros((1, 32, 9, 9), "bfloat16"), gp.zeros((64, 32, 3, 3), "bfloat16")
    found = gp.conv_plan(x, w, padding=1)
    assert found.backend == ("numpy" if is_sim() else "tile") and found.reason
    assert (found.tile is None) == is_sim()
    single = gp.conv_plan(x.astype("float32"), w.astype("float32"), tf32=False)
    assert single.backend == ("numpy" if is_sim() else "plain") and "as tf32=False asks" in single.reason
    assert gp.conv_plan(x[:, :, 0], w[:, :, 0]).backend == found.backend
    with pytest.raises(gp.ShapeError, match="does not fit an extent of 2"):
        gp.conv_plan(x[:, :, :2], w)
    with pytest.raises(gp.DTypeError, match="tf32=True is for float32"):
        gp.conv_plan(x, w, tf32=True)
    with pytest.raises(gp.DTypeError, match="tf32=True is for float32"):
        gp.conv2d(x, w, tf32=True)


@pytest.mark.parametrize(
    ("dtype", "weight", "given", "backend", "reason"),
    [
        ("bfloat16", (1, 64, 3, 3, 32), {}, "tile", "summed in float32"),
        ("float16", (4, 40, 1, 9, 16), {"groups": 4, "act": "gelu"}, "tile", "float16 on tensor cores"),
        ("float32", (1, 64, 3, 3, 32), {}, "plain", "float32 is computed as it is"),
        ("bfloat16", (1, 64, 3, 3, 3), {}, "few", "3 to 64 channels of a group"),
        ("float16", (32, 16, 3, 3, 16), {"groups": 32, "act": "tanh"}, "few", "16 to 16 channels of a group"),
        ("float16", (32, 32, 3, 3, 16), {"groups": 32}, "few", "16 to 32 channels of a group"),
        ("bfloat16", (32, 36, 3, 3, 32), {"groups": 32}, "tile", "summed in float32"),
        ("float16", (4, 32, 3, 3, 18), {"groups": 4}, "tile", "summed in float32"),
        ("float16", (1, 8, 9, 9, 640), {}, "plain", "fewer than 16 waste tensor cores"),
        ("float16", (1, 8, 3, 3, 16), {"transposed": True}, "plain", "fewer than 16 waste tensor cores"),
        ("float16", (8, 4, 3, 3, 1), {"groups": 8}, "plain", "fewer than 16 waste tensor cores"),
        ("float16", (1, 8, 1, 9, 1), {"dilation": (1, 2**12)}, "plain", "fewer than 16 waste tensor cores"),
        ("bfloat16", (64, 1, 3, 3, 1), {"groups": 64}, "plain", "1 to 1 channels of a group"),
        ("bfloat16", (1, 64, 3, 3, 32), {"act": "tanh"}, "plain", "tanh is applied on CUDA cores"),
        ("bfloat16", (1, 64, 3, 3, 32), {"transposed": True, "dilation": (2, 1)}, "plain", "has no phases"),
        ("bfloat16", (1, 64, 3, 3, 32), {"transposed": True, "stride": (9, 2)}, "tile", "summed in float32"),
        ("bfloat16", (1, 64, 3, 3, 32), {"out": (2**15, 2**15)}, "plain", "more elements than a tile kernel counts"),
    ],
)
def test_what_the_tensor_cores_take(
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    weight: tuple[int, ...],
    given: dict[str, Any],
    backend: str,
    reason: str,
    facts: Facts,
) -> None:
    monkeypatch.setattr(choose, "is_sim", lambda: False)
    monkeypatch.setattr(host, "computes", lambda: False)
    monkeypatch.setattr(tile, "missing", lambda: "")
    settings: dict[str, Any] = {"groups": 1, "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "out": (7, 7)}
    own = Settings(**(settings | {"act": None} | given))
    facts(sm_count=132)
    image = Operand.dense((2, weight[0] * weight[-1], 9, 9), as_dtype(dtype).itemsize)
    p = Problem(as_dtype(dtype), False, image, weight, own, False)
    choose._by_kernels.cache_clear()
    try:
        found = choose.choose(p)
        assert found.backend == backend and reason in found.reason and found.problem == p
        if backend == "tile":
            assert found.kernel in (tile, gathered) and found.tile.filters >= 64
        elif dtype == "float32":
            assert choose.choose(replace(p, tf32=True)).backend == "tile"
    finally:
        choose._by_kernels.cache_clear()


def test_the_tile_follows_the_channels(facts: Facts) -> None:
    facts(sm_count=132)
    own = Settings(1, (1, 1), (1, 1), (1, 1), (56, 56), None)
    dtype = as_dtype("bfloat16")
    for n in (64, 128, 256):
        assert tile.fastest(dtype, (64, n, 56, 56), (1, n, 3, 3, 64), own).filters == n


def test_what_is_read_in_place() -> None:
    values = np.random.default_rng().standard_normal((2, 5, 6, 32)).astype("float32")
    last = gp.from_numpy(values).astype("float16")
    x = last.transpose(0, 3, 1, 2)
    none = (0, 0)
    assert layout.readable(x, 2, none, none) is x
    assert layout.readable(x[:, :, 1:, ::2], 4, none, none).strides == x[:, :, 1:, ::2].strides


def test_weights_by_group() -> None:
    values = np.arange(6 * 4 * 3 * 2, dtype=np.float32).reshape(6, 4, 3, 2)
    weight = gp.from_numpy(values)
    found = layout.by_group(weight, 2, False).to_numpy()
    np.testing.assert_array_equal(found, values.reshape(2, 3, 4, 3, 2).transpose(0, 1, 3, 4, 2))
    found = layout.by_group(weight, 2, True).to_numpy()
    np.testing.assert_array_equal(found, values.reshape(2, 3, 4, 3, 2).transpose(0, 2, 3, 4, 1))
    dense = layout.by_group(weight.transpose(0, 2, 3, 1).clone().transpose(0, 3, 1, 2), 1, False)
    assert layout.dense(dense) is dense
    filled = layout.dense(layout.by_group(weight[:, :3], 1, False)).to_numpy()
    np.testing.assert_array_equal(filled[..., :3], values[None, :, :3].transpose(0, 1, 3, 4, 2))
    assert not filled[..., 3:].any()
