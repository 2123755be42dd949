"""Matrices of fp4 with scales of blocks: what they are made of, and the conversion of numbers to them and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.dtypes import bfloat16, float8_e4m3, float16, float32, int32, uint8
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import is_array, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = ["Fp4Matrix"]

SOURCE = kernels.KernelSpec(__file__, "encoding.cu")
_CALL = SOURCE.structure("Fp4Matrix")
_NO_SCALE, _STATED, _MEASURED = 0, 1, 2  # encoding.cu: Fp4Scaling
_THREADS = 128
NUMBERS = (float16, bfloat16, float32)  # what can be converted
FORMATS = ((float8_e4m3, 16), (float8_e4m3, 32), (uint8, 32))  # type of the scales, and numbers of a block
SCALES = {"float8_e4m3": "pk::e4m3_t", "uint8": "pk::e8m0_t"}


class Fp4Matrix(NamedTuple):
    """n rows of k numbers of fp4, k filled up with zeros to whole blocks of 16 or 32.

    codes: uint8 (n, k/2); a byte has the numbers 2i, in its low bits, and 2i + 1. scales: float8_e4m3 (n, k/16), or
    uint8 (n, k/32), exponents of two from -127 on (E8M0; 255 is NaN). scale: of all numbers, a number or one element of
    float32, None for 1. A number is code * its block's scale * scale.
    """

    codes: GPUArray
    scales: GPUArray
    scale: GPUArray | float | None = None

    @property
    def columns(self) -> int:
        """k."""
        return 2 * self.codes.shape[1]

    @property
    def block(self) -> int:
        """Numbers that share a scale."""
        return self.columns // self.scales.shape[1] if self.columns else 16

    @property
    def name(self) -> str:
        """Of the format."""
        return "MXFP4" if self.scales.dtype == uint8 else "NVFP4"

    def arrays(self) -> list[GPUArray]:
        """All of its arrays."""
        return [part for part in self if is_array(part)]

    def scale_parts(self) -> tuple[GPUArray | None, float]:
        """The scale of all as an array and a number, whose product it is."""
        if self.scale is None or isinstance(self.scale, (int, float)):
            return None, 1.0 if self.scale is None else float(self.scale)
        return self.scale, 1.0


def template(matrix: Fp4Matrix) -> str:
    """The kernels' template arguments for a format."""
    return f"{SCALES[matrix.scales.dtype.name]}, {matrix.block}"


def quantise(x: GPUArray, matrix: Fp4Matrix, measured: bool) -> None:
    """Fills one with the rows of x (n, k). measured: its scale of all is written, too, else divided out."""
    if host.computes():
        from pygpukit.ops.matmul.fp4 import host as fp4_host

        native.host_launch("quantize_fp4", lambda: fp4_host.quantise(x, matrix, measured), [x, *matrix.arrays()])
        return
    of_all, number = matrix.scale_parts()
    if of_all is None and number != 1.0:
        of_all = native.empty((), float32)
        copying.fill(of_all, number)
    largest = native.empty((), int32)
    call, spans = _packed(x, matrix, _MEASURED if measured else _NO_SCALE if of_all is None else _STATED)
    if measured:
        native.fill(largest, bytes(4))
        blocks = min(-(-x.size // _THREADS), 8 * device.current().sm_count)
        of_type = SOURCE.of(f"pk::fp4_largest<{CTYPES[x.dtype.name]}>")
        kernels.launch(of_type, (blocks, 1, 1), (_THREADS, 1, 1), spans, largest, call)
    spec = SOURCE.of(f"pk::fp4_quantise<{CTYPES[x.dtype.name]}, {template(matrix)}>")
    # Every pointer points at something; what it need not read it does not.
    pointers = (spans, matrix.codes, matrix.scales, largest.view("float32") if of_all is None else of_all, largest)
    kernels.launch(spec, (-(-matrix.scales.size // _THREADS), 1, 1), (_THREADS, 1, 1), *pointers, call)


def numbers(matrix: Fp4Matrix, out: GPUArray) -> None:
    """out (n, k), dense, = the numbers, rounded. codes and scales are dense."""
    if host.computes():
        from pygpukit.ops.matmul.fp4 import host as fp4_host

        native.host_launch("dequantize_fp4", lambda: fp4_host.numbers(matrix, out), [*matrix.arrays(), out])
        return
    of_all, number = matrix.scale_parts()
    if of_all is None and number != 1.0:
        of_all = native.empty((), float32)
        copying.fill(of_all, number)
    call, _ = _packed(out, matrix, _NO_SCALE if of_all is None else _STATED)
    spec = SOURCE.of(f"pk::fp4_numbers<{CTYPES[out.dtype.name]}, {template(matrix)}>")
    grid = (-(-matrix.scales.size // _THREADS), 1, 1)
    pointers = (matrix.codes, matrix.scales, matrix.scales if of_all is None else span(of_all)[0], out)
    kernels.launch(spec, grid, (_THREADS, 1, 1), *pointers, call)


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype in NUMBERS:
        ctype = CTYPES[dtype.name]
        formats = [f"{SCALES[scales.name]}, {block}" for scales, block in FORMATS]
        both = [f"pk::fp4_{what}<{ctype}, {layout}>" for what in ("quantise", "numbers") for layout in formats]
        yield f"pk::fp4_largest<{ctype}>", *both


def _packed(x: GPUArray, matrix: Fp4Matrix, scaling: int) -> tuple[bytes, GPUArray]:
    flat, start = span(x)
    row, column = (step // x.itemsize for step in x.strides)
    shape = {"rows": x.shape[0], "columns": x.shape[1], "blocks": matrix.scales.shape[1]}
    return _CALL.pack(**shape, row=row, column=column, start=start, scaling=scaling, unused=0), flat
