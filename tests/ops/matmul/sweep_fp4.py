"""The kernels for fp4: conversion, and products with it, in every format and type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from fp4_reference import numbers_of, packed, quantised
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.core.dtypes import float8_e4m3
from pygpukit.ops.matmul.fp4 import block_scaled, encoding, matrices
from pygpukit.ops.matmul.fp4 import gemv as fp4_gemv
from pygpukit.ops.matmul.fp4.encoding import Fp4Matrix

Values = np.ndarray[Any, Any]
_TYPES = {"bfloat16_t": "bfloat16", "half_t": "float16", "float": "float32"}
_K = 200  # no whole blocks, and more than one step of every kernel


def _arguments(expression: str) -> list[str]:
    return expression.replace("pk::", "").split("<")[1].rstrip(">").split(", ")


def _made(n: int, kind: str, block: int, dtype: str = "bfloat16") -> tuple[Fp4Matrix, Values]:
    """Fresh numbers in a format, by the reference: (matrix, its numbers but for the scale of all)."""
    powers = kind == "e8m0_t"
    codes, scales, of_all = quantised(numbers("float32", n, _K).to_numpy(), block, powers)
    found = numbers_of(codes, scales, 1.0)
    bits = np.log2(scales) + 127 if powers else gp.from_numpy(scales).astype(float8_e4m3).view("uint8").to_numpy()
    small = gp.from_numpy(bits.astype(np.uint8))
    scale = None if powers else gp.from_numpy(np.array(of_all))
    return Fp4Matrix(gp.from_numpy(packed(codes)), small if powers else small.view("float8_e4m3"), scale), found


def _conversion(dtype: str) -> Iterator[Call]:
    for kind, block in encoding.FORMATS:
        powers = kind != float8_e4m3
        x = numbers(dtype, 5, _K, low=-9, high=9)

        def quantise(x: gp.GPUArray, powers: bool = powers, block: int = block) -> tuple[gp.GPUArray, ...]:
            if block == 32 and not powers:
                made = Fp4Matrix(gp.empty((5, 96), "uint8"), gp.empty((5, 6), "float8_e4m3"))
                encoding.quantise(x[:, :192], made, measured=False)
                return made.codes, gp.ops.dequantize_fp4(made, dtype)
            made = gp.ops.quantize_mxfp4(x) if powers else gp.ops.quantize_nvfp4(x)
            return made.codes, gp.ops.dequantize_fp4(made, dtype)

        def wanted(x: Values, powers: bool = powers, block: int = block) -> tuple[Values, ...]:
            given = x[:, :192] if block == 32 and not powers else x
            scale = 1.0 if block == 32 and not powers else None
            codes, scales, of_all = quantised(given.astype(np.float32), block, powers, scale)
            return packed(codes), numbers_of(codes, scales, float(of_all))

        yield Call(quantise, (x,), wanted)
        yield Call(quantise, (numbers(dtype, _K, 5).T[:, ::-1],), wanted)


def _of_all(weight: Fp4Matrix) -> float:
    scale = weight.scale
    return float(scale.to_numpy()) if isinstance(scale, gp.GPUArray) else 1.0 if scale is None else scale


def _half(variant: str) -> Iterator[Call]:
    element, kind, block, tiles = variant.split()
    weight, w = _made(21, kind, int(block))
    of_all = _of_all(weight)
    few = 8 * int(tiles)
    for m, wide in ((few - 3, False), (few, True), *([(few + 1, False)] if tiles == "4" else [])):

        def product(a: gp.GPUArray, wide: bool = wide) -> gp.GPUArray:
            out = gp.full((len(a), 21), float("nan"), "float32" if wide else a.dtype)
            fp4_gemv.product(a, matrices.filled(weight), out)
            return out

        yield Call(product, (numbers(_TYPES[element], m, _K),), lambda a: a @ w[:, :_K].T * of_all)


def _both(variant: str) -> Iterator[Call]:
    result, kind, block = variant.split()
    n = 133 if result == "float" else 72  # two blocks, or a part of one
    weight, w = _made(n, kind, int(block))
    of_all = _of_all(weight)
    left, x = _made(37, kind, int(block))

    def product(scale: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((37, n), float("nan"), _TYPES[result])
        block_scaled.product(matrices.filled(left._replace(scale=scale)), matrices.filled(weight), out)
        return out

    # As small as quantising makes it: a larger one takes results beyond float16.
    scales = numbers("float32", 1, low=2**-12, high=2**-10)
    yield Call(product, (scales,), lambda scale: x @ w.T * of_all * scale)


FAMILIES = (
    Family("fp4 conversion", (encoding.SOURCE.source,), lambda name: _TYPES[_arguments(name)[0]], _conversion),
    Family("fp4 weights", (fp4_gemv.SOURCE.source,), lambda name: " ".join(_arguments(name)), _half),
    Family("fp4 products", (block_scaled.SOURCE.source,), lambda name: " ".join(_arguments(name)), _both),
)
