"""The built-in kernels: listed completely, and each unit compiles for the oldest and the newest supported device."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY
from pygpukit.jit import builtin
from pygpukit.jit.compile.nvrtc import get_nvrtc_version
from pygpukit.ops import elementwise, host, operations, pointwise

UNITS = list(builtin.catalogue())
OPS = (pointwise.ADD, pointwise.SUB, pointwise.MUL, pointwise.DIV, pointwise.NE, pointwise.LT, pointwise.LE)
COMPUTE = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY]


def test_no_kernel_is_listed_twice() -> None:
    listed = [(key, expression) for key, expressions, _ in UNITS for expression in expressions]
    assert len(listed) == len(set(listed))
    assert {key for key, _ in listed} <= set(native.sources())


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the device path asks for, recorded instead of launched."""
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(host, "computes", lambda: False)
    monkeypatch.setattr(pointwise, "_learn", lambda *_: None)
    monkeypatch.setattr(builtin, "launch", lambda key, expression, *_, **__: asked.append((key, expression)))
    return asked


def test_everything_that_operations_ask_for_is_listed(launched: list[tuple[str, str]]) -> None:
    listed = {(key, expression) for key, expressions, _ in UNITS for expression in expressions}
    for dtype in COMPUTE:
        x = gp.empty((4, 6), dtype)
        for view in (x, x[:, ::2]):
            for op in OPS:
                for other in (view, True, x[0, : view.shape[1]]):
                    try:
                        elementwise.binary(op, view, other, None)
                        elementwise.binary(op, other, view, None)
                    except gp.DTypeError:
                        assert dtype.name in ("bool", "complex64", "complex128")
            for op in operations.UNARY:
                with contextlib.suppress(gp.DTypeError):
                    elementwise.unary(op, view, None)
            for op in operations.BINARY:
                with contextlib.suppress(gp.DTypeError):
                    elementwise.binary(op, view, view, None)
                    elementwise.binary(op, True, view, None)
            with contextlib.suppress(gp.DTypeError):
                gp.where(view, view, 0)
                gp.clamp(view, 0, 1)
            for target in COMPUTE:
                view.astype(target)
            if dtype != "bool":
                gp.neg(view)
            view @ x.T[: view.shape[1]].T[:, : view.shape[1]].T
    for storage in STORAGE_ONLY:
        gp.empty((4, 6), storage)[:, ::2].clone()
    assert len(launched) > 500
    assert set(launched) <= listed


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed: pip install pygpukit[cuda13]")
@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
@pytest.mark.parametrize("unit", [UNITS[0], UNITS[-1]], ids=lambda unit: unit[0])
def test_units_compile(unit: tuple[str, tuple[str, ...], tuple[str, ...]], arch: str) -> None:
    from pygpukit.jit.compile.compiler import compile_source

    key, expressions, options = unit
    image = compile_source(builtin.source(key), name=key, options=options, arch=arch, name_expressions=expressions)
    assert image.image
    assert set(image.symbols) == set(expressions)
    assert len({image.symbol(expression) for expression in expressions}) == len(expressions)


@pytest.mark.gpu
def test_kernels_on_the_device_equal_numpy() -> None:
    """Beside tests/both: large, odd and misaligned dense operands reach the vector and the scalar path."""
    rng = np.random.default_rng(0)
    for size in (1, 3, 1023, 1 << 20, (1 << 20) + 3):
        a, b = rng.standard_normal((2, size + 1), np.float32)
        x, y = gp.from_numpy(a), gp.from_numpy(b)
        np.testing.assert_array_equal((x[1:] * y[1:]).to_numpy(), a[1:] * b[1:])
        np.testing.assert_array_equal((x[:-1] * y[1:]).to_numpy(), a[:-1] * b[1:])
