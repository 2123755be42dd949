"""The kernels of indexing, masks, padding and rolling, run by the simulator in checked mode: no findings, as NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit.kernels import registry
from pygpukit.ops.indexing import masks, padding, places, triangles

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

A = np.arange(4 * 5 * 8, dtype=np.float32).reshape(4, 5, 8)
S = slice(None)


def device(values: Any) -> gp.GPUArray:
    return gp.from_numpy(np.asarray(values))


def same(found: gp.GPUArray, expected: Any) -> None:
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are launched, as they are."""
    names: list[str] = []
    launch = kernels.launch

    def noted(spec: kernels.KernelSpec, *args: Any) -> None:
        names.append(spec.expression)
        launch(spec, *args)

    monkeypatch.setattr(kernels, "launch", noted)
    return names


def test_rows_move_in_the_widest_pieces(launched: list[str]) -> None:
    for view, kernel in (
        (A, "pk::complex_t<double>"),
        (A[..., :6], "unsigned long long"),
        (A[..., 1:], "unsigned int"),
    ):
        lines = np.ascontiguousarray(view)
        index = np.array([[0, -1], [2, 2]])
        same(device(lines)[device(index)], lines[index])
        same(device(lines)[:, device(index)], lines[:, index])
        assert set(launched) == {f"pk::gather_rows<{kernel}, long long>"}
        launched.clear()
    same(device(A)[device(np.int32([3, 1]))], A[[3, 1]])
    same(device(A)[2:, 1:, 4:][device([1, 0])], A[2:, 1:, 4:][[1, 0]])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_long_rows_at_any_place_are_put_together_to_packs(
    dtype: str, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_LARGE", 0)
    a = np.random.default_rng().integers(0, 99, 5 * 2109 + 3).astype(dtype)
    for start in range(4):
        lines = a[start:][: 5 * (2101 + start)].reshape(5, -1)
        x = device(a)[start:][: lines.size].reshape(lines.shape)
        index = np.array([4, 0, -3, 2, 2])
        same(x[device(index)], lines[index])
        out = gp.zeros(lines.size + 3, dtype)
        gp.take(x, device(index), 0, out=out[3:].reshape(lines.shape))
        same(out, np.concatenate((np.zeros(3, dtype), lines[index].ravel())))
    assert {"gather_packs" in name for name in launched} == {True}
    with pytest.raises(IndexError):
        x[device([1, 9])].to_numpy()


def test_single_elements_and_strided_rows(launched: list[str]) -> None:
    x, index = device(A), np.array([7, 0, 0, -3])
    same(x[..., device(index)], A[..., index])
    same(x.T[device(index)], A.T[index])
    same(x[::-1, :, ::-2][:, device([4, 0])], A[::-1, :, ::-2][:, [4, 0]])
    same(gp.take_along_axis(x, device(np.argsort(-A, 1)), 1), np.take_along_axis(A, np.argsort(-A, 1), 1))
    assert any("gather_strided" in name for name in launched)


def test_several_index_arrays_and_masks_make_offsets(launched: list[str]) -> None:
    x, rows, columns = device(A), np.array([[3], [0]]), np.array([1, -1, 1])
    same(x[device(rows), device(columns)], A[rows, columns])
    same(x[device(rows), :, [0, 7, 1]], A[rows, :, [0, 7, 1]])
    mask = A[:, :, 0] % 16 == 0
    same(x[device(mask)], A[mask])
    same(x[:, device(mask[0])], A[:, mask[0]])
    same(x[device(mask), device([0])], A[mask, [0]])
    assert "pk::resolve<long long>" in launched


@pytest.mark.parametrize("count", [1, 40, 700])
def test_writing_keeps_the_last_value(count: int) -> None:
    rng = np.random.default_rng()
    index, values = rng.integers(-4, 4, count), rng.random((count, 5, 8), np.float32)
    for key in (device(index), index):
        x, host = device(A), A.copy()
        for position, value in zip(index, values, strict=True):
            host[position] = value
        x[key] = device(values)
        same(x, host)
    columns = rng.integers(0, 5, count)
    x, host = device(A)[:, ::-1, ::2], A[:, ::-1, ::2].copy()
    for i, j, value in zip(index, columns, values, strict=True):
        host[i, j] = value[0, :4]
    x[device(index), device(columns)] = device(values[:, 0, :4])
    same(x, host)


def test_writing_numbers_and_by_masks() -> None:
    x, host = device(A), A.copy()
    for key in ([0, 0], (S, [1, 2], S), A > 100, (S, A[0] > 20), (A[..., 0] > 70,)):
        host[key] = -host.flat[3] - 1
        parts = key if isinstance(key, tuple) else (key,)
        x[tuple(device(part) if part is not S else part for part in parts)] = float(host[key].flat[0])
        same(x, host)
    mask = A > 90
    host[mask] = np.arange(mask.sum())
    x[device(mask)] = device(np.arange(mask.sum(), dtype=np.float32))
    same(x, host)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_modes(mode: str) -> None:
    index = np.array([-30, 4, 3, 100])
    same(gp.take(device(A), device(index), 0, mode=mode), A.take(index, 0, mode=mode))
    same(gp.take(device(A).T, device(index), mode=mode), A.T.take(index, mode=mode))


def test_indices_out_of_range_are_reported_at_the_next_wait() -> None:
    x = device(A)
    found = x[:, device([1, 5, -6])]
    with pytest.raises(IndexError, match=r"index (5|-6) is out of range for axis 1 with size 5"):
        found.to_numpy()
    same(found, np.stack([A[:, 1], 0 * A[:, 1], 0 * A[:, 1]], 1))
    x[device([0, 9])] = 5
    with pytest.raises(IndexError, match="index 9 is out of range for axis 0 with size 4"):
        gp.synchronize()
    same(x[0], np.full((5, 8), 5))
    x.take(device([7]), 1)
    with pytest.raises(IndexError, match="index 7"):
        gp.current_stream().synchronize()
    with gp.Stream() as stream:
        x[device([9]), device([0])]
    gp.current_stream().synchronize()
    with pytest.raises(IndexError, match="index 9"):
        stream.synchronize()
    gp.synchronize()


def test_launches_of_a_graph_report_indices_out_of_range() -> None:
    x, index, ids = device(A), device([1, 2]), device([0, 3])
    stream = gp.Stream()
    with stream.capture() as graph:
        found, rows = x[index], gp.embedding(x[:, 0], ids)
    gp.synchronize()  # nothing has run yet
    graph.launch(stream)
    stream.synchronize()
    same(found, A[[1, 2]])
    for bad, told in ((index, 4), (ids, -1), (index, 99)):
        bad[0] = told
        gp.synchronize()
        graph.launch(stream)
        graph.launch(stream)
        with pytest.raises(IndexError, match=f"index {told} is out of range for axis 0 with size 4"):
            stream.synchronize()
        gp.synchronize()  # told once
        bad[0] = 1
        gp.synchronize()
        graph.launch()
        gp.synchronize()
        same(found, A[[1, 2]])
    same(rows, A[[1, 3], 0])


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 5000, 40_000])
def test_compaction(size: int) -> None:
    rng = np.random.default_rng()
    values = rng.random(size + 1, np.float32)
    for share in (0.0, 0.3, 1.0):
        chosen = rng.random(size + 1) < share
        same(masks.flatnonzero(device(chosen)), np.flatnonzero(chosen))
        same(device(values)[1:][device(chosen)[1:]], values[1:][chosen[1:]])
    same(device(A.T)[::-1][device(A.T > 30)], A.T[::-1][A.T > 30])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_padding(mode: str) -> None:
    for host, width in (
        (A, 2),
        (A[:2, 1], ((3, 5), (0, 0))),
        (A[0, 0, :1], 3),
        (A[..., ::-1], ((0, 0), (1, 0), (0, 9))),
    ):
        same(
            gp.pad(device(A)[..., ::-1] if host.ndim == 3 and width != 2 else device(host), width, mode),
            np.pad(host, width, mode),
        )


def test_padding_with_constants_rolling_and_triangles() -> None:
    values = ((1, 2), (3, 4), (5, 6))
    same(gp.pad(device(A), 1, constant_values=values), np.pad(A, 1, constant_values=values))
    same(gp.pad(device(A[:, :0]), 1, constant_values=values), np.pad(A[:, :0], 1, constant_values=values))
    for shift, axis in ((3, None), (-2, 1), ((1, 9), (0, 2))):
        same(gp.roll(device(A), shift, axis), np.roll(A, shift, axis))
    same(gp.roll(device(A).T[::-1], 2, 1), np.roll(A.T[::-1], 2, 1))
    for k in (-3, 0, 2):
        same(gp.tril(device(A), k), np.tril(A, k))
        same(gp.triu(device(A).T, k), np.triu(A.T, k))


def test_few_numbers_of_the_host_travel_in_the_launch(launched: list[str]) -> None:
    for count in (1, 448, 449):
        numbers = np.random.default_rng().integers(-(2**62), 2**62, count)
        same(places.upload(numbers), numbers)
    assert launched == ["pk::literals"] * 2


def test_everything_that_operations_ask_for_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    monkeypatch.setattr(kernels, "launch", lambda spec, *_: asked.add(spec.expression))
    for dtype in ("int8", "int16", "int32", "int64", "complex128"):
        x = gp.empty((4, 6), dtype)
        for index_type in ("int32", "int64", "uint8"):
            index = gp.empty((3,), index_type)
            for view in (x, x[:, 1:4], x.T, x[::-1, ::2]):
                view[index], view[:, index], view[index, index]
                view[index] = view[0]
                view[index] = gp.empty((3, view.shape[1]), dtype)
        x[gp.empty((4, 6), "bool")] = 0
        gp.pad(x, 1)
        gp.tril(x)
    x[[0, 1]]
    sources = (places.SOURCE, padding.SOURCE, triangles.SOURCE, masks.SOURCE)
    listed = {name for one in sources for unit in registry.units(one.source) for name in unit.expressions}
    assert len(asked) > 40
    assert {name for name in asked if "unary" not in name and "transpose" not in name} <= listed
