"""Matrices of fp4 in NumPy, on the simulated device: their conversion and their products. Inside a host launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.dtypes import float4_e2m1, float8_e4m3
from pygpukit.ops import host, storage

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.fp4.encoding import Fp4Matrix

_LARGEST = 2688.0  # 6 of E2M1 times 448 of E4M3


def quantise(x: GPUArray, matrix: Fp4Matrix, measured: bool) -> None:
    """As encoding.quantise()."""
    x32 = host.values(x).astype(np.float32)
    with np.errstate(all="ignore"):
        of_all = matrix.scale_parts()[0]
        if measured and of_all is not None:
            largest = np.max(np.abs(x32), where=np.isfinite(x32), initial=0)
            scale = np.float32(largest) / np.float32(_LARGEST)
            host.store(of_all, scale if scale > 0 else np.float32(1))
        tensor_scale = _scale(matrix)
        filled = np.zeros((len(x32), matrix.columns), np.float32)
        filled[:, : x32.shape[1]] = x32
        blocks = filled.reshape(len(x32), -1, matrix.block)
        largest_of_block = np.abs(blocks).max(axis=-1)
        finite = np.isfinite(largest_of_block)
        if matrix.scales.dtype == float8_e4m3:
            block_scales = np.where(
                finite, np.minimum(largest_of_block / tensor_scale / np.float32(6), np.float32(448)), np.float32("nan")
            )
            host.memory(matrix.scales)[...] = storage.encoded(block_scales, float8_e4m3)
        else:
            exponents = np.maximum(largest_of_block.view(np.int32) >> 23, 2) - 2
            host.memory(matrix.scales)[...] = np.where(finite, exponents, 255)
        step = (_of_blocks(matrix) * tensor_scale)[..., None]
        codes = np.where(step > 0, storage.encoded(blocks / step, float4_e2m1), 0).reshape(len(x32), -1)
        host.memory(matrix.codes)[...] = codes[:, ::2] | codes[:, 1::2] << 4


def numbers(matrix: Fp4Matrix, out: GPUArray) -> None:
    """As encoding.numbers()."""
    with np.errstate(all="ignore"):
        host.store(out, values(matrix))


def product(a: GPUArray, w: Fp4Matrix, out: GPUArray) -> None:
    """out (m, n) = a (m, k) @ w^T."""
    x = host.values(a).astype(np.float32)
    with np.errstate(all="ignore"):
        sums = x @ values(w, scaled=False)[:, : x.shape[1]].T
        host.store(out, sums * _scale(w))


def product_of_two(a: Fp4Matrix, w: Fp4Matrix, out: GPUArray) -> None:
    """out (m, n) = a @ w^T."""
    with np.errstate(all="ignore"):
        sums = values(a, scaled=False) @ values(w, scaled=False).T
        host.store(out, sums * (_scale(a) * _scale(w)))


def values(matrix: Fp4Matrix, scaled: bool = True) -> Any:
    """The numbers as float32. scaled: by the scale of all, too."""
    bits = host.memory(matrix.codes)
    codes = np.stack([bits & 15, bits >> 4], axis=-1).reshape(len(bits), -1)
    decoded = storage.decoded(codes, float4_e2m1) * _of_blocks(matrix).repeat(matrix.block, axis=1)
    return decoded * _scale(matrix) if scaled else decoded


def _of_blocks(matrix: Fp4Matrix) -> Any:
    """The scales of blocks, as float32."""
    if matrix.scales.dtype == float8_e4m3:
        return host.values(matrix.scales)
    exponents = host.memory(matrix.scales).astype(np.int32)
    return np.where(exponents == 255, np.float32("nan"), np.ldexp(np.float32(1), np.minimum(exponents, 254) - 127))


def _scale(matrix: Fp4Matrix) -> Any:
    """The scale of all, as float32."""
    of_all, number = matrix.scale_parts()
    return np.float32(number) if of_all is None else host.values(of_all).reshape(())[()]
