"""Every kernel that reductions and norms ask for is listed, whatever the types, axes, layouts and lengths."""

from __future__ import annotations

import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType
from pygpukit.kernels import registry
from pygpukit.ops import host
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.reduce import reducer

LISTED = {(unit.source, expression) for unit in registry.catalogue() for expression in unit.expressions}
REDUCTIONS = [
    "sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin", "var", "std", "count_nonzero", "norm",
    "logsumexp",
]  # fmt: skip


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the device path asks for, recorded instead of launched."""
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(host, "computes", lambda: False)
    monkeypatch.setattr(pointwise, "_learn", lambda *_: None)
    monkeypatch.setattr(kernels, "launch", lambda spec, *_: asked.append((spec.source, spec.expression)))
    return asked


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY], ids=str)
def test_reductions(dtype: DataType, launched: list[tuple[str, str]]) -> None:
    long, wide = gp.empty((2, 20_000), dtype), gp.empty((20_000, 16), dtype)
    for name in REDUCTIONS:
        for x in (long, long[:, ::2], wide, wide[:, 1:]):
            for axis in (0, 1):
                try:
                    getattr(gp, name)(x, axis)
                except gp.DTypeError:
                    assert dtype.name.startswith("complex")
    forms = {expression.split("<")[0] for key, expression in launched if key == reducer.SOURCE.source}
    assert forms == {"pk::rows", "pk::columns"}
    assert {"true", "false"} <= {expression.rstrip(">").split(", ")[-1] for _, expression in launched}
    assert any("Merge" in expression for _, expression in launched)
    assert set(launched) <= LISTED


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_norms(dtype: str, launched: list[tuple[str, str]]) -> None:
    weight_types = {dtype, "float32"} if dtype != "float64" else {dtype}
    for columns in (8, 4096, 12_288, 20_000):
        x = gp.empty((3, columns), dtype)
        for view in (x, x[:, 1:]):
            for axis in (0, 1):
                gp.softmax(view, axis)
                gp.log_softmax(view, axis)
            for weight_type in weight_types:
                g = gp.empty(view.shape[1], weight_type)
                gp.layernorm(view, g, None)
                gp.rmsnorm(view, g)
    gp.groupnorm(gp.empty((2, 4, 9), dtype), 2)
    gp.softmax(gp.empty((300, 40), dtype), 0)
    asked = {expression.split("<")[0] for _, expression in launched}
    expected = ("norm_rows", "norm_long", "softmax_rows", "softmax_parts", "softmax_apply", "softmax_across")
    expected += tuple(f"softmax_across_{part}" for part in ("parts", "merge", "apply"))
    assert {f"pk::{name}" for name in expected} <= asked
    assert set(launched) <= LISTED
