"""What follows a product on SM 9.0 is in its launch, with the bits of two launches; on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.ops import host
from pygpukit.ops.matmul import fused, gemm, hopper, layers
from pygpukit.ops.matmul.after import After


@pytest.fixture(autouse=True)
def kernels() -> Iterator[None]:
    with host.built_in_kernels():
        yield


def numbers(dtype: str, *shape: int) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().uniform(-3, 3, shape).astype(np.float32)).astype(dtype)


def launches(call: Any) -> int:
    before = native.device_counters()["launches"]
    call()
    return int(native.device_counters()["launches"] - before)


@pytest.mark.parametrize("act", [None, "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_one_launch_has_the_bits_of_two(dtype: str, act: str | None) -> None:
    m, n, k = 19, 72, 40
    a, b, bias, residual = numbers(dtype, m, k), numbers(dtype, n, k).T, numbers(dtype, n), numbers(dtype, m, n)
    for after in (
        After(0.5, act=act),
        After(act=act, bias=bias),
        After(act=act, residual=residual, beta=-2.0),
        After(3.0, bias, act, residual),
    ):
        sums, wanted, found = (gp.full((m, n), float("nan"), dtype) for _ in range(3))
        hopper.product(a, b, sums)
        fused.finish(sums, wanted, after)
        assert launches(lambda found=found, after=after: fused.product(hopper.product, a, b, found, after)) == 1
        assert found.to_numpy().tobytes() == wanted.to_numpy().tobytes()


def test_what_cannot_be_in_the_launch_follows_it() -> None:
    """Rows of no whole 16 bytes, arrays with steps, gates of two halves: with the same bits."""
    a, w, bias = numbers("bfloat16", 5, 24), numbers("bfloat16", 20, 24), numbers("bfloat16", 20)
    wide = numbers("bfloat16", 5, 40)
    for n, after in ((20, After(bias=bias)), (16, After(residual=wide[:, :16])), (8, After(act="swiglu"))):
        right = w[: 2 * n if after.act == "swiglu" else n].T
        sums, wanted, found = (gp.full((5, size), float("nan"), "bfloat16") for size in (right.shape[1], n, n))
        assert not after.by_pieces(found)
        hopper.product(a, right, sums)
        fused.finish(sums, wanted, after)
        fused.product(hopper.product, a, right, found, after)
        assert found.to_numpy().tobytes() == wanted.to_numpy().tobytes()


def test_linear_and_beta_are_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "product_of", lambda *_: hopper.product)
    monkeypatch.setattr(layers, "product_of", lambda *_: hopper.product)
    x, w, bias, residual = (numbers("bfloat16", *shape) for shape in ((2, 3, 24), (16, 24), (16,), (2, 3, 16)))
    values = [one.astype("float32").to_numpy() for one in (x, w, bias, residual)]
    assert launches(lambda: gp.linear(x, w, bias, "relu", residual)) == 1
    found = gp.linear(x, w, bias, "relu", residual).astype("float32").to_numpy()
    wanted = np.maximum(values[0] @ values[1].T + values[2], 0) + values[3]
    np.testing.assert_allclose(found, wanted, atol=2**-7 * np.abs(wanted).max())
    out, before = residual.clone(), values[3]
    assert launches(lambda: gp.matmul(x, w.T, out=out, alpha=0.5, beta=2.0)) == 1
    wanted = 0.5 * (values[0] @ values[1].T) + 2.0 * before
    np.testing.assert_allclose(out.astype("float32").to_numpy(), wanted, atol=2**-7 * np.abs(wanted).max())
