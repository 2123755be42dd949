"""Convolutions in many small groups with channels last, by their kernel, on the simulator too: against float64, and bit
by bit beside the kernel that reads images where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from convolved import convolve
from device_facts import Facts
from rounded import normal

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.jit.compile import simulator
from pygpukit.kernels import launcher
from pygpukit.ops import host
from pygpukit.ops.nn.conv import few_channels, group_blocks, small_groups
from pygpukit.ops.nn.conv.settings import Settings, new_result

pytestmark = pytest.mark.usefixtures("backend_name")

PLAIN: dict[str, Any] = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
ODD: dict[str, Any] = {"stride": (1, 3), "padding": (2, 1), "dilation": (2, 1)}
# x: (images, channels, rows, columns); w: (filters, channels of a group, rows, columns)
SHAPES = [
    ((2, 24, 5, 19), (24, 4, 3, 3), PLAIN, 6),
    ((2, 40, 9, 13), (80, 8, 3, 2), ODD, 5),
    ((1, 48, 1, 50), (48, 16, 1, 4), {"stride": (1, 2), "padding": (0, 3), "dilation": (1, 2)}, 3),
    ((1, 64, 6, 7), (64, 32, 3, 3), PLAIN, 2),
    ((1, 72, 4, 4), (72, 4, 3, 3), PLAIN, 18),  # of the last groups some warps have none
    ((3, 24, 7, 3), (72, 12, 1, 1), {**PLAIN, "stride": (2, 2), "padding": (0, 0)}, 2),
]


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    """On the simulator kernels are checked, and compiled the quickest way."""
    if is_sim():
        monkeypatch.setenv("PYGPUKIT_CHECK", "1")
        monkeypatch.setattr(launcher, "_kernels", {})
        monkeypatch.setattr(simulator, "_FLAGS", tuple(flag for flag in simulator._FLAGS if flag != "-O2"))
        facts(sm_count=1)


def by(
    module: Any,
    x: gp.GPUArray,
    w: gp.GPUArray,
    bias: gp.GPUArray | None,
    given: dict[str, Any],
    groups: int,
    act: Any,
    last: bool = True,
) -> gp.GPUArray:
    """The convolution of images with their channels last by a module's kernel, into memory that was poisoned. last: so
    lies the result."""
    extents = [
        (n + 2 * pad - apart * (k - 1) - 1) // step + 1
        for n, k, step, pad, apart in zip(x.shape[1:3], w.shape[2:], *given.values(), strict=True)
    ]
    settings = Settings(groups, *given.values(), (extents[0], extents[1]), act)
    with host.built_in_kernels():
        result, out = new_result(x.shape[0], w.shape[0], settings, x.dtype, 2, last)
        result[...] = float("nan")
        module.convolve(x.transpose(0, 3, 1, 2), w, bias, out, settings, result)
        gp.synchronize()
    return result if last else result.transpose(0, 2, 3, 1).copy()


def bits(array: gp.GPUArray) -> bytes:
    return array.to_numpy().tobytes()


@pytest.mark.parametrize(("x", "w", "given", "groups"), SHAPES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_sums_and_their_bits(
    x: tuple[int, ...], w: tuple[int, ...], given: dict[str, Any], groups: int, dtype: str
) -> None:
    (first, a), (weight, b), (bias, c) = (normal(dtype, *shape) for shape in (x, w, w[:1]))
    wanted = np.maximum(convolve(a, b, *given.values(), groups) + c[:, None, None], 0)
    image = first.transpose(0, 2, 3, 1).clone()
    found = by(small_groups, image, weight, bias, given, groups, "relu")
    values = found.astype("float32").to_numpy().transpose(0, 3, 1, 2)
    np.testing.assert_allclose(values, wanted, rtol=2**-8, atol=2**-9 * np.abs(wanted).max())
    assert bits(by(few_channels, image, weight, bias, given, groups, "relu")) == bits(found)
    packed = weight.transpose(0, 2, 3, 1).clone().transpose(0, 3, 1, 2)
    assert bits(by(small_groups, image[-1:], packed, bias, given, groups, "relu")) == bits(found[-1:].copy())


def test_blocks_change_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    (x, _), (w, _) = normal("bfloat16", 2, 7, 9, 48), normal("bfloat16", 48, 8, 3, 3)
    wanted = by(small_groups, x, w, None, PLAIN, 6, "gelu")
    for one in ((2, 2, 1, 4, 1), (4, 2, 3, 9, 3), (6, 1, 7, 5, 4), (1, 1, 7, 9, 2), (4, 4, 2, 2, 50)):
        block = group_blocks.Block(*one)
        monkeypatch.setattr(small_groups, "chosen", lambda _, block=block: block)
        assert bits(by(small_groups, x, w, None, PLAIN, 6, "gelu")) == bits(wanted), block


def test_layouts_change_no_bits() -> None:
    (x, _), (w, _) = normal("bfloat16", 2, 5, 9, 24), normal("bfloat16", 24, 4, 3, 3)
    wanted = by(small_groups, x, w, None, PLAIN, 6, None)
    for image in (x.transpose(0, 3, 1, 2).clone().transpose(0, 2, 3, 1), x[:, :, ::-1].clone()[:, :, ::-1]):
        assert bits(by(small_groups, image, w, None, PLAIN, 6, None)) == bits(wanted)
    assert bits(by(small_groups, x, w, None, PLAIN, 6, None, False)) == bits(wanted)


def test_what_is_not_finite_stays_where_it_is_seen() -> None:
    (x, _), (w, _) = normal("bfloat16", 1, 6, 7, 16), normal("bfloat16", 16, 4, 3, 3)
    x[0, 2, 3, 4] = float("nan")  # the second group's first channel
    spoiled = np.isnan(by(small_groups, x, w, None, PLAIN, 4, None).astype("float32").to_numpy())
    assert spoiled[0, 1:4, 2:5, 4:8].all() and spoiled.sum() == 9 * 4
