"""Convolutions by the kernel that gathers, on the simulator too: against float64, on a device also the tile kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from convolved import convolve
from device_facts import Facts
from rounded import normal

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import bfloat16
from pygpukit.jit.compile import simulator
from pygpukit.kernels import launcher
from pygpukit.ops import host
from pygpukit.ops.nn.conv import choose, gathered, tile
from pygpukit.ops.nn.conv.choose import ConvPlan

pytestmark = pytest.mark.usefixtures("backend_name")

SHAPES = [
    ((2, 40, 9, 13), (34, 20, 3, 2), {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 1), "groups": 2}),
    ((3, 72, 7, 5), (130, 72, 1, 1), {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "groups": 1}),
    ((1, 16, 1, 150), (16, 16, 1, 7), {"stride": (1, 1), "padding": (0, 9), "dilation": (1, 3), "groups": 1}),
]


@pytest.fixture(autouse=True)
def _by_gathering(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> Iterator[None]:
    """Every convolution by its kernel; on the simulator checked, and compiled the quickest way."""
    native.prepare_calls(False)  # tests choose the kernel
    if is_sim():
        monkeypatch.setenv("PYGPUKIT_CHECK", "1")
        monkeypatch.setattr(launcher, "_kernels", {})
        monkeypatch.setattr(simulator, "_FLAGS", tuple(flag for flag in simulator._FLAGS if flag != "-O2"))
        monkeypatch.setattr(choose, "choose", lambda p: ConvPlan("tile", "", None, gathered, p))
        facts(sm_count=1)
    elif device.current().capability != 90:
        pytest.skip("the kernel is for SM 9.0")
    yield
    native.prepare_calls(None)


def gather(x: gp.GPUArray, w: gp.GPUArray, bias: gp.GPUArray | None = None, **settings: Any) -> gp.GPUArray:
    """The convolution by its kernel; NumPy makes and reads the arrays, which takes no compiler."""
    with host.built_in_kernels():
        found = gp.conv2d(x, w, bias, **settings)
        gp.synchronize()
    return found


def bits(array: gp.GPUArray) -> bytes:
    return array.to_numpy().tobytes()


@pytest.mark.parametrize(("x", "w", "given"), SHAPES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_sums_and_their_bits(
    x: tuple[int, ...], w: tuple[int, ...], given: dict[str, Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, a), (weight, b), (bias, c) = (normal(dtype, *shape) for shape in (x, w, w[:1]))
    more = {"tf32": True} if dtype == "float32" else {}
    wanted = np.maximum(convolve(a, b, *given.values()) + c[:, None, None], 0)
    image = first.transpose(0, 2, 3, 1).clone()
    found = gather(image, weight, bias, act="relu", channels_last=True, **given, **more)
    values = found.astype("float32").to_numpy().transpose(0, 3, 1, 2)
    np.testing.assert_allclose(values, wanted, rtol=2**-8, atol=2**-9 * np.abs(wanted).max())
    if not is_sim() and not tile.missing():
        monkeypatch.setattr(choose, "choose", lambda p: ConvPlan("tile", "", None, tile, p))
        tiled = gather(image, weight, bias, act="relu", channels_last=True, **given, **more)
        assert bits(tiled) == bits(found)


def test_blocks_layouts_and_batches_change_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    (x, _), (w, _), (bias, _) = (normal("bfloat16", *shape) for shape in ((2, 72, 9, 8), (34, 72, 3, 3), (34,)))
    image = x.transpose(0, 2, 3, 1).clone()
    given: dict[str, Any] = {"padding": 1, "stride": (1, 2)}
    wanted = gather(image, w, bias, channels_last=True, **given)
    assert bits(gather(x, w, bias, **given)) == bits(wanted.transpose(0, 3, 1, 2).copy())
    assert bits(gather(image[1:], w, bias, channels_last=True, **given)) == bits(wanted[1:].copy())
    for one in gathered.RULE[bfloat16]:
        monkeypatch.setattr(gathered, "fastest", lambda *_, one=one: one)
        assert bits(gather(image, w, bias, channels_last=True, **given)) == bits(wanted), one


def test_what_is_not_finite_stays_where_it_is_seen() -> None:
    (x, _), (w, _) = normal("bfloat16", 1, 32, 6, 7), normal("bfloat16", 16, 16, 3, 3)
    x[0, 16, 2, 3] = float("nan")  # the second group's first channel
    found = gather(
        x.transpose(0, 2, 3, 1).clone(), w[:, :16].clone(), padding=1, groups=2, act="relu", channels_last=True
    )
    spoiled = np.isnan(found.astype("float32").to_numpy())
    assert spoiled[0, 1:4, 2:5, 8:].all() and spoiled.sum() == 9 * 8
