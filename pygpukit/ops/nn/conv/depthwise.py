"""Depthwise convolution, a filter a channel, on CUDA cores: the launch of its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import promotion
from pygpukit.core import device
from pygpukit.kernels import activation
from pygpukit.ops import copying, raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.layout.operand import ALIGNMENT
from pygpukit.ops.nn.conv.problem import Call, Problem
from pygpukit.ops.nn.conv.settings import Settings, geometry

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = kernels.KernelSpec(__file__, "depthwise.cu")
_DEPTHWISE = SOURCE.structure("Depthwise")
_BLOCK = 256
_STRIP = 4  # depthwise.cu: kStrip
_COUNTABLE = 2**31  # places of a channel of the result
_SHARED = 32768  # bytes of weights that a block keeps, at most
_PACKS = 32  # of channels that a block has, at most
_ROUNDS = 4  # that a block takes to be worth its weights, where there are blocks enough
_SHARING = ((3, 1), (3, 2), (5, 1))  # (kernel columns, stride): neighbours share what they read


def refusal(p: Problem) -> str:
    """Why the kernels do not take it, "" where they do: it is depthwise, and its places can be counted."""
    if p.settings.transposed or p.weight[1] != 1 or p.weight[-1] != 1:
        return "it is not depthwise"
    images, _, rows, columns = p.out
    return "" if images * rows * (columns + _STRIP) < _COUNTABLE else "a channel has more places than are counted"


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    convolve(call.input, copying.contiguous(call.weight), call.bias, call.out, p.settings, call.storage)


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`. weight, bias: dense."""
    images, channels, rows, columns = out.shape
    taps, size = weight.shape[2] * weight.shape[3], out.itemsize
    storage, where = geometry(input, weight.shape[2:], out, settings)
    strips = -(-columns // _STRIP)
    items = images * rows * strips
    pack = ALIGNMENT // size
    max_packs = min(_PACKS, _SHARED // (taps * ALIGNMENT))
    if not (max_packs and _has_packs(input) and _has_packs(out)):
        pack = 1
    parts = -(-channels // (pack * max(1, max_packs)))
    packs = -(-channels // (pack * parts))  # of about as many in each part
    across = _BLOCK // packs
    rounds = max(1, min(_ROUNDS, items // across * parts // (8 * device.current().sm_count)))
    packed = _DEPTHWISE.pack(
        channels=channels,
        strips=strips,
        items=items,
        **where,
        own=pack * packs,
        rounds=rounds,
        channels_fast=out.strides[1] == size and channels > 1,
        lines=out.strides[3] == size and columns % _STRIP == 0,
        has_bias=bias is not None,
        act=activation.number(settings.act),
    )
    sharing = weight.shape[3], settings.stride[1]
    columns_step = sharing if sharing in _SHARING and settings.dilation[1] == 1 else (0, 0)
    spec = SOURCE.of(
        _expression(out.dtype, pack, columns_step), shared_bytes=pack * packs * taps * size if pack > 1 else 0
    )
    blocks = -(-items // (across * rounds)) * parts if pack > 1 else -(-items * channels // _BLOCK)
    kernels.launch(
        spec, (blocks, 1, 1), (_BLOCK, 1, 1), storage, weight, weight if bias is None else bias, dense, packed
    )


def _has_packs(array: GPUArray) -> bool:
    """True where channels are dense and those of each place are whole 16 bytes."""
    steps = (step for extent, step in zip(array.shape, array.strides, strict=True) if extent > 1)
    numbers = (array.shape[1] * array.itemsize, raw.address(array), *(step for step in steps if step != array.itemsize))
    return array.strides[1] == array.itemsize and not any(number % ALIGNMENT for number in numbers)


def _expression(dtype: DataType, pack: int, columns_step: tuple[int, int]) -> str:
    numbers = ", ".join(str(number) for number in (pack, *columns_step))
    return f"pk::convolve_depthwise<{CTYPES[dtype.name]}, {numbers}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that convolve() can ask for."""
    for dtype, columns_step in product(promotion.FLOATS, ((0, 0), *_SHARING)):
        for pack in (1, ALIGNMENT // dtype.itemsize):
            yield (_expression(dtype, pack, columns_step),)
