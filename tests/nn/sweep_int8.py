"""Products of rows rounded to int8 with int8 weights, by their epilogues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.nn.linear import int8
from pygpukit.nn.linear.codes import Int8
from pygpukit.ops.elementwise.host_functions import gelu

Array = np.ndarray[Any, Any]
_ROWS, _COLUMNS, _COUNT = 5, 77, 18


def _after(epilogue: str, sums: Array) -> Array:
    if epilogue == "silu":
        gate, up = np.split(sums, 2, axis=1)
        return np.asarray(gate / (1 + np.exp(-gate)) * up)
    if epilogue == "gelu":
        return np.asarray(0.5 * sums * (1 + np.tanh(0.7978845608028654 * (sums + 0.044715 * sums**3))))
    return np.asarray({"store": sums, "add": sums + 1, "gelu_erf": gelu(sums)}[epilogue])


def _product(dtype: str, out_dtype: str, epilogue: str) -> Call:
    rng = np.random.default_rng(7)
    codes = rng.integers(-128, 128, (_COUNT, _COLUMNS)).astype(np.int8)
    scales = rng.uniform(1e-4, 1e-3, _COUNT).astype(np.float32)

    def product(x: gp.GPUArray, bias: gp.GPUArray) -> gp.GPUArray:
        out = gp.ones((_ROWS, _COUNT // 2 if epilogue == "silu" else _COUNT), out_dtype)
        weight = Int8.of(gp.from_numpy(codes), gp.from_numpy(scales), as_dtype(dtype))
        int8.LinearInt8(weight, bias).project(x, out, None, epilogue=epilogue)  # type: ignore[arg-type]
        return out

    def reference(x: Array, bias: Array) -> Array:
        rows = x.astype(np.float32)
        own = np.abs(rows).max(1, keepdims=True) / np.float32(127.5)
        rounded = np.rint(np.clip(rows / own, -128, 127)).astype(np.float64)
        return _after(epilogue, rounded @ codes.T * own.astype(np.float64) * scales + bias)

    return Call(product, (numbers(dtype, _ROWS, _COLUMNS), numbers(dtype, _COUNT)), reference)


def _calls(_: str) -> Iterator[Call]:
    for dtype in ("float32", "float16", "bfloat16"):
        for epilogue in ("store", "gelu", "gelu_erf", "silu"):
            yield _product(dtype, dtype, epilogue)
        yield _product(dtype, "float32", "store")
        yield _product(dtype, "float32", "add")


FAMILIES = (Family("int8-rows", (int8.SOURCE.source,), lambda _: "all", _calls),)
