"""Copies of images with their padding, channels last, as the tile kernel of convolutions reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.ops import raw
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "padded.cu")
_PADDING = SOURCE.structure("Padding")
_BLOCK = 256
_SIDE = 64  # padded.cu: kSide
_SIZES = (2, 4)  # of elements


def padded(x: GPUArray, groups: int, before: tuple[int, int], after: tuple[int, int]) -> GPUArray:
    """x, (B, C, rows, columns) of any strides, with rows and columns of zeros before and after: a view of a copy whose
    channels are dense, those of a group filled up with zeros to whole 16 bytes."""
    images, channels, *image = x.shape
    own, size = channels // groups, x.itemsize
    filled = aligned_length(own, size)
    rows, columns = (sum(extents) for extents in zip(before, image, after, strict=True))
    copy = native.empty((images, rows, columns, groups * filled), x.dtype)
    image_step, row, column, channel = copy.strides
    storage, start = span(x)
    steps = [step // size for step in x.strides]
    pieces = ALIGNMENT // size
    numbers = (start, *steps[:1], *steps[2:], own)
    is_transposed = steps[1] != 1 or raw.address(storage) % ALIGNMENT or any(number % pieces for number in numbers)
    scale = 1 if is_transposed else pieces
    packed = _PADDING.pack(
        start=start // scale,
        images=images,
        image=image,
        before=before,
        padded=(rows, columns),
        groups=groups,
        own=own // scale,
        filled=filled // scale,
        step=[steps[0] // scale, steps[1], steps[2] // scale, steps[3] // scale],
    )
    if is_transposed:
        blocks = images * -(-rows * columns // _SIDE) * -(-groups * filled // _SIDE)
    else:
        blocks = -(-copy.size // (pieces * _BLOCK))
    name = _expression("pad_transposed", size) if is_transposed else _expression("pad", ALIGNMENT)
    kernels.launch(SOURCE.of(name), (blocks, 1, 1), (_BLOCK, 1, 1), storage, copy, packed)
    return native.view(copy, (images, groups * filled, rows, columns), (image_step, channel, row, column), 0)


def _expression(kernel: str, itemsize: int) -> str:
    return f"pk::{kernel}<{raw.RAW[itemsize]}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that padded() can ask for."""
    yield (_expression("pad", ALIGNMENT), *(_expression("pad_transposed", size) for size in _SIZES))
