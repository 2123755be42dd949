"""LinearInt8: products of rows that are rounded to int8 with an int8 weight, summed exactly (W8A8)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import float32, int8
from pygpukit.nn.linear.codes import Int8
from pygpukit.nn.linear.layer import EPILOGUES, Epilogue, LinearBF16, apply_on_host, forms
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.integers import matmul_int8

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.norm import Norm

SOURCE = kernels.KernelSpec(__file__, "int8.cu", options=kernels.SAME_BITS)
_THREADS = 256  # linear.cuh: kThreads
_LARGEST, _EPSILON = 127.5, 1.1920929e-07  # what a row's largest magnitude becomes; the scale of zeros
_TYPES = ("float32", "float16", "bfloat16")


class LinearInt8(LinearBF16):
    """y = x W^T + b by int8. A row of x is divided by its scale, its largest magnitude over 127.5 or one of all rows,
    and rounded to nearest even; sums are exact in int32, then multiplied in float32 by the row's scale, by the
    column's, and b is added."""

    def __init__(self, weight: Int8, bias: GPUArray | None = None) -> None:
        super().__init__(weight, bias)

    @property
    def _int8(self) -> Int8:
        """The weight."""
        assert isinstance(self.weight, Int8)
        return self.weight

    def __call__(self, x: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
        """x: (..., in) gives (..., out). Raises ShapeError, DTypeError."""
        shape = (*x.shape[:-1], self.out_features)
        result = native.empty(shape, x.dtype) if out is None else out
        rows = x.reshape(-1, self.in_features)
        self.project(rows, result.reshape(rows.shape[0], self.out_features), None)
        return result

    def new_bests(self) -> None:
        """None: no kernel finds the largest of its results."""

    def _by_host(self, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue) -> None:
        if norm is not None:
            rows, own, first = x, native.empty(x.shape, self.weight.dtype), norm
            native.host_launch(
                "norm_rows", lambda: host.store(own, first.on_host(host.values(rows))), [x, own, *norm.arrays]
            )
            x = own
        self._by_kernels(x, out, epilogue)

    def _decode(
        self, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue, overlaps: bool, bests: GPUArray | None
    ) -> None:
        self._by_kernels(x if norm is None else self._normalised(x, norm), out, epilogue)

    def _prefill(self, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue) -> None:
        self._by_kernels(x if norm is None else self._normalised(x, norm), out, epilogue)

    def _by_kernels(self, x: GPUArray, out: GPUArray, epilogue: Epilogue) -> None:
        codes, scales = round_rows(x, self._int8.row_scale)
        self._finished(matmul_int8(codes, self._int8.codes.T), scales, out, epilogue)

    def _finished(self, sums: GPUArray, scales: GPUArray, out: GPUArray, epilogue: Epilogue) -> None:
        """Scales, bias and epilogue of exact sums (R, rows of the weight)."""
        if host.computes():
            arrays = [sums, scales, *self.memory, out]
            native.host_launch("after_int8", lambda: self._finished_on_host(sums, scales, out, epilogue), arrays)
            return
        bias = out if self.bias is None else self.bias
        spec = SOURCE.of(_after(self.weight.dtype.name, out.dtype.name, EPILOGUES[epilogue]), overlapping=True)
        grid = (-(-out.shape[1] // _THREADS), out.shape[0], 1)
        call = self._call(out.shape[0], out.shape[1], None)
        kernels.launch(spec, grid, (_THREADS, 1, 1), sums, scales, self._int8.steps, bias, out, call)

    def _finished_on_host(self, sums: GPUArray, scales: GPUArray, out: GPUArray, epilogue: Epilogue) -> None:
        import numpy as np

        with np.errstate(all="ignore"):
            result = host.values(sums).astype(np.float32) * host.values(scales)[:, None]
            result *= host.values(self._int8.steps)
            if self.bias is not None:
                result += host.values(self.bias)
            result = apply_on_host(result, epilogue)
            host.store(out, result + host.values(out) if epilogue == "add" else result)


def round_rows(x: GPUArray, scale: float | None = None) -> tuple[GPUArray, GPUArray]:
    """Rows (R, K), contiguous, as int8 and float32 scales (R,). scale: of all rows; None for one of each.

    A row of NaN, or of infinities that have no given scale, has NaN for a scale.
    """
    codes, scales = native.empty(x.shape, int8), native.empty(x.shape[:1], float32)
    if host.computes():
        native.host_launch("round_rows", lambda: _round_on_host(x, scale, codes, scales), [x, codes, scales])
    else:
        call = struct.pack("<q2f", x.shape[1], scale or 0.0, 0.0)  # int8.cu: RoundCall
        spec = SOURCE.of(_round(x.dtype.name), overlapping=True)
        kernels.launch(spec, (x.shape[0], 1, 1), (_THREADS, 1, 1), x, codes, scales, call)
    return codes, scales


def _round_on_host(x: GPUArray, scale: float | None, codes: GPUArray, scales: GPUArray) -> None:
    import numpy as np

    rows = host.values(x).astype(np.float32, copy=False)
    largest = np.abs(rows).max(axis=1)
    own = np.full(len(rows), scale, np.float32) if scale else largest / np.float32(_LARGEST)
    own = np.where(own == 0, np.float32(_EPSILON), own)
    own = np.where(np.isnan(largest) | (np.isinf(largest) & (scale is None)), np.float32(np.nan), own)
    with np.errstate(all="ignore"):
        rounded = np.rint(np.fmin(np.fmax(rows / own[:, None], -128), 127))
    host.store(codes, rounded.astype(np.int8))
    host.store(scales, own)


def _round(dtype: str) -> str:
    return f"pk::round_rows<{CTYPES[dtype]}>"


def _after(dtype: str, out: str, epilogue: str) -> str:
    return f"pk::after_int8<{CTYPES[dtype]}, {CTYPES[out]}, {epilogue}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that such a product can ask for."""
    yield tuple(_round(name) for name in _TYPES)
    for name in _TYPES:
        own = dict.fromkeys(forms(name))
        yield tuple(f"pk::after_int8<{CTYPES[name]}, {out}, {epilogue}>" for out, epilogue in own)
