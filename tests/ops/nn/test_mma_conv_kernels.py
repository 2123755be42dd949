"""On the simulator: convolutions by mma.sync: right, an element's bits its own, nothing written beside the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from convolved import convolve
from device_facts import Facts

import pygpukit as gp
from pygpukit.ops.nn.conv import choose, gathered, mma, tile

Values = np.ndarray[Any, Any]
SHAPES = [
    ((2, 40, 9, 13), (34, 20, 3, 2), {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 1), "groups": 2}),
    ((3, 72, 7, 5), (130, 72, 1, 1), {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "groups": 1}),
    ((1, 16, 1, 150), (16, 16, 1, 7), {"stride": (1, 1), "padding": (0, 9), "dilation": (1, 3), "groups": 1}),
    ((1, 17, 5, 5), (19, 17, 5, 5), {"stride": (1, 1), "padding": (4, 4), "dilation": (1, 1), "groups": 1}),
]


@pytest.fixture(autouse=True)
def _as_on_sm_86(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    monkeypatch.delenv("PYGPUKIT_CHECK")  # tests/sweep has these kernels checked
    monkeypatch.setattr(choose.lost, "tell", lambda *_: None)
    facts(sm_count=84, capability=86, shared_bytes=101376)


def normal(dtype: str, *shape: int) -> tuple[gp.GPUArray, Values]:
    """Fresh normal numbers, and what a kernel takes for them in float64."""
    x = gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)
    values = x.astype("float32").to_numpy()
    if dtype == "float32":  # tf32, middles away from zero
        values = (values.view(np.int32) + 0x1000 & ~0x1FFF).view(np.float32)
    return x, values.astype(np.float64)


def bits(x: gp.GPUArray) -> bytes:
    return x.to_numpy().tobytes()


def gather(x: gp.GPUArray, w: gp.GPUArray, bias: gp.GPUArray | None = None, **settings: Any) -> gp.GPUArray:
    return gp.conv2d(x, w, bias, backend="mma", **settings)


def close(got: gp.GPUArray, wanted: Values) -> None:
    rounding = {"float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-11}[str(got.dtype)]
    found = got.astype("float64").to_numpy()
    assert np.all(np.abs(found - wanted) <= rounding * np.abs(wanted) + 2.0**-17 * np.abs(wanted).max())


@pytest.mark.parametrize(("x", "w", "given"), SHAPES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_sums(x: tuple[int, ...], w: tuple[int, ...], given: dict[str, Any], dtype: str) -> None:
    (image, a), (weight, b) = normal(dtype, *x), normal(dtype, *w)
    bias = gp.from_numpy(np.random.default_rng().standard_normal(w[0]).astype(np.float32)).astype(dtype)
    sums = convolve(a, b, *given.values())
    shifted = sums + bias.astype("float64").to_numpy()[:, None, None]
    more = given | ({"tf32": True} if dtype == "float32" else {})
    close(gather(image, weight, **more), sums)
    close(gather(image, weight, bias, act="relu", **more), np.maximum(shifted, 0))
    close(gather(image, weight, bias, act="silu", **more), shifted / (1 + np.exp(-shifted)))
    last = gather(image.transpose(0, 2, 3, 1).clone(), weight, bias, channels_last=True, **more)
    close(last.transpose(0, 3, 1, 2), shifted)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_blocks_layouts_views_and_batches_change_no_bits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (x, _), (w, _), (bias, _) = (normal(dtype, *shape) for shape in ((3, 72, 9, 8), (34, 72, 3, 3), (34,)))
    image = x.transpose(0, 2, 3, 1).clone()
    given: dict[str, Any] = {"padding": 1, "stride": (1, 2)} | ({"tf32": True} if dtype == "float32" else {})
    wanted = gather(image, w, bias, channels_last=True, **given)
    assert bits(gather(image, w, bias, channels_last=True, **given)) == bits(wanted)
    assert bits(gather(x, w, bias, **given)) == bits(wanted.transpose(0, 3, 1, 2).copy())
    assert bits(gather(image[1:2], w, bias, channels_last=True, **given)) == bits(wanted[1:2].copy())
    assert bits(gather(image[::-1], w, bias, channels_last=True, **given)) == bits(wanted[::-1].copy())
    inner = gather(image[:, 2:7], w, bias, channels_last=True, **given)
    assert bits(inner[:, 1:4].copy()) == bits(wanted[:, 3:6].copy())
    for one in mma.blocks(x.itemsize):
        monkeypatch.setattr(mma, "_fastest", lambda *_, one=one: one)
        assert bits(gather(image, w, bias, channels_last=True, **given)) == bits(wanted), one


def test_what_is_not_finite_stays_where_it_is_seen() -> None:
    (x, _), (w, _) = normal("bfloat16", 1, 32, 6, 7), normal("bfloat16", 32, 16, 3, 3)
    x[0, 16, 2, 3] = float("nan")  # the second group's first channel
    found = gather(x.transpose(0, 2, 3, 1).clone(), w, padding=1, groups=2, act="relu", channels_last=True)
    spoiled = np.isnan(found.astype("float32").to_numpy())
    assert spoiled[0, 1:4, 2:5, 16:].all() and spoiled.sum() == 9 * 16


def test_without_tiles_plans_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose.host, "computes", lambda: False)
    monkeypatch.setattr(choose, "is_sim", lambda: False)
    monkeypatch.setattr(tile, "missing", lambda: "there is no tileiras")
    said: list[str] = []
    monkeypatch.setattr(choose.lost, "tell", lambda cost, why: said.append(cost))
    choose._by_kernels.cache_clear()
    x, w = gp.zeros((2, 64, 8, 8), "bfloat16"), gp.zeros((32, 64, 3, 3), "bfloat16")
    plan = gp.conv_plan(x, w)
    assert plan.backend == "mma" and plan.kernel is mma and "no tileiras" in plan.reason
    assert said == ["convolutions take mma.sync, at about half the speed of tile kernels"]
    assert gp.conv_plan(x, w, act="tanh").backend == "plain"
    choose._by_kernels.cache_clear()


def test_the_backend_is_asked_for_by_name() -> None:
    x, w = gp.zeros((1, 32, 5, 5), "bfloat16"), gp.zeros((16, 32, 3, 3), "bfloat16")
    assert "as backend='mma' asks" in gp.conv_plan(x, w, backend="mma").reason
    with pytest.raises(ValueError, match=r"conv2d: backend='tile'; it is 'mma', or None for the plan's choice"):
        gp.conv2d(x, w, backend="tile")
    with pytest.raises(gp.GPUError, match=r"conv2d: backend='mma': float32 is computed as it is.*; leave backend out"):
        gp.conv2d(x.astype("float32"), w.astype("float32"), backend="mma")
    with pytest.raises(gp.GPUError, match=r"backend='mma': 3 to 16 channels of a group"):
        gp.conv2d(x[:, :3], w[:, :3], backend="mma")
    assert gp.conv2d(x[:0], w, backend="mma").shape == (0, 16, 3, 3)
    assert gathered.BACKEND != mma.BACKEND
