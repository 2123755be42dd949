"""Arrays written side by side into a dense one by one launch, where each is rows of neighbouring elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import layout
from pygpukit.array.layout import Shape
from pygpukit.ops import host, raw
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "join.cu")
_JOIN = SOURCE.structure("Join")
_PARTS = 8  # join.cu: kParts
_PACKS = 4  # join.cu: kPacks
_BLOCK = 256
_PACK_BYTES = 16
_MAX_SINGLE_PACKS = 1 << 20  # up to so many a thread has one, so that all multiprocessors have work


def write(parts: Sequence[GPUArray], axis: int, target: GPUArray) -> bool:
    """Writes the parts along an axis of the target and says so, or does nothing where that needs more than a launch.

    They have elements, together the extent of the target's axis and its other extents, and do not overlap it.
    """
    size = target.itemsize
    if host.computes() or not 0 < len(parts) <= _PARTS or size not in raw.RAW or not target.is_contiguous():
        return False
    if any(part.dtype is not target.dtype for part in parts):
        return False
    rows = _rows(tuple((part.shape, part.strides) for part in parts), axis, size)
    if rows is None:
        return False
    lengths, steps = rows
    places = (raw.address(target), *(raw.address(part) for part in parts))
    wide = raw.widest(*places, *lengths, *steps)
    begin = [0, *(end // wide for end in accumulate(lengths))]
    packs = -(-target.nbytes // _PACK_BYTES) + 1  # one more where the first is not whole
    each = 1 if packs <= _MAX_SINGLE_PACKS else _PACKS
    packed = _JOIN.pack(
        size=target.nbytes // wide,
        width=begin[-1],
        packs=each,
        begin=begin + [begin[-1]] * (_PARTS + 1 - len(begin)),
        step=[step // wide for step in steps],
    )
    sources = [span(part)[0] for part in parts]  # from its first element on, as no stride is negative
    sources += sources[:1] * (_PARTS - len(sources))
    grid = (-(-packs // (_BLOCK * each)), 1, 1)
    kernels.launch(SOURCE.of(f"pk::join<{raw.RAW[wide]}>"), grid, (_BLOCK, 1, 1), *sources, target, packed)
    return True


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that write() can ask for."""
    yield tuple(f"pk::join<{item}>" for item in raw.RAW.values())


@lru_cache(maxsize=1024)
def _rows(parts: tuple[tuple[Shape, Shape], ...], axis: int, itemsize: int) -> tuple[Shape, Shape] | None:
    """Bytes of each part's rows, and from one row to the next; None where a part is no such rows."""
    lengths, steps = [], []
    for shape, strides in parts:
        inner, (inner_steps,) = layout.collapse(shape[axis:], [strides[axis:]])
        outer, (outer_steps,) = layout.collapse(shape[:axis], [strides[:axis]])
        if inner_steps not in ((), (itemsize,)) or len(outer) > 1 or any(step < 0 for step in outer_steps):
            return None
        lengths.append(prod(inner) * itemsize)
        steps.append(outer_steps[0] if outer else 0)
    return tuple(lengths), tuple(steps)
