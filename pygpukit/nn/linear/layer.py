"""Linear: products with a weight of rows (out, in), fused with the norm before them and an epilogue."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core import device
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.core.errors import ShapeError
from pygpukit.nn.batch import product
from pygpukit.nn.linear import in_blocks, tensor
from pygpukit.nn.linear.blocks import Blocks, memory_of, operands_of, values_of
from pygpukit.nn.norm import Norm
from pygpukit.ops import copying, elementwise, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Epilogue = Literal["store", "add", "gelu", "gelu_erf", "silu"]

# Norms and epilogues stand in kernels of several forms: contracted apart, they would differ.
SOURCE = kernels.KernelSpec(__file__, "linear.cu", options=kernels.SAME_BITS)
GEMV = kernels.KernelSpec(__file__, "one_row.cu", options=kernels.SAME_BITS)
_THREADS = 256  # linear.cuh: kThreads
_COLUMNS = 8  # linear.cuh: kWarps
EPILOGUES = {
    "store": "pk::kStore",
    "add": "pk::kAdd",
    "gelu": "pk::kGelu",
    "gelu_erf": "pk::kGeluErf",
    "silu": "pk::kSilu",
}
_TYPES = (float32, float16, bfloat16)
_ROWS = 8  # of one launch of a kernel for several rows
_LOAD = 16  # rows.cuh: bytes of a pack
_ROW_THREADS, _ROW_COLUMNS = 512, 16  # one_row.cu: kRowThreads, kRowWarps
STAGES = (6, 5, 4)  # of the weight that are on their way: the first that fits beside the row
_STAGE = 2 * _LOAD * _ROW_THREADS  # bytes; one_row.cu: kPieces


class LinearBF16:
    """y = x W^T + b. weight: (out, in) of float32, float16 or bfloat16, or Blocks; bias: (out,) or None."""

    def __init__(self, weight: GPUArray | Blocks, bias: GPUArray | None = None) -> None:
        if not isinstance(weight, Blocks) and check_array(weight, "Linear: weight").ndim != 2:
            raise ShapeError(f"Linear: weight has shape {weight.shape}, must be (out, in)")
        if bias is not None and check_array(bias, "Linear: bias").shape != weight.shape[:1]:
            raise ShapeError(f"Linear: bias has shape {bias.shape}, must be ({weight.shape[0]},) for that weight")
        self.weight, self.bias = weight, bias

    @property
    def out_features(self) -> int:
        """Rows of the weight."""
        return self.weight.shape[0]

    @property
    def parts(self) -> list[GPUArray | Blocks]:
        """Weight and bias."""
        return [self.weight, *([] if self.bias is None else [self.bias])]

    @property
    def memory(self) -> list[GPUArray]:
        """The arrays that weight and bias lie in."""
        return [*memory_of(self.weight), *([] if self.bias is None else [self.bias])]

    @property
    def in_features(self) -> int:
        """Columns of the weight."""
        return self.weight.shape[1]

    def __call__(self, x: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
        """x: (..., in) gives (..., out). Raises ShapeError, DTypeError."""
        result = matmul(x, values_of(self.weight).T, out=out)
        if self.bias is not None:
            elementwise.add(result, self.bias, out=result)
        return result

    def project(
        self,
        x: GPUArray,
        out: GPUArray,
        start: int | None,
        *,
        norm: Norm | None = None,
        epilogue: Epilogue = "store",
        overlaps: bool = False,
        bests: GPUArray | None = None,
    ) -> None:
        """A product fused with its norm and epilogue: out = epilogue(norm(x) W^T + b), in one launch where it can.

        x: (R, in), float32 where there is a norm, else of the weight's type. out: (R, out), float32 or of the weight's
        type. epilogue: "store"; "add" to a float32 out; "gelu" (by tanh); "gelu_erf"; "silu" of the first half of the
        columns times the second half, out then being (R, out / 2). start: Batch.start. All contiguous. A row's bits do
        not depend on the other rows.

        overlaps: the launch before it on the stream is of the same step and writes no weights, so that these are read
        while it ends. bests: of a norm and one row, new_bests(), which Sampler.choose() takes with the logits.
        """
        if not x.shape[0]:
            return
        if norm is not None and norm.operation is not None:
            x, norm = norm.rows(x, self.weight.dtype), None
        if host.computes():
            self._by_host(x, out, norm, epilogue)
        elif start is None:
            self._decode(x, out, norm, epilogue, overlaps, bests)
        else:
            self._prefill(x, out, norm, epilogue)

    def _by_host(self, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue) -> None:
        """By the processor's own instructions; other types than float32 through NumPy."""
        arrays = [x, out, *([] if self.bias is None else [self.bias]), *([] if norm is None else norm.arrays)]
        if all(array.dtype == float32 for array in [self.weight, *arrays]):
            native.host_linear(
                x, out, operands_of(self.weight), self.bias, None if norm is None else norm.operands, epilogue
            )
            return
        arrays += memory_of(self.weight)
        native.host_launch("linear", lambda: self._on_host(x, out, norm, epilogue), arrays)

    def _on_host(self, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue) -> None:
        import numpy as np

        rows = host.values(x)
        if norm is not None:
            rows = norm.on_host(rows)
        result = product(np.ascontiguousarray(rows, np.float32), values_of(self.weight))
        if self.bias is not None:
            result += host.values(self.bias)
        with np.errstate(all="ignore"):
            result = apply_on_host(result, epilogue)
        if epilogue == "add":
            result += host.values(out)
        host.store(out, result)

    def new_bests(self) -> GPUArray | None:
        """Room for the largest logit that each block finds; None for a weight in blocks of few bits, and where a row is
        too long for its norm to be in them."""
        if isinstance(self.weight, Blocks):
            return None
        if self.weight.dtype in tensor.TYPES:
            stages, blocks = tensor.one_row_stages(self.in_features, False), tensor.blocks(self.out_features)
        else:
            stages, blocks = self._stages() or 0, self._blocks(self.out_features)
        return factory.zeros(blocks, "uint64") if stages else None

    def _decode(
        self, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue, overlaps: bool, bests: GPUArray | None
    ) -> None:
        """Of 16 bits on tensor cores; of float32 a warp for each column of the result."""
        if isinstance(self.weight, Blocks) and self.weight.dtype in in_blocks.TYPES:
            if norm is not None and not in_blocks.takes_norm(self.weight, norm, x.shape[0]):
                x, norm = self._normalised(x, norm), None
            self._in_blocks(self.weight, x, out, norm, epilogue, overlaps)
            return
        weight, rows = values_of(self.weight), x.shape[0]
        types = f"{CTYPES[weight.dtype.name]}, {CTYPES[out.dtype.name]}"
        call, bias = self._call(rows, out.shape[1], norm), weight if self.bias is None else self.bias
        if weight.dtype in tensor.TYPES:
            operands, pairs = (weight, bias, out), epilogue == "silu"
            if rows == 1 and (count := tensor.one_row_stages(self.in_features, pairs)):
                tensor.one_row(types, EPILOGUES[epilogue], count, x, operands, call, norm, overlaps, bests)
                return
            if norm is not None:
                x = self._normalised(x, norm)
            tensor.some_rows(types, EPILOGUES[epilogue], x, operands, call, overlaps)
            return
        if rows == 1 and (stages := self._stages()):
            arrays: tuple[GPUArray, ...] = (x, weight, bias, out)
            expression = f"pk::row_linear<{types}, {EPILOGUES[epilogue]}, {stages}>"
            if norm is not None:
                arrays = x, norm.weight, norm.shift, weight, bias, out
                expression = f"pk::norm_linear<{types}, {EPILOGUES[epilogue]}, {norm.centered}, {stages}>"
                if bests is not None:
                    arrays += (bests,)
                    expression = f"pk::norm_logits<{CTYPES[weight.dtype.name]}, {norm.centered}, {stages}>"
            spec = GEMV.of(expression, shared_bytes=tensor.row_bytes(), overlapping=overlaps)
            kernels.launch(spec, (self._blocks(out.shape[1]), 1, 1), (_ROW_THREADS, 1, 1), *arrays, call)
            return
        if norm is not None:
            x = self._normalised(x, norm)
        spec = SOURCE.of(f"pk::linear<{types}, {_ROWS}, {EPILOGUES[epilogue]}>", overlapping=overlaps)
        grid = (-(-out.shape[1] // _COLUMNS), -(-rows // _ROWS), 1)
        kernels.launch(spec, grid, (_THREADS, 1, 1), x, weight, bias, out, call)

    def _in_blocks(
        self, weight: Blocks, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue, overlaps: bool
    ) -> None:
        """By the kernels for blocks; what they do not finish is done by a launch of its own."""
        if epilogue in in_blocks.EPILOGUES and (epilogue != "silu" or len(weight.parts) == 1):
            in_blocks.product(x, weight, self.bias, out, epilogue, overlaps=overlaps, norm=norm)
            return
        result = native.empty((x.shape[0], weight.shape[0]), weight.dtype)
        in_blocks.product(x, weight, None, result, "store", overlaps=overlaps, norm=norm)
        self._after(result, out, epilogue)

    def _stages(self) -> int | None:
        """Of the kernels for one row; None where that and a few of them do not fit into a block's memory."""
        room = tensor.row_bytes() - self.in_features * self.weight.itemsize
        return next((stages for stages in STAGES if stages * _STAGE <= room), None)

    def _blocks(self, columns: int) -> int:
        """Of the kernels for one row: one for each multiprocessor."""
        return min(-(-columns // _ROW_COLUMNS), device.current().sm_count)

    def _prefill(self, x: GPUArray, out: GPUArray, norm: Norm | None, epilogue: Epilogue) -> None:
        """A matrix product, and one launch for its epilogue where it has one."""
        if norm is not None:
            x = self._normalised(x, norm)
        weight = values_of(self.weight)
        if epilogue == "store" and self.bias is None and out.dtype == weight.dtype:
            matmul(x, weight.T, out=out)
            return
        self._after(matmul(x, weight.T), out, epilogue)

    def _after(self, result: GPUArray, out: GPUArray, epilogue: Epilogue) -> None:
        """Bias and epilogue of a product (R, rows of the weight)."""
        bias = result if self.bias is None else self.bias
        types = f"{CTYPES[self.weight.dtype.name]}, {CTYPES[out.dtype.name]}"
        spec = SOURCE.of(f"pk::after_product<{types}, {EPILOGUES[epilogue]}>")
        each = _LOAD // self.weight.itemsize
        grid = (-(-out.shape[1] // (_THREADS * each)), out.shape[0], 1)
        kernels.launch(spec, grid, (_THREADS, 1, 1), result, bias, out, self._call(out.shape[0], out.shape[1], None))

    def _normalised(self, x: GPUArray, norm: Norm) -> GPUArray:
        """The rows of x after a norm, of the weight's type."""
        normalised = native.empty(x.shape, self.weight.dtype)
        norm_rows(x, norm, normalised)
        return normalised

    def _call(self, rows: int, columns: int, norm: Norm | None) -> bytes:
        return _call(columns, self.in_features, rows, self.bias is not None, norm)


Linear = LinearBF16


def norm_rows(x: GPUArray, norm: Norm, out: GPUArray) -> None:
    """out = norm(x) of float32 rows, by the norm's kernel, rounded to out's type."""
    rows, columns = x.shape
    spec = SOURCE.of(f"pk::norm_rows<{CTYPES[out.dtype.name]}, {norm.centered}>", overlapping=True)
    call = _call(columns, columns, rows, False, norm)
    kernels.launch(spec, (rows, 1, 1), (_THREADS, 1, 1), x, norm.weight, norm.shift, out, call)


def _call(columns: int, k: int, rows: int, biased: bool, norm: Norm | None) -> bytes:
    """linear.cu: LinearCall."""
    shifts = norm is not None and norm.bias is not None
    return struct.pack("<2q3if", columns, k, rows, biased, shifts, 0.0 if norm is None else norm.eps)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that a product of a model can ask for."""
    for dtype in _TYPES:
        ctype = CTYPES[dtype.name]
        yield tuple(f"pk::norm_rows<{ctype}, {centered}>" for centered in ("false", "true"))
        own = list(dict.fromkeys(forms(dtype.name)))
        if dtype not in tensor.TYPES:
            yield tuple(f"pk::linear<{ctype}, {out}, {_ROWS}, {epilogue}>" for out, epilogue in own)
        yield tuple(f"pk::after_product<{ctype}, {out}, {epilogue}>" for out, epilogue in own)


@tensor.SOURCE.lists
def tensor_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that a product of few rows on tensor cores can ask for."""
    for dtype in tensor.TYPES:
        yield from tensor.expressions(CTYPES[dtype.name], list(dict.fromkeys(forms(dtype.name))))


@GEMV.lists
def row_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that a product of one row of float32 can ask for."""
    ctype = CTYPES["float32"]
    own = list(dict.fromkeys(forms("float32")))
    for stages in STAGES:
        yield tuple(f"pk::row_linear<{ctype}, {out}, {epilogue}, {stages}>" for out, epilogue in own)
        for centered in ("false", "true"):
            yield (
                f"pk::norm_logits<{ctype}, {centered}, {stages}>",
                *(
                    f"pk::norm_linear<{ctype}, {out}, {epilogue}, {centered}, {stages}>"
                    for out, epilogue in own
                    if epilogue != EPILOGUES["add"]
                ),
            )


def forms(dtype: str) -> Iterator[tuple[str, str]]:
    """(type of the result, epilogue) that models use."""
    for epilogue in EPILOGUES:
        if epilogue != "add":
            yield CTYPES[dtype], EPILOGUES[epilogue]
    yield CTYPES["float32"], EPILOGUES["store"]
    yield CTYPES["float32"], EPILOGUES["add"]


def apply_on_host(x: Any, epilogue: Epilogue) -> Any:
    """An epilogue of float32 products, inside a host launch; "add" is the caller's."""
    import numpy as np

    from pygpukit.ops.elementwise.host_functions import gelu

    if epilogue == "gelu":
        inner = np.float32(0.7978845608028654) * (x + np.float32(0.044715) * (x * x * x))
        return np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))
    if epilogue == "gelu_erf":
        return gelu(x)
    if epilogue == "silu":
        half = x.shape[1] // 2
        gate = np.ascontiguousarray(x[:, :half])
        return gate / (np.float32(1) + np.exp(-gate)) * x[:, half:]
    return x


def repack_linear(linear: LinearBF16) -> None:
    """The weight in memory of its own. Weights here always are; a view is copied."""
    if not isinstance(linear.weight, Blocks):
        linear.weight = copying.contiguous(linear.weight)
