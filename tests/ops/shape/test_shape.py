"""Shape functions against NumPy's of the same names: values, views, errors; on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core, ops

pytestmark = pytest.mark.usefixtures("operation_backend")


def numbers(shape: tuple[int, ...], dtype: str = "int32") -> np.ndarray[Any, Any]:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def agree(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            agree(one, other)
        return
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.to_numpy(), expected)


VIEWS: list[tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = [
    ((2, 3, 4), lambda m, x: m.reshape(x, (4, -1))),
    ((2, 3, 4), lambda m, x: m.ravel(x)),
    ((2, 0, 4), lambda m, x: m.ravel(x)),
    ((2, 3, 4), lambda m, x: m.transpose(x)),
    ((2, 3, 4), lambda m, x: m.transpose(x, (1, -1, 0))),
    ((2, 3, 4), lambda m, x: m.permute_dims(x, (2, 0, 1))),
    ((2, 3, 4), lambda m, x: m.swapaxes(x, 0, -1)),
    ((2, 3, 4, 5), lambda m, x: m.moveaxis(x, [0, 1], [-1, 0])),
    ((2, 3, 4, 5), lambda m, x: m.moveaxis(x, 2, 0)),
    ((1, 3, 1), lambda m, x: m.squeeze(x)),
    ((1, 3, 1), lambda m, x: m.squeeze(x, -1)),
    ((2, 3), lambda m, x: m.expand_dims(x, (0, 2))),
    ((2, 3), lambda m, x: m.expand_dims(x, -1)),
    ((2, 3, 4), lambda m, x: m.flip(x)),
    ((2, 3, 4), lambda m, x: m.flip(x, (0, 2))),
    ((2, 3, 4), lambda m, x: m.fliplr(x)),
    ((2, 0), lambda m, x: m.flip(x)),
    ((2, 3, 4), lambda m, x: m.flipud(x)),
    *[((2, 3, 4), lambda m, x, k=k: m.rot90(x, k, (0, 2))) for k in (-1, 0, 1, 2, 3)],
    ((3, 1), lambda m, x: m.broadcast_to(x, (2, 3, 4))),
    ((), lambda m, x: m.broadcast_to(x, (2,))),
    ((), lambda m, x: m.atleast_1d(x)),
    ((3,), lambda m, x: m.atleast_2d(x)),
    ((2, 2, 2), lambda m, x: m.atleast_2d(x)),
    *[((4, 5), lambda m, x, k=k: m.diagonal(x, k)) for k in (-4, -1, 0, 2, 7)],
    ((2, 3, 4), lambda m, x: m.diagonal(x, 1, -1, 0)),
    ((4, 5), lambda m, x: m.diag(x, 1)),
    ((7, 2), lambda m, x: m.array_split(x, 3)),
    ((7, 2), lambda m, x: m.array_split(x, [2, 5, 9])),
    ((2, 6), lambda m, x: m.split(x, 3, axis=1)),
    ((2, 3), lambda m, x: m.unstack(x, axis=1)),
]


@pytest.mark.parametrize(("shape", "call"), VIEWS)
def test_views(shape: tuple[int, ...], call: Callable[[Any, Any], Any]) -> None:
    host = numbers(shape)
    x = gp.from_numpy(host)
    before = _core.counters()
    found = call(gp, x)
    after = _core.counters()
    assert [after[k] - before[k] for k in ("launches", "host_launches", "h2d_bytes")] == [0, 0, 0]
    agree(found, call(np, host))
    for one in found if isinstance(found, (list, tuple)) else [found]:
        assert one.block == x.block


COPIES: list[tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = [
    ((2, 3), lambda m, x: m.reshape(x, (3, 2), copy=True)),
    *[((2, 3), lambda m, x, s=s: m.roll(x, s)) for s in (0, 1, -8)],
    ((4, 5, 6), lambda m, x: m.roll(x, (1, -2, 3), (0, 1, 0))),
    ((4, 5, 6), lambda m, x: m.roll(x[::-1, :, ::2], 2, -1)),
    ((4, 5), lambda m, x: m.roll(x, 3, (0, 1))),
    ((0, 5), lambda m, x: m.roll(x, 3, 0)),
    ((2, 3), lambda m, x: m.tile(x, 2)),
    ((2, 3), lambda m, x: m.tile(x, (2, 1, 3))),
    ((2, 1, 3), lambda m, x: m.tile(x.T, (2, 2))),
    ((2, 3), lambda m, x: m.tile(x, (0, 2))),
    ((), lambda m, x: m.tile(x, (2, 2))),
    ((2, 3), lambda m, x: m.repeat(x, 3)),
    ((2, 3), lambda m, x: m.repeat(x.T, 2, axis=0)),
    ((2, 3), lambda m, x: m.repeat(x, [2, 0, 1], axis=1)),
    ((2, 3), lambda m, x: m.repeat(x, [3], axis=1)),
    ((2, 3), lambda m, x: m.repeat(x, 0, axis=1)),
    *[((4, 5), lambda m, x, k=k: (m.tril(x, k), m.triu(x, k))) for k in (-2, 0, 3)],
    ((2, 5, 3), lambda m, x: m.tril(x[:, ::2])),
    *[((3,), lambda m, x, k=k: m.diag(x, k)) for k in (-1, 0, 2)],
    ((3, 4), lambda m, x: m.concatenate([x, x[:1], x[::-1]])),
    ((3, 4), lambda m, x: m.concatenate([x, x[:, ::2]], axis=-1)),
    ((3, 4), lambda m, x: m.concat([x, x[0]], axis=None)),
    ((3, 4), lambda m, x: m.stack([x, x, x[::-1]], axis=1)),
    ((3, 4), lambda m, x: m.stack([x.T], axis=-1)),
    *[((3,), lambda m, x, f=f: getattr(m, f)([x, x])) for f in ("hstack", "vstack", "dstack")],
    *[((3, 2), lambda m, x, f=f: getattr(m, f)([x, x])) for f in ("hstack", "vstack", "dstack")],
    ((3,), lambda m, x: m.meshgrid(x, x[:2])),
    ((3,), lambda m, x: m.meshgrid(x, x[:2], x[1:], indexing="ij")),
    ((3,), lambda m, x: m.meshgrid(x, x[:2], sparse=True)),
]


@pytest.mark.parametrize(("shape", "call"), COPIES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_copies(shape: tuple[int, ...], call: Callable[[Any, Any], Any]) -> None:
    host = numbers(shape)
    x = gp.from_numpy(host)
    found = call(gp, x)
    agree(found, call(np, host))
    for one in found if isinstance(found, (list, tuple)) else [found]:
        one[...] = 0
    np.testing.assert_array_equal(x.to_numpy(), host, "the result is a copy")


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize(
    ("shape", "width"),
    [
        ((4,), 2),
        ((3,), (7, 11)),
        ((2, 3), ((1, 2), (0, 4))),
        ((1, 3), 3),
        ((2, 3, 2), ((0, 0), (1, 1), (5, 0))),
        ((), 0),
    ],
)
def test_pad(mode: str, shape: tuple[int, ...], width: Any) -> None:
    host = numbers(shape, "float32")
    agree(gp.pad(gp.from_numpy(host), width, mode), np.pad(host, width, mode) if shape else host)
    turned = gp.pad(gp.from_numpy(host).T[..., ::-1] if len(shape) == 2 else gp.from_numpy(host), 1, mode)
    agree(turned, np.pad(host.T[..., ::-1] if len(shape) == 2 else host, 1, mode) if shape else host)


def test_pad_with_constants_of_each_side() -> None:
    host = numbers((2, 3))
    values = ((7, 8), (9, 10))
    agree(gp.pad(gp.from_numpy(host), 2, constant_values=values), np.pad(host, 2, constant_values=values))
    agree(gp.pad(gp.from_numpy(host[:0]), 1, constant_values=values), np.pad(host[:0], 1, constant_values=values))
    half = gp.pad(gp.ones(2, "bfloat16"), 1, constant_values=0.5)
    assert half.astype("float32").to_numpy().tolist() == [0.5, 1, 1, 0.5]


def test_joining_promotes_and_writes_out() -> None:
    a, b = numbers((2, 3)), numbers((1, 3), "float32")
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    agree(gp.concatenate([x, y]), np.concatenate([a, b]))
    out = gp.zeros((6, 3), "float64")
    assert gp.concatenate([x, y], out=out[::2]).block == out.block
    np.testing.assert_array_equal(out.to_numpy()[::2], np.concatenate([a, b]))
    line = gp.from_numpy(numbers((4,)))
    gp.concatenate([line[2:], line[:2]], out=line)
    assert line.to_numpy().tolist() == [3, 4, 1, 2]


@pytest.mark.parametrize("args", [(0, 1, 5), (3, -3, 4), (0, 10, 1), (0, 1, 0), (1 + 1j, 2, 3)])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(args: tuple[Any, Any, int], endpoint: bool) -> None:
    agree(gp.linspace(*args, endpoint), np.linspace(*args, endpoint))


def test_linspace_types_and_eye() -> None:
    agree(gp.linspace(-2, 2, 7, dtype="int32"), np.linspace(-2, 2, 7, dtype="int32"))
    agree(gp.linspace(0, 1, 7, dtype="float32"), np.linspace(0, 1, 7).astype("float32"))
    for args in ((3,), (2, 4, 1), (4, 2, -1), (2, 2, 5), (0,)):
        agree(gp.eye(*args), np.eye(*args, dtype="float32"))


def test_methods() -> None:
    host = numbers((1, 3, 4))
    x = gp.from_numpy(host)
    for call in (
        lambda a: a.squeeze(0),
        lambda a: a.ravel(),
        lambda a: a.flatten(),
        lambda a: a.swapaxes(1, 2),
        lambda a: a.repeat(2, 1),
        lambda a: a.diagonal(0, 1, 2),
        lambda a: a.take([2, 0], 1),
        lambda a: a.compress([True, False, True], 1),
    ):
        agree(call(x), call(host))
    assert x.ravel().block == x.block
    assert x.flatten().block != x.block


def test_views_that_repeat_elements_cannot_be_written() -> None:
    view = gp.broadcast_to(gp.ones(3), (2, 3))
    for write in (lambda: view.fill(0), lambda: gp.add(view, 1, out=view), lambda: view.__setitem__([0], 1)):
        with pytest.raises(gp.ShapeError, match=r"broadcast view of shape \(2, 3\)"):
            write()
    view[:, :1].clone()[...] = 5


def test_assignment_ignores_leading_ones() -> None:
    x = gp.zeros((2, 3))
    x[0] = gp.ones((1, 1, 3))
    assert x.to_numpy().tolist() == [[1, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: gp.squeeze(x, 0), "squeeze: axis 0 of shape"),
        (lambda x: gp.expand_dims(x, 4), "expand_dims: axis 4"),
        (lambda x: gp.transpose(x, (0, 0)), "transpose"),
        (lambda x: gp.moveaxis(x, [0, 1], [0]), "moveaxis: 2 axes"),
        (lambda x: gp.broadcast_to(x, (3, 3)), r"broadcast_to: shape"),
        (lambda x: gp.broadcast_to(x, (3,)), r"broadcast_to: shape"),
        (lambda x: gp.reshape(x.T, (6,), copy=False), "without a copy"),
        (lambda x: gp.concatenate([x, x.T]), r"concatenate: shapes \(2, 3\) and \(3, 2\)"),
        (lambda x: gp.concatenate([]), "no array"),
        (lambda x: gp.concatenate([x[0, 0]]), "0-d"),
        (lambda x: gp.stack([x, x[:1]]), r"stack: shapes \(2, 3\) and \(1, 3\)"),
        (lambda x: gp.split(x, 2, 1), r"not divided by 2"),
        (lambda x: gp.array_split(x, 0), "number of parts"),
        (lambda x: gp.pad(x, -1), "negative"),
        (lambda x: gp.pad(x, ((1, 2), (1, 2), (1, 2))), "pad_width"),
        (lambda x: gp.pad(x[:0], 1, "edge"), "axis 0 of shape .* is empty"),
        (lambda x: gp.roll(x, 1, 2), "roll: axis 2"),
        (lambda x: gp.repeat(x, [1, 2], 1), "2 repetitions do not fit axis 1"),
        (lambda x: gp.repeat(x, -1), "negative"),
        (lambda x: gp.tile(x, -1), "negative"),
        (lambda x: gp.tril(x[0, 0]), "fewer than 2 axes"),
        (lambda x: gp.diag(gp.ones((1, 1, 1))), "neither 1-D nor 2-D"),
        (lambda x: gp.rot90(x, 1, (0, 0)), "rot90"),
        (lambda x: ops.transpose_4d_0213(x), "not 4-D"),
    ],
)
def test_refusals_name_function_and_shape(call: Callable[[gp.GPUArray], Any], words: str) -> None:
    with pytest.raises(gp.ShapeError, match=words):
        call(gp.ones((2, 3)))


def test_host_arrays_are_refused() -> None:
    for call in (gp.ravel, gp.flip, gp.tril, lambda a: gp.concatenate([a]), lambda a: gp.pad(a, 1)):
        with pytest.raises(gp.DTypeError, match="from_numpy"):
            call(np.ones((2, 2), np.float32))


def test_documented_names() -> None:
    three, four = numbers((2, 3, 4), "float32"), numbers((2, 3, 4, 5), "float32")
    x, y = gp.from_numpy(three), gp.from_numpy(four)
    agree(ops.transpose_3d_021(x), three.transpose(1, 0, 2))
    agree(ops.tensor.transpose_3d_012(x), three.transpose(0, 2, 1))
    agree(ops.transpose_4d_0213(y), four.transpose(0, 2, 1, 3))
    agree(ops.tensor.transpose_4d_0132(y), four.transpose(0, 1, 3, 2))
    assert ops.transpose_3d_021(x).is_contiguous()
    out = gp.zeros((3, 2, 4))
    assert ops.transpose_3d_021(x, out=out) is None
    agree(out, three.transpose(1, 0, 2))
    agree(ops.concat_axis0(x, x[:1]), np.concatenate([three, three[:1]]))
    agree(ops.repeat_interleave_axis1(x, 2), np.repeat(three, 2, 1))
    agree(ops.reshape_copy(x, (6, 4)), three.reshape(6, 4))
    assert ops.reshape_copy(x, out=gp.zeros((24,))) is None
    with pytest.raises(gp.ShapeError, match="elements"):
        ops.reshape_copy(x, (5, 5))
    half = ops.cast_f32_to_f16(x)
    agree(half, three.astype("float16"))
    agree(ops.cast_f16_to_f32(half), three)
    agree(ops.cast_bf16_to_f32(ops.cast_f32_to_bf16(x)), three)
    with pytest.raises(gp.DTypeError, match="expected float32"):
        ops.cast_f32_to_f16(half)
