"""The transposing and widened copies themselves, run by the simulator in checked mode: no findings, NumPy's order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit.ops.copying import transposing

pytestmark = pytest.mark.usefixtures("kernels_on_sim")


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


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng().integers(0, 200, shape).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "shape", "kernel"),
    [
        ("uint8", (36, 132), "pk::transpose<unsigned char, 4, 32>"),
        ("uint8", (9, 67), "pk::transpose<unsigned char, 1, 64>"),
        ("float16", (70, 66), "pk::transpose<unsigned short, 2, 32>"),
        ("float16", (67, 9), "pk::transpose<unsigned short, 1, 64>"),
        ("float32", (65, 67), "pk::transpose<unsigned int, 1, 64>"),
        ("float64", (8, 33), "pk::transpose<unsigned long long, 1, 32>"),
        ("complex128", (33, 9), "pk::transpose<pk::complex_t<double>, 1, 32>"),
    ],
)
def test_every_kernel(dtype: str, shape: tuple[int, ...], kernel: str, launched: list[str]) -> None:
    host = numbers(shape, dtype)
    x = gp.from_numpy(host)
    np.testing.assert_array_equal(x.T.contiguous().to_numpy(), host.T)
    assert launched == [kernel]
    out = gp.zeros((shape[1], 2 * shape[0]), dtype)
    out[:, shape[0] :] = x.T
    np.testing.assert_array_equal(out.to_numpy()[:, shape[0] :], host.T)
    np.testing.assert_array_equal(out.to_numpy()[:, : shape[0]], 0)


def test_batches_steps_and_backward_axes(launched: list[str]) -> None:
    host = numbers((2, 3, 12, 40), "float32")
    x = gp.from_numpy(host)
    for order in [(0, 1, 3, 2), (3, 1, 0, 2), (2, 3, 1, 0), (1, 3, 2, 0)]:
        np.testing.assert_array_equal(x.transpose(order).clone().to_numpy(), host.transpose(order))
    np.testing.assert_array_equal(
        x[::-1, :, ::-2].swapaxes(2, 3).clone().to_numpy(), host[::-1, :, ::-2].swapaxes(2, 3)
    )
    assert "pk::transpose<unsigned int, 1, 64>" in launched


@pytest.mark.parametrize("offset", [0, 1])
def test_packed_kernels_need_aligned_sides(offset: int, launched: list[str]) -> None:
    host = numbers((40, 44), "int16")
    view = np.s_[:, offset : offset + 40]
    found = gp.from_numpy(host)[view].T.clone()
    np.testing.assert_array_equal(found.to_numpy(), host[view].T)
    assert launched == [f"pk::transpose<unsigned short, {'1, 64' if offset else '2, 32'}>"]


def test_dense_inner_axes_move_in_wide_pieces(launched: list[str]) -> None:
    host = numbers((6, 10, 8), "float32")
    x = gp.from_numpy(host)
    np.testing.assert_array_equal(x.transpose(1, 0, 2).clone().to_numpy(), host.transpose(1, 0, 2))
    np.testing.assert_array_equal(x[:, 1:].clone().to_numpy(), host[:, 1:])
    np.testing.assert_array_equal(x[::-1, ::3, :4].clone().to_numpy(), host[::-1, ::3, :4])
    wide = "pk::complex_t<double>"
    assert launched == [f"pk::unary_strided<{wide}, {wide}, pk::Copy>"] * 3
    pairs = numbers((20, 30, 2), "float32")
    np.testing.assert_array_equal(gp.from_numpy(pairs).transpose(1, 0, 2).clone().to_numpy(), pairs.transpose(1, 0, 2))
    assert launched[-1] == "pk::transpose<unsigned long long, 1, 32>"


def test_what_no_tile_fits_goes_the_general_way(launched: list[str]) -> None:
    host = numbers((3, 50), "float32")
    x = gp.from_numpy(host)
    np.testing.assert_array_equal(x.T.clone().to_numpy(), host.T)
    np.testing.assert_array_equal(gp.broadcast_to(x[0], (9, 50)).clone().to_numpy(), np.broadcast_to(host[0], (9, 50)))
    np.testing.assert_array_equal(x[:, ::-1].clone().to_numpy(), host[:, ::-1])
    assert x[:0].T.clone().shape == (50, 0)
    assert not any("transpose" in name for name in launched)


def test_everything_launched_is_listed(launched: list[str]) -> None:
    listed = {name for names in transposing.instantiations() for name in names}
    for dtype in ("int8", "int16", "int32", "int64", "complex128"):
        for extent in (16, 17):
            gp.zeros((extent, extent), dtype).T.clone()
    asked = {name for name in launched if "transpose" in name}
    assert len(asked) == 7
    assert asked == listed
