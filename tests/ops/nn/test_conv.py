"""Convolution against plain loops in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rounded import agree, normal

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("operation_backend")

Values = np.ndarray[Any, Any]


def convolve(
    x: Values,
    w: Values,
    bias: Values | None = None,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> Values:
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    rows, columns = ((x.shape[2 + d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1 for d in range(2))
    out = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for n, o, i, j in np.ndindex(out.shape):
        first = o // (w.shape[0] // groups) * w.shape[1]
        top, left = i * stride[0], j * stride[1]
        seen = x[
            n,
            first : first + w.shape[1],
            top : top + dilation[0] * (w.shape[2] - 1) + 1 : dilation[0],
            left : left + dilation[1] * (w.shape[3] - 1) + 1 : dilation[1],
        ]
        out[n, o, i, j] = (seen * w[o]).sum() + (0 if bias is None else bias[o])
    return out


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 8, 9), (5, 3, 3, 3), {"padding": (1, 1)}),
    ((1, 6, 11, 7), (9, 2, 3, 2), {"groups": 3, "stride": (2, 3), "padding": (0, 2)}),
    ((1, 4, 9, 12), (4, 1, 2, 3), {"groups": 4, "dilation": (3, 2)}),
    ((3, 2, 1, 1), (17, 2, 1, 1), {}),
    ((1, 1, 4, 5), (2, 1, 4, 5), {"stride": (7, 7)}),
]


@pytest.mark.parametrize(("x", "w", "settings"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_conv2d(x: tuple[int, ...], w: tuple[int, ...], settings: dict[str, Any], dtype: str) -> None:
    (a, va), (b, vb), (c, vc) = normal(dtype, *x), normal(dtype, *w), normal(dtype, w[0])
    found = gp.conv2d(a, b, c, **settings)
    assert found.dtype == dtype
    agree(found, convolve(va, vb, vc, **settings), scale=2)
    agree(gp.conv2d(a, b, **settings), convolve(va, vb, **settings), scale=2)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_conv1d(dtype: str) -> None:
    (x, a), (w, b), (bias, c) = normal(dtype, 2, 4, 31), normal(dtype, 10, 2, 5), normal(dtype, 10)
    for stride, padding, dilation in ((1, 0, 1), (2, 2, 1), (3, 4, 3)):
        found = gp.conv1d(x, w, bias, stride, padding, dilation=dilation, groups=2)
        expected = convolve(a[:, :, None], b[:, :, None], c, (1, stride), (0, padding), (1, dilation), 2)[:, :, 0]
        agree(found, expected, scale=2)


def spread(x: Values, w: Values, stride: int, padding: int, more: int, dilation: int, groups: int) -> Values:
    """Each input times the kernel, added where it falls."""
    length = (x.shape[2] - 1) * stride - 2 * padding + dilation * (w.shape[2] - 1) + more + 1
    out = np.zeros((x.shape[0], w.shape[1] * groups, length + 2 * padding))
    for n, channel, at, filter, tap in np.ndindex(*x.shape, *w.shape[1:]):
        group = channel // (x.shape[1] // groups)
        out[n, group * w.shape[1] + filter, at * stride + tap * dilation] += x[n, channel, at] * w[channel, filter, tap]
    return out[:, :, padding : padding + length]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_conv_transpose1d(dtype: str) -> None:
    (x, a), (w, b) = normal(dtype, 2, 4, 9), normal(dtype, 4, 3, 7)
    for settings in ((1, 0, 0, 1, 1), (2, 1, 1, 1, 4), (5, 2, 3, 2, 2)):
        stride, padding, more, dilation, groups = settings
        bias, c = normal(dtype, 3 * groups)
        expected = spread(a, b, *settings) + c[:, None]
        given = {"output_padding": more, "dilation": dilation, "groups": groups}
        agree(gp.conv_transpose1d(x, w, bias, stride, padding, **given), expected, scale=2)
    agree(gp.conv_transpose1d(x[:, ::-1, ::2], w[::-1]), spread(a[:, ::-1, ::2], b[::-1], 1, 0, 0, 1, 1), scale=2)
    assert gp.conv_transpose1d(x[:0], w).shape == (0, 3, 15)
    with pytest.raises(gp.ShapeError, match="Cin, Cout / groups, K"):
        gp.conv_transpose1d(x, w[:3])
    with pytest.raises(gp.ShapeError, match="nothing is left of a length of 9"):
        gp.conv_transpose1d(x, w, padding=9)
    with pytest.raises(gp.InvalidSpecError, match="groups is 3"):
        gp.conv_transpose1d(x, w, groups=3)
    with pytest.raises(gp.InvalidSpecError, match="stride is 0"):
        gp.conv_transpose1d(x, w, stride=0)
    with pytest.raises(gp.DTypeError, match="one float type"):
        gp.conv_transpose1d(x, w.astype("bfloat16"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_snake(dtype: str) -> None:
    x, a = normal(dtype, 2, 5, 33)
    alpha = gp.from_numpy(np.linspace(0.5, 2, 5)).astype(dtype)
    b = alpha.astype("float64").to_numpy()[:, None]
    agree(gp.snake(x, alpha), a + np.sin(b * a) ** 2 / b)
    agree(gp.snake(x[:, :, ::-2], alpha), (a + np.sin(b * a) ** 2 / b)[:, :, ::-2])
    assert gp.snake(x[:, :, :0], alpha).shape == (2, 5, 0)
    with pytest.raises(gp.ShapeError, match=r"\(B, C, L\) and \(C,\)"):
        gp.snake(x, alpha[:4])
    with pytest.raises(gp.DTypeError, match="one float type"):
        gp.snake(x, alpha.astype("float16"))


def test_strided_and_empty_inputs() -> None:
    (x, a), (w, b) = normal("float32", 10, 8, 3, 2), normal("float32", 3, 3, 4, 3)
    view, values = x.transpose(3, 2, 1, 0)[:, :, ::-1, ::2], a.transpose(3, 2, 1, 0)[:, :, ::-1, ::2]
    kernel = w.transpose(0, 3, 1, 2)[:, :, :, 1:]
    agree(gp.conv2d(view, kernel, padding=1), convolve(values, b.transpose(0, 3, 1, 2)[:, :, :, 1:], padding=(1, 1)), 2)
    assert gp.conv2d(view[:0], kernel).shape == (0, 3, 6, 3)
    assert gp.conv2d(view, kernel[:0]).shape == (2, 0, 6, 3)
    only_bias = gp.conv1d(gp.zeros((1, 0, 4)), gp.zeros((2, 0, 3)), gp.ones(2))
    assert only_bias.to_numpy().tolist() == [[[1, 1], [1, 1]]]


def test_padding_hides_nothing() -> None:
    x = gp.ones((1, 1, 3))
    x[0, 0, 1] = float("inf")
    found = gp.conv1d(x, gp.ones((1, 1, 2)), padding=1).to_numpy()[0, 0]
    assert found.tolist() == [1, np.inf, np.inf, 1]


def test_refusals() -> None:
    x, w = gp.zeros((1, 4, 8, 8)), gp.zeros((6, 4, 3, 3))
    with pytest.raises(gp.ShapeError, match=r"a kernel of 3 .* does not fit an extent of 2"):
        gp.conv2d(x[:, :, :2], w)
    with pytest.raises(gp.InvalidSpecError, match="groups is 3"):
        gp.conv2d(x, w, groups=3)
    with pytest.raises(gp.ShapeError, match="takes 4 input channels a group"):
        gp.conv2d(x, w, groups=2)
    with pytest.raises(gp.InvalidSpecError, match="stride is 0"):
        gp.conv2d(x, w, stride=0)
    with pytest.raises(gp.InvalidSpecError, match="padding is -1"):
        gp.conv1d(x[0], w[0], padding=-1)
    with pytest.raises(gp.InvalidSpecError, match="padding='same'; give an integer or 2 of them"):
        gp.conv2d(x, w, padding="same")  # type: ignore[arg-type]
    with pytest.raises(gp.InvalidSpecError, match=r"stride=1\.5; give an integer"):
        gp.conv1d(x[0], w[0], stride=1.5)  # type: ignore[arg-type]
    with pytest.raises(gp.ShapeError, match="must have 3 dimensions"):
        gp.conv1d(x, w)
    with pytest.raises(gp.ShapeError, match="bias"):
        gp.conv2d(x, w, gp.zeros(5))
    with pytest.raises(gp.DTypeError, match="one float type"):
        gp.conv2d(x, w.astype("float16"))
    with pytest.raises(gp.DTypeError, match="int32"):
        gp.conv2d(x.astype("int32"), w.astype("int32"))


def test_refusals_of_settings() -> None:
    x, w = gp.zeros((1, 4, 8, 8)), gp.zeros((4, 4, 3, 3))
    settings: list[tuple[dict[str, Any], str]] = [
        *(({"groups": groups}, "groups=.*; give a whole number of groups") for groups in (1.0, "2", None, True)),
        *(({"padding": wrong}, "padding=.*; give an integer") for wrong in (b"\x01", "1", None, True, 1.0)),
        ({"padding": (1, 1, 1)}, r"padding is \(1, 1, 1\), must be an integer"),
        ({"stride": ()}, r"stride is \(\), must be an integer"),
        ({"stride": 2**70}, "stride is .*, must be 1 to 2147483647"),
        ({"dilation": 2**31}, "dilation is 2147483648, must be 1 to 2147483647"),
        ({"act": ["relu"]}, r"act is \['relu'\]; it is one of relu"),
    ]
    calls = (gp.conv1d, gp.conv_transpose1d, gp.conv2d, gp.conv_transpose2d, gp.conv_plan)
    for call in calls:
        arrays = (x[:, :, 0], w[:, :, 0]) if "1d" in call.__name__ else (x, w)
        call(*arrays)
        for given, expected in settings:
            with pytest.raises(gp.InvalidSpecError, match=expected):
                call(*arrays, **given)
        for last in ("no", 1, None):
            with pytest.raises(TypeError, match=f"channels_last is {last!r}, must be True or False"):
                call(*arrays, channels_last=last)  # type: ignore[arg-type]


def test_an_error_of_conv1d_tells_the_shapes_that_were_given() -> None:
    with pytest.raises(gp.ShapeError, match=r"weight of shape \(4, 8, 3\) .* input of shape \(1, 16, 40\)"):
        gp.conv1d(gp.ones((1, 16, 40)), gp.ones((4, 8, 3)))
