"""Matrices of fp4 with scales of blocks: what they are made of, and the conversion of numbers to them and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import bfloat16, float4_e2m1, float8_e4m3, float16, float32, int32, uint8
from pygpukit.ops import copying, host, storage
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.tile import multiprocessors
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = ["Fp4Matrix"]

SOURCE = kernels.KernelSpec(__file__, "fp4_codes.cu")
_CALL = SOURCE.structure("Fp4Matrix")
_NO_SCALE, _GIVEN, _MEASURED = 0, 1, 2  # fp4_codes.cu: Fp4Scaling
_THREADS = 128
_LARGEST = 2688.0  # 6 of E2M1 times 448 of E4M3
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

    def scale_parts(self) -> tuple[GPUArray | None, float]:
        """The scale of all as an array and a number, whose product it is."""
        if self.scale is None or isinstance(self.scale, (int, float)):
            return None, 1.0 if self.scale is None else float(self.scale)
        return self.scale, 1.0


def template(one: Fp4Matrix) -> str:
    """The kernels' template arguments for a format."""
    return f"{SCALES[one.scales.dtype.name]}, {one.block}"


def quantise(x: GPUArray, one: Fp4Matrix, measured: bool) -> None:
    """Fills one with the rows of x (n, k). measured: its scale of all is written, too, else divided out."""
    if host.computes():
        native.host_launch("quantize_fp4", lambda: _on_host(x, one, measured), [x, *_arrays(one)])
        return
    of_all, number = one.scale_parts()
    if of_all is None and number != 1.0:
        of_all = native.empty((), float32)
        copying.fill(of_all, number)
    largest = native.empty((), int32)
    call, spans = _packed(x, one, _MEASURED if measured else _NO_SCALE if of_all is None else _GIVEN)
    if measured:
        native.fill(largest, bytes(4))
        blocks = min(-(-x.size // _THREADS), 8 * multiprocessors())
        of_type = SOURCE.of(f"pk::fp4_largest<{CTYPES[x.dtype.name]}>")
        kernels.launch(of_type, (blocks, 1, 1), (_THREADS, 1, 1), spans, largest, call)
    spec = SOURCE.of(f"pk::fp4_quantise<{CTYPES[x.dtype.name]}, {template(one)}>")
    # Every pointer points at something; what it need not read it does not.
    pointers = (spans, one.codes, one.scales, largest.view("float32") if of_all is None else of_all, largest)
    kernels.launch(spec, (-(-one.scales.size // _THREADS), 1, 1), (_THREADS, 1, 1), *pointers, call)


def numbers(one: Fp4Matrix, out: GPUArray) -> None:
    """out (n, k), dense, = the numbers, rounded. codes and scales are dense."""
    if host.computes():
        native.host_launch("dequantize_fp4", lambda: host.store(out, on_host(one)), [*_arrays(one), out])
        return
    of_all, number = one.scale_parts()
    if of_all is None and number != 1.0:
        of_all = native.empty((), float32)
        copying.fill(of_all, number)
    call, _ = _packed(out, one, _NO_SCALE if of_all is None else _GIVEN)
    spec = SOURCE.of(f"pk::fp4_numbers<{CTYPES[out.dtype.name]}, {template(one)}>")
    grid = (-(-one.scales.size // _THREADS), 1, 1)
    pointers = (one.codes, one.scales, one.scales if of_all is None else span(of_all)[0], out)
    kernels.launch(spec, grid, (_THREADS, 1, 1), *pointers, call)


def on_host(one: Fp4Matrix, scaled: bool = True) -> Any:
    """The numbers as float32. scaled: by the scale of all, too."""
    import numpy as np

    bits = host.memory(one.codes)
    codes = np.stack([bits & 15, bits >> 4], axis=-1).reshape(len(bits), -1)
    found = storage.decoded(codes, float4_e2m1) * of_blocks(one).repeat(one.block, axis=1)
    return found * scale_on_host(one) if scaled else found


def of_blocks(one: Fp4Matrix) -> Any:
    """The scales of blocks, as float32."""
    import numpy as np

    if one.scales.dtype == float8_e4m3:
        return host.values(one.scales)
    exponents = host.memory(one.scales).astype(np.int32)
    return np.where(exponents == 255, np.float32("nan"), np.ldexp(np.float32(1), np.minimum(exponents, 254) - 127))


def scale_on_host(one: Fp4Matrix) -> Any:
    """The scale of all, as float32."""
    import numpy as np

    of_all, number = one.scale_parts()
    return np.float32(number) if of_all is None else host.values(of_all).reshape(())[()]


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype in NUMBERS:
        ctype = CTYPES[dtype.name]
        formats = [f"{SCALES[scales.name]}, {block}" for scales, block in FORMATS]
        both = [f"pk::fp4_{what}<{ctype}, {one}>" for what in ("quantise", "numbers") for one in formats]
        yield f"pk::fp4_largest<{ctype}>", *both


def _arrays(one: Fp4Matrix) -> list[GPUArray]:
    of_all = one.scale_parts()[0]
    return [one.codes, one.scales] + ([] if of_all is None else [of_all])


def _packed(x: GPUArray, one: Fp4Matrix, scaling: int) -> tuple[bytes, GPUArray]:
    flat, start = span(x)
    row, column = (step // x.itemsize for step in x.strides)
    shape = {"rows": x.shape[0], "columns": x.shape[1], "blocks": one.scales.shape[1]}
    return _CALL.pack(**shape, row=row, column=column, start=start, scaling=scaling, unused=0), flat


def _on_host(x: GPUArray, one: Fp4Matrix, measured: bool) -> None:
    import numpy as np

    values = host.values(x).astype(np.float32)
    with np.errstate(all="ignore"):
        of_all = one.scale_parts()[0]
        if measured and of_all is not None:
            largest = np.max(np.abs(values), where=np.isfinite(values), initial=0)
            scale = np.float32(largest) / np.float32(_LARGEST)
            host.store(of_all, scale if scale > 0 else np.float32(1))
        all_ = scale_on_host(one)
        filled = np.zeros((len(values), one.columns), np.float32)
        filled[:, : values.shape[1]] = values
        blocks = filled.reshape(len(values), -1, one.block)
        most = np.abs(blocks).max(axis=-1)
        finite = np.isfinite(most)
        if one.scales.dtype == float8_e4m3:
            wanted = np.where(finite, np.minimum(most / all_ / np.float32(6), np.float32(448)), np.float32("nan"))
            host.memory(one.scales)[...] = storage.encoded(wanted, float8_e4m3)
        else:
            exponents = np.maximum(most.view(np.int32) >> 23, 2) - 2
            host.memory(one.scales)[...] = np.where(finite, exponents, 255)
        step = (of_blocks(one) * all_)[..., None]
        codes = np.where(step > 0, storage.encoded(blocks / step, float4_e2m1), 0).reshape(len(values), -1)
        host.memory(one.codes)[...] = codes[:, ::2] | codes[:, 1::2] << 4
