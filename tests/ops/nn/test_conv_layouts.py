"""Activations, channels last and transposed convolutions in two dimensions, by NumPy's leaf and by the kernels on the
simulator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from rounded import agree, normal

import pygpukit as gp
from pygpukit.kernels import activation

pytestmark = pytest.mark.usefixtures("operation_backend")

Values = np.ndarray[Any, Any]
FUNCTIONS: dict[str, Callable[[gp.GPUArray], gp.GPUArray]] = {
    "relu": gp.relu,
    "gelu": gp.gelu,
    "gelu_tanh": partial(gp.gelu, approximate="tanh"),
    "silu": gp.silu,
    "sigmoid": gp.sigmoid,
    "tanh": gp.tanh,
}


def spread(x: Values, w: Values, stride: Any, padding: Any, more: Any, dilation: Any, groups: int) -> Values:
    """Each input times the kernel, added where it falls."""
    extents = [
        (x.shape[2 + d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (w.shape[2 + d] - 1) + more[d] + 1
        for d in range(2)
    ]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *(n + 2 * p for n, p in zip(extents, padding, strict=True))))
    for channel, i, j, filter, k, m in np.ndindex(*x.shape[1:], *w.shape[1:]):
        at = channel // (x.shape[1] // groups) * w.shape[1] + filter
        row, column = i * stride[0] + k * dilation[0], j * stride[1] + m * dilation[1]
        out[:, at, row, column] += x[:, channel, i, j] * w[channel, filter, k, m]
    return out[:, :, padding[0] : padding[0] + extents[0], padding[1] : padding[1] + extents[1]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("stride", "padding", "more", "dilation", "groups"),
    [((1, 1), (0, 0), (0, 0), (1, 1), 1), ((2, 3), (1, 2), (1, 2), (1, 2), 2), ((3, 1), (0, 1), (2, 0), (2, 1), 4)],
)
def test_conv_transpose2d(dtype: str, stride: Any, padding: Any, more: Any, dilation: Any, groups: int) -> None:
    (x, a), (w, b), (bias, c) = normal(dtype, 2, 4, 5, 6), normal(dtype, 4, 3, 4, 3), normal(dtype, 3 * groups)
    given = {"output_padding": more, "dilation": dilation, "groups": groups}
    found = gp.conv_transpose2d(x, w, bias, stride, padding, **given)
    agree(found, spread(a, b, stride, padding, more, dilation, groups) + c[:, None, None], scale=2)
    views = x[:, :, ::-1, ::2], w[..., ::-1]
    agree(
        gp.conv_transpose2d(*views, groups=groups),
        spread(a[:, :, ::-1, ::2], b[..., ::-1], (1, 1), (0, 0), (0, 0), (1, 1), groups),
        2,
    )


def test_one_row_is_the_convolution_of_one_dimension() -> None:
    (x, _), (w, _) = normal("float32", 2, 4, 9), normal("float32", 4, 3, 5)
    line = gp.conv_transpose1d(x, w, stride=2, padding=1).to_numpy()
    image = gp.conv_transpose2d(x[:, :, None], w[:, :, None], stride=(1, 2), padding=(0, 1)).to_numpy()
    assert image[:, :, 0].tobytes() == line.tobytes()


@pytest.mark.parametrize("act", activation.names())
def test_activations(act: str) -> None:
    (x, _), (w, _) = normal("float32", 2, 4, 7, 8), normal("float32", 9, 4, 3, 3)
    function = FUNCTIONS[act]
    expected = function(gp.conv2d(x, w).astype("float64")).to_numpy()
    agree(gp.conv2d(x, w, act=act), expected, scale=4)
    expected = function(gp.conv_transpose1d(x[:, :, 0], w[:4, :, 0]).astype("float64")).to_numpy()
    agree(gp.conv_transpose1d(x[:, :, 0], w[:4, :, 0], act=act), expected, scale=4)
    spoiled = x.clone()
    spoiled[0, 0, 0, 0] = float("nan")
    assert np.isnan(gp.conv2d(spoiled, w, act=act).to_numpy()).sum() == 9


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_channels_last_gives_the_same_bits(groups: int) -> None:
    (x, _), (w, _), (bias, _) = (
        normal("bfloat16", 2, 4, 7, 8),
        normal("bfloat16", 8, 4 // groups, 3, 2),
        normal("bfloat16", 8),
    )
    last = x.transpose(0, 2, 3, 1)
    settings: dict[str, Any] = {"padding": 1, "stride": 2, "dilation": 2, "groups": groups, "act": "silu"}
    first = gp.conv2d(x, w, bias, **settings).to_numpy()
    for given in (last, last.clone()):
        found = gp.conv2d(given, w, bias, channels_last=True, **settings)
        assert found.is_contiguous()
        assert found.transpose(0, 3, 1, 2).to_numpy().tobytes() == first.tobytes()
    line = gp.conv1d(x[:, :, 0], w[:, :, 0], bias, padding=1, groups=groups).to_numpy()
    found = gp.conv1d(last[:, 0], w[:, :, 0], bias, padding=1, groups=groups, channels_last=True)
    assert found.transpose(0, 2, 1).to_numpy().tobytes() == line.tobytes()
    back = w[:4]
    larger = gp.conv_transpose2d(x, back, stride=2, groups=groups).to_numpy()
    found = gp.conv_transpose2d(last, back, stride=2, groups=groups, channels_last=True)
    assert found.transpose(0, 3, 1, 2).to_numpy().tobytes() == larger.tobytes()


def test_one_hot_kernels_move_the_image() -> None:
    (x, a) = normal("float32", 1, 3, 6, 7)
    for i, j in np.ndindex(3, 3):
        kernel = gp.zeros((3, 1, 3, 3))
        kernel[:, 0, i, j] = 1.0
        moved = gp.conv2d(x, kernel, groups=3).to_numpy()
        np.testing.assert_array_equal(moved, a.astype(np.float32)[:, :, i : i + 4, j : j + 5])
        put = gp.conv_transpose2d(x, kernel, groups=3).to_numpy()
        np.testing.assert_array_equal(put[:, :, i : i + 6, j : j + 7], a.astype(np.float32))
        assert np.count_nonzero(put) == a.size


def test_empty_and_refusals() -> None:
    x, w = gp.zeros((1, 4, 5, 5)), gp.zeros((4, 2, 3, 3))
    assert gp.conv_transpose2d(x[:0], w).shape == (0, 2, 7, 7)
    assert gp.conv_transpose2d(x.transpose(0, 2, 3, 1)[:0], w, channels_last=True).shape == (0, 7, 7, 2)
    only_bias = gp.conv_transpose2d(gp.zeros((1, 0, 2, 2)), gp.zeros((0, 2, 1, 1)), gp.ones(2), act="relu")
    assert only_bias.to_numpy().tolist() == [[[[1, 1], [1, 1]]] * 2]
    with pytest.raises(gp.InvalidSpecError, match=r"act is 'swish'; it is one of relu, gelu, .*, tanh, or None"):
        gp.conv2d(x, w, act="swish")
    with pytest.raises(gp.ShapeError, match="with Cin of the input last"):
        gp.conv_transpose2d(x, w, channels_last=True)
    with pytest.raises(gp.ShapeError, match="Cin, Cout / groups, KH, KW"):
        gp.conv_transpose2d(x, w[:3])
    with pytest.raises(gp.ShapeError, match=r"bias has shape \(3,\), must be \(2,\)"):
        gp.conv_transpose2d(x, w, gp.zeros(3))
    with pytest.raises(gp.ShapeError, match="nothing is left"):
        gp.conv_transpose2d(x, w, padding=9)
    with pytest.raises(gp.InvalidSpecError, match="output_padding is"):
        gp.conv_transpose2d(x, w, output_padding=(0, -1))
    with pytest.raises(gp.InvalidSpecError, match="stride is"):
        gp.conv_transpose2d(x, w, stride=(1, 2, 3))
