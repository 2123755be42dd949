"""Convolutions by the tile kernel itself, on the simulator, against float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from convolved import Values, convolve
from device_facts import Facts
from rounded import normal

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import bfloat16
from pygpukit.jit.compile import simulator
from pygpukit.kernels import launcher
from pygpukit.ops import host, plans
from pygpukit.ops.nn.conv import choose, tile, tiles
from pygpukit.ops.nn.conv.choose import ConvPlan
from pygpukit.ops.nn.conv.padded import padded

pytestmark = pytest.mark.usefixtures("backend_name")


@pytest.fixture(autouse=True)
def _by_tiles(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    """Every convolution by the tile kernel; on the simulator checked, and compiled the quickest way."""
    if not is_sim():
        return
    monkeypatch.setenv("PYGPUKIT_CHECK", "1")
    monkeypatch.setattr(launcher, "_kernels", {})
    monkeypatch.setattr(simulator, "_FLAGS", tuple(flag for flag in simulator._FLAGS if flag != "-O2"))
    monkeypatch.setattr(choose, "choose", lambda p: ConvPlan("tile", "", None, tile, p))
    facts(sm_count=1)


def by_tiles(function: Callable[..., gp.GPUArray], *arrays: gp.GPUArray, **settings: Any) -> gp.GPUArray:
    """The convolution by its kernel; NumPy makes and reads the arrays, which takes no compiler."""
    with host.built_in_kernels():
        found = function(*arrays, **settings)
        gp.synchronize()
    return found


def spread(x: Values, w: Values, stride: Any, padding: Any, more: Any) -> Values:
    extents = [(x.shape[2 + d] - 1) * stride[d] - 2 * padding[d] + w.shape[2 + d] + more[d] for d in range(2)]
    out = np.zeros((x.shape[0], w.shape[1], *(n + 2 * p for n, p in zip(extents, padding, strict=True))))
    for i, j in np.ndindex(w.shape[2:]):
        rows = slice(i, i + (x.shape[2] - 1) * stride[0] + 1, stride[0])
        columns = slice(j, j + (x.shape[3] - 1) * stride[1] + 1, stride[1])
        out[:, :, rows, columns] += np.einsum("ncij,co->noij", x, w[:, :, i, j])
    return out[:, :, padding[0] : padding[0] + extents[0], padding[1] : padding[1] + extents[1]]


def agree(found: gp.GPUArray, expected: Values) -> None:
    values = found.astype("float32").to_numpy()
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, rtol=2**-8, atol=2**-8 * np.abs(expected).max() / 4)


def test_convolutions_and_their_bits() -> None:
    (x, a), (w, b), (bias, c) = (normal("bfloat16", *s) for s in ((2, 40, 9, 13), (34, 20, 3, 2), (34,)))
    given: dict[str, Any] = {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 1), "groups": 2}
    sums = convolve(a, b, *given.values()) + c[:, None, None]
    found = by_tiles(gp.conv2d, x, w, bias, act="silu", **given)
    agree(found, sums / (1 + np.exp(-sums)))
    bits = found.to_numpy().tobytes()
    last = by_tiles(gp.conv2d, x.transpose(0, 2, 3, 1).clone(), w, bias, act="silu", channels_last=True, **given)
    assert last.transpose(0, 3, 1, 2).to_numpy().tobytes() == bits
    assert (
        by_tiles(gp.conv2d, x[1:], w, bias, act="silu", **given).to_numpy().tobytes() == found[1:].to_numpy().tobytes()
    )
    packed = w.transpose(0, 2, 3, 1).clone().transpose(0, 3, 1, 2)
    assert by_tiles(gp.conv2d, x, packed, bias, act="silu", **given).to_numpy().tobytes() == bits
    agree(
        by_tiles(gp.conv2d, x[:, :, ::-1, ::2], w, groups=2, act="relu"),
        np.maximum(convolve(a[:, :, ::-1, ::2], b, (1, 1), (0, 0), (1, 1), 2), 0),
    )
    line, part = (
        by_tiles(gp.conv1d, x[:, :, 0], w[:, :, 0], groups=2),
        by_tiles(gp.conv1d, x[:, :, 0, 5:], w[:, :, 0], groups=2),
    )
    assert line[:, :, 5:].to_numpy().tobytes() == part.to_numpy().tobytes()


def test_a_tile_that_a_table_names_gives_the_same_bits() -> None:
    (x, a), (w, b) = (normal("bfloat16", *s) for s in ((1, 72, 5, 20), (40, 72, 1, 3)))
    found = []
    for one in tiles.ALL[bfloat16][-2:]:
        with plans.using({tiles.FAMILY: {"half": [asdict(one)]}}):
            found.append(by_tiles(gp.conv2d, x, w, padding=(0, 1)))
    agree(found[0], convolve(a, b, (1, 1), (0, 1), (1, 1), 1))
    assert found[0].to_numpy().tobytes() == found[1].to_numpy().tobytes()


def test_transposed_convolutions() -> None:
    (x, a), (w, b), (bias, c) = (normal("bfloat16", *s) for s in ((2, 16, 5, 7), (16, 24, 4, 3), (24,)))
    for stride, padding, more in (((2, 3), (1, 2), (1, 2)), ((5, 1), (0, 1), (0, 0))):
        expected = spread(a, b, stride, padding, more) + c[:, None, None]
        agree(by_tiles(gp.conv_transpose2d, x, w, bias, stride=stride, padding=padding, output_padding=more), expected)


def test_a_phase_of_fewer_tiles_than_another_reads_none_outside_the_image() -> None:
    one = next(one for one in reversed(tiles.ALL[bfloat16]) if one.wide < one.places)
    columns, rows = one.wide, one.places // one.wide
    (x, a), (w, b) = (normal("bfloat16", *s) for s in ((1, 16, rows, columns), (16, 24, 3, 3)))
    with plans.using({tiles.FAMILY: {"half": [asdict(one)]}}):
        found = by_tiles(gp.conv_transpose2d, x, w, stride=2)  # 2 * rows + 1 by 2 * columns + 1
    agree(found, spread(a, b, (2, 2), (0, 0), (0, 0)))


def test_one_hot_kernels_move_the_image() -> None:
    x, a = normal("bfloat16", 1, 16, 6, 7)
    padded = np.pad(a, [(0, 0), (0, 0), (1, 1), (1, 1)])
    for i, j in ((0, 0), (1, 2), (2, 1)):
        kernel = np.zeros((16, 16, 3, 3), np.float32)
        kernel[np.arange(16), np.arange(16), i, j] = 1.0
        moved = by_tiles(gp.conv2d, x, gp.from_numpy(kernel).astype("bfloat16"), padding=1)
        np.testing.assert_array_equal(moved.astype("float64").to_numpy(), padded[:, :, i : i + 6, j : j + 7])


def test_copies_with_padding() -> None:
    values = np.random.default_rng().standard_normal((2, 5, 6, 32)).astype("float32")
    for dtype in ("float16", "float32"):
        x = gp.from_numpy(values).astype(dtype).transpose(0, 3, 1, 2)
        whole = 16 // x.itemsize
        margins = ((0, 0), (0, 0)), ((1, 2), (0, 3))
        odd = (x[:, 1:], 1), (x[:, :, ::-1], 2), (x[:, :20], 5), (x.clone(), 2), (x[:, :30], 2), (x[:, :, 1:, ::2], 4)
        for (given, groups), (before, after) in ((one, margin) for one in odd for margin in margins):
            with host.built_in_kernels():
                found = padded(given, groups, before, after)
                gp.synchronize()
            own, filled = given.shape[1] // groups, found.shape[1] // groups
            assert found.strides[1] == x.itemsize and filled % whole == 0
            parts = found.to_numpy().reshape(2, groups, filled, *found.shape[2:])
            wanted = given.to_numpy().reshape(2, groups, own, *given.shape[2:])
            room = [(0, 0), (0, 0), (0, filled - own), *zip(before, after, strict=True)]
            np.testing.assert_array_equal(parts, np.pad(wanted, room))


def test_one_place_of_the_kernel_and_images_of_odd_sizes() -> None:
    (x, a), (w, b) = (normal("bfloat16", *s) for s in ((2, 16, 3, 3), (24, 16, 1, 1)))
    agree(by_tiles(gp.conv2d, x, w), convolve(a, b, (1, 1), (0, 0), (1, 1), 1))


@pytest.mark.parametrize("image", [(1, 1), (5, 1), (1, 5)])
def test_an_axis_of_one_place(image: tuple[int, int]) -> None:
    (x, a), (w, b) = normal("bfloat16", 3, 16, *image), normal("bfloat16", 24, 16, 1, 1)
    expected = convolve(a, b, (1, 1), (0, 0), (1, 1), 1)
    agree(by_tiles(gp.conv2d, x, w), expected)
    last = x.transpose(0, 2, 3, 1).copy()
    agree(by_tiles(gp.conv2d, last, w, channels_last=True).transpose(0, 3, 1, 2), expected)
