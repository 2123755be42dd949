"""On the simulator: softmax of short rows that begin anywhere, staged in shared memory, has the bits of the others."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit._core import native
from pygpukit.ops.nn import rowwise

softmax_module = import_module("pygpukit.ops.nn.softmax")
SHAPES = [(70, 63), (9, 307), (33, 129), (5, 7), (3, 5, 31), (1, 511), (200, 3), (1, 1), (65, 66)]


@pytest.fixture(autouse=True)
def asked(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The kernels that were launched."""
    native.prepare_calls(False)  # tests choose the kernel
    names: list[str] = []
    launch = kernels.launch

    def noted(spec: kernels.KernelSpec, *rest: object) -> None:
        names.append(spec.expression)
        launch(spec, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(softmax_module.kernels, "launch", noted)
    yield names
    native.prepare_calls(None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_bits_are_those_of_rows_read_by_themselves(
    dtype: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng()
    for shape in SHAPES:
        size = int(np.prod(shape))
        for offset in (0, 1, 5):
            numbers = rng.standard_normal(size + offset).astype(np.float32)
            x = gp.from_numpy(numbers).astype(dtype)[offset:].reshape(shape)
            around = gp.full(size + 9, 7, dtype)
            out = around[3:][:size].reshape(shape)
            gp.softmax(x, out=out)
            assert asked[-1].startswith("pk::softmax_staged") or shape[-1] % 2 == 0
            beside = around.astype("float32").to_numpy()
            assert np.all(beside[:3] == 7) and np.all(beside[3 + size :] == 7)
            with monkeypatch.context() as patch:
                patch.setattr(rowwise, "TOGETHER", ())
                wanted = gp.softmax(x)
                assert asked[-1].startswith("pk::softmax_rows")
            assert out.to_numpy().tobytes() == wanted.to_numpy().tobytes(), (shape, offset)
            same = x.clone()
            gp.softmax(same, out=same)  # in place
            assert same.to_numpy().tobytes() == wanted.to_numpy().tobytes()


def test_against_float64_and_what_is_no_number() -> None:
    x = np.random.default_rng().standard_normal((40, 77)).astype(np.float32)
    x[3, 5], x[7], x[9, 70] = np.nan, -np.inf, np.inf
    with np.errstate(all="ignore"):
        wide = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        wanted = wide / wide.sum(-1, keepdims=True)
    np.testing.assert_allclose(gp.softmax(gp.from_numpy(x)).to_numpy(), wanted, rtol=1e-5, atol=1e-7)
    logs = gp.log_softmax(gp.from_numpy(x[10:])).to_numpy()
    np.testing.assert_allclose(logs, np.log(wanted[10:]), rtol=1e-5, atol=1e-6)
