"""Convolutions whose groups have few channels, by their kernels, on the simulator too, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rounded import agree, normal

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.jit.compile import simulator
from pygpukit.kernels import launcher
from pygpukit.ops import host
from pygpukit.ops.nn.conv import choose

pytestmark = pytest.mark.usefixtures("backend_name")

Values = np.ndarray[Any, Any]


@pytest.fixture(params=["depthwise", "few"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernel that convolutions take; on the simulator checked, and compiled the quickest way."""
    if is_sim():
        monkeypatch.setenv("PYGPUKIT_CHECK", "1")
        monkeypatch.setattr(launcher, "_kernels", {})
        monkeypatch.setattr(simulator, "_FLAGS", tuple(flag for flag in simulator._FLAGS if flag != "-O2"))
        monkeypatch.setattr(choose, "is_sim", lambda: False)
    choose._by_kernels.cache_clear()
    request.addfinalizer(choose._by_kernels.cache_clear)
    return str(request.param)


def by_kernel(x: gp.GPUArray, w: gp.GPUArray, bias: gp.GPUArray | None = None, **settings: Any) -> gp.GPUArray:
    """The convolution by its kernel; NumPy makes and reads the arrays, which takes no compiler."""
    with host.built_in_kernels():
        found = gp.conv2d(x, w, bias, **settings)
        gp.synchronize()
    return found


def convolve(x: Values, w: Values, padding: tuple[int, int], groups: int) -> Values:
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    rows, columns = (x.shape[2 + d] - w.shape[2 + d] + 1 for d in range(2))
    out = np.zeros((x.shape[0], groups, w.shape[0] // groups, rows, columns))
    for i, j in np.ndindex(w.shape[2:]):
        seen = x[:, :, i : i + rows, j : j + columns].reshape(x.shape[0], groups, -1, rows, columns)
        out += np.einsum("ngcij,goc->ngoij", seen, w[:, :, i, j].reshape(groups, -1, w.shape[1]))
    return out.reshape(x.shape[0], -1, rows, columns)


def test_sums_and_their_bits(kind: str) -> None:
    groups, filters, channels = (16, 1, 1) if kind == "depthwise" else (2, 5, 8)
    shapes = (2, groups * channels, 5, 9), (groups * filters, channels, 3, 3), (groups * filters,)
    (x, a), (w, b), (bias, c) = (normal("bfloat16", *shape) for shape in shapes)
    given: dict[str, Any] = {"padding": (1, 2), "groups": groups}
    with host.built_in_kernels():
        assert gp.conv_plan(x, w, **given).backend == ("few" if kind == "few" else "plain")
    sums = convolve(a, b, *given.values()) + c[:, None, None]
    found = by_kernel(x, w, bias, act="silu", **given)
    agree(found, sums / (1 + np.exp(-sums)), scale=2)
    last = by_kernel(x.transpose(0, 2, 3, 1).clone(), w, bias, act="silu", channels_last=True, **given)
    assert last.transpose(0, 3, 1, 2).to_numpy().tobytes() == found.to_numpy().tobytes()
    alone = by_kernel(x[1:], w, bias, act="silu", **given)
    assert alone.to_numpy().tobytes() == found[1:].to_numpy().tobytes()
    packed = w.transpose(0, 2, 3, 1).clone().transpose(0, 3, 1, 2)
    turned = by_kernel(x[:, :, ::-1, ::2], packed, act="relu", **given)
    agree(turned, np.maximum(convolve(a[:, :, ::-1, ::2], b, *given.values()), 0), scale=2)
    x[0, channels, 2, 4] = float("nan")  # the second group's first channel
    spoiled = np.isnan(by_kernel(x, w, **given).astype("float32").to_numpy())
    assert spoiled[0, filters : 2 * filters, 1:4, 4:7].all() and spoiled.sum() == 9 * filters
