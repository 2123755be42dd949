"""Every element-wise kernel there is, of every type, runs on the simulator in checked mode: no findings, and what NumPy
computes on the simulation. Each type's kernels are compiled together, without optimisation, which takes the least time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType
from pygpukit.jit import builtin, simulator
from pygpukit.jit.compiler import compile_source
from pygpukit.jit.image import Image
from pygpukit.ops import elementwise, host, operations, pointwise

DTYPE_LIST = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY]
# Of float results; functions of the host and of the kernels round differently.
TOLERANCES = {
    "float16": 4e-3,
    "bfloat16": 4e-2,
    "float32": 1e-4,
    "float64": 1e-11,
    "complex64": 1e-3,
    "complex128": 1e-9,
}


def _kernels_of(ctype: str) -> list[str]:
    """Those whose first operand has the type; conversions to and from storage types are in test_storage_kernels.py."""
    listed = (expression for _, unit in pointwise.catalogue() for expression in unit)
    mine = (expression for expression in listed if expression.partition("<")[2].startswith(f"{ctype},"))
    return [
        expression for expression in mine if not any(name in expression for name in ("e4m3", "e5m2", "e2m1", "int4"))
    ]


def _inputs(dtype: DataType) -> tuple[gp.GPUArray, gp.GPUArray]:
    """Numbers that most functions are defined for, and none whose results differ much between close arguments."""
    rng = np.random.default_rng()
    kind = dtype.to_numpy_dtype().kind if dtype != "bfloat16" else "f"
    values = rng.uniform(0.1, 0.9, (2, 5, 14)) if kind in "fc" else rng.integers(1, 7, (2, 5, 14))
    if kind == "c":
        values = values + 1j * rng.uniform(0.1, 0.9, (2, 5, 14))
    if dtype == "bool":
        values = values > 3
    made = [gp.from_numpy(one.astype("float32" if dtype == "bfloat16" else dtype.to_numpy_dtype())) for one in values]
    return made[0].astype(dtype), made[1].astype(dtype)


def _works(dtype: DataType, x: gp.GPUArray, y: gp.GPUArray) -> Iterator[Callable[[], gp.GPUArray]]:
    """What asks for every kernel of the type, in the forms that have kernels of their own, and for few others."""

    def has(op: operations.Op) -> bool:
        return dtype.name in op.computed() and (not op.by_size or dtype in operations.promotion.UNSIGNED)

    for view in (np.s_[:], np.s_[:, ::2]):
        a, b = x[view], y[view]
        for op in filter(has, (*operations.UNARY, operations.NEG)):
            yield lambda op=op, a=a: elementwise.unary(op, a, None)
        for op in filter(has, (*operations.BINARY, *operations.ARITHMETIC)):
            yield lambda op=op, a=a, b=b: elementwise.binary(op, a, b, None)
            yield lambda op=op, a=a: elementwise.binary(op, a, True, None)
            yield lambda op=op, b=b: elementwise.binary(op, True, b, None)
        if has(operations.CLAMP):
            yield lambda a=a, b=b: gp.clamp(a, b, True)
        if dtype == "bool":  # choosing looks at bits only: one kernel an item size
            for one in (*operations.promotion.UNSIGNED, *operations.promotion.COMPLEX):
                c, d = (part[view] for part in _inputs(one))
                yield lambda a=a, c=c, d=d: gp.where(a, c, d)
        yield lambda a=a: a.clone()
    for other in DTYPE_LIST:
        yield lambda other=other: x.astype(other)


def _compare(found: gp.GPUArray, wanted: gp.GPUArray) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    name = found.dtype.name
    one, other = (a.view("uint16").to_numpy() if name == "bfloat16" else a.to_numpy() for a in (found, wanted))
    if name == "bfloat16":
        one, other = ((a.astype(np.uint32) << 16).view(np.float32) for a in (one, other))
    if name in TOLERANCES:
        np.testing.assert_allclose(one, other, TOLERANCES[name], TOLERANCES[name])
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", DTYPE_LIST, ids=str)
def test_every_kernel_of_a_type(dtype: DataType, kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = _kernels_of(pointwise.CTYPES[dtype.name])
    monkeypatch.setattr(simulator, "_FLAGS", tuple(flag if flag != "-O2" else "-O0" for flag in simulator._FLAGS))
    source = builtin.source(pointwise.SOURCE)
    together = compile_source(source, name=pointwise.SOURCE, name_expressions=mine, check=True)
    alone, asked = builtin._image, set()

    def image(source_key: str, expression: str) -> Image:
        asked.add(expression)
        return together if expression in mine else alone(source_key, expression)

    monkeypatch.setattr(builtin, "_image", image)
    x, y = _inputs(dtype)
    for work in _works(dtype, x, y):
        found = work()
        with monkeypatch.context() as patch:
            patch.setattr(host, "computes", lambda: True)
            _compare(found, work())
    assert set(mine) - asked == set()


def test_the_types_share_all_kernels() -> None:
    listed: list[Any] = [expression for _, unit in pointwise.catalogue() for expression in unit]
    swept = {expression for ctype in pointwise.CTYPES.values() for expression in _kernels_of(ctype)}
    assert all(any(name in one for name in ("e4m3", "e5m2", "e2m1", "int4")) for one in set(listed) - swept)
