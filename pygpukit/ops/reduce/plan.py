"""The plan of a reduction over its input: along or across rows of memory, by how many threads, in how many parts.

Integers only, no memory touched. Everything follows from shapes and strides, so that one input always adds up in one
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pygpukit.array import layout
from pygpukit.array.layout import Shape
from pygpukit.ops.elementwise.pointwise import packed_layout

THREADS = 128  # reduce.cu: kThreads
_LOAD_BYTES = 16
_LOADS_A_THREAD = 16  # what a thread of a row should have to do before a second warp helps
_PARTS_A_THREAD = 8  # the same where parts are merged: there are few, and the launch is over when the slowest has them
_WHOLE = 16384  # elements that are reduced in one part
_MIN_CHUNK = 8192
_MAX_CHUNKS = 2048
_PARTS_TOGETHER = 16  # a result's parts begin at a multiple of 16 bytes, whatever a part's size: some may be empty
_MAX_TOGETHER = 4  # columns of a thread
_TOGETHER_SMALL = 2  # of small elements that are not dense
_MAX_COLUMN_CHUNKS = 2048
_ROWS_A_THREAD = 64  # the same for columns: elements in a part for every thread
_MIN_BLOCKS = 264  # with fewer a thread has one column, so that there are more
_SHORT_ROW = 4  # loads of a thread of a short row


@dataclass(frozen=True)
class Plan:
    """One launch. layout: the fields of reduce.cu's Reduction without its setting; merge: the launch that makes results
    of parts."""

    form: str  # rows or columns
    dense: bool
    blocks: int
    layout: dict[str, Any]
    parts: int = 0
    merge: Plan | None = None


@lru_cache(maxsize=4096)
def plan(
    shape: Shape,
    strides: Shape,
    axes: Shape,
    out_strides: Shape,
    start: int,
    itemsize: int,
    aligned: bool,
    ordered: bool,
) -> Plan:
    """The launches for a non-empty input.

    strides and start: of the input, in elements; axes: those reduced; out_strides: of the result, one for each kept
    axis, in elements. aligned: the first element lies at a multiple of 16 bytes. ordered: an element's number along
    the axes matters, so they are walked in C order.
    """
    reduced = [axis for axis in range(len(shape)) if axis in axes]
    if not ordered:
        reduced.sort(key=lambda axis: -abs(strides[axis]))
    inner, (inner_steps,) = layout.collapse(
        tuple(shape[axis] for axis in reduced), [tuple(strides[axis] for axis in reduced)]
    )
    count = 1
    for extent in inner:
        count *= extent
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept, steps = layout.collapse(
        tuple(shape[axis] for axis in kept_axes), [tuple(strides[axis] for axis in kept_axes), out_strides]
    )
    span = 1 + start + sum((extent - 1) * max(step, 0) for extent, step in zip(shape, strides, strict=True))
    body = _Body(start, count, inner, inner_steps, max(1, _LOAD_BYTES // itemsize), aligned, span)
    nearest = min((abs(step) for step in inner_steps if step), default=0)
    across = [axis for axis, step in enumerate(steps[0]) if 0 < abs(step) < nearest]
    if across:
        return _columns(body, kept, steps[0], steps[1], min(across, key=lambda axis: abs(steps[0][axis])))
    if any(shape[axis] == 1 and 0 < abs(strides[axis]) < nearest for axis in kept_axes):  # a column, as among others
        return _columns(body, (*kept, 1), (*steps[0], 1), (*steps[1], 1), len(kept))
    return _rows(body, kept, steps[0], steps[1])


@dataclass(frozen=True)
class _Body:
    """The elements of one result."""

    start: int
    count: int
    shape: Shape
    strides: Shape
    per_load: int
    aligned: bool
    span: int = 0  # elements from the pointer on that are the input's; of parts, which are dense, none is asked for

    def pack(
        self,
        kept: Shape,
        steps: Shape,
        out_steps: Shape,
        columns: Shape,
        lanes: int,
        height: int,
        each: int,
        chunk: int,
        chunks: int,
    ) -> dict[str, Any]:
        """The fields of reduce.cu's Reduction, but its setting."""
        results = 1
        for extent in kept:
            results *= extent
        width, stride, out_stride = columns
        return {
            "kept": packed_layout(results, kept, (0, 0), (steps, out_steps)),
            # A single element has no axis; its stride of 1 says that it is dense.
            "reduced": packed_layout(self.count, self.shape, (self.start,), (self.strides or (1,),)),
            "columns": width,
            "column_stride": stride,
            "column_out_stride": out_stride,
            "lanes": lanes,
            "height": height,
            "each": each,
            "chunk": chunk,
            "chunks": chunks,
            "span": self.span,
        }


def _rows(body: _Body, kept: Shape, steps: Shape, out_steps: Shape, each: int = _LOADS_A_THREAD) -> Plan:
    """each: loads that a thread should have before a second warp helps."""
    results = 1
    for extent in kept:
        results *= extent
    loads = -(-body.count // body.per_load)
    dense = len(body.shape) < 2 and body.strides in ((), (1,)) and body.aligned
    dense = dense and _multiples(steps, body.per_load)
    chunk, chunks, lanes = body.count, 1, _row_lanes(loads, each)
    if body.count > _WHOLE:
        chunk = max(_MIN_CHUNK, -(-body.count // (_MAX_CHUNKS * 4096)) * 4096)
        chunks, lanes = _parts(body.count, chunk), THREADS
    blocks = -(-results * chunks // (THREADS // lanes))
    packed = body.pack(kept, steps, out_steps, (0, 0, 0), lanes, 1, 1, chunk, chunks)
    if chunks == 1:
        return Plan("rows", dense, blocks, packed)
    return Plan("rows", dense, blocks, packed, results * chunks, _merge(kept, out_steps, chunks))


def _parts(count: int, chunk: int) -> int:
    return -(-count // (chunk * _PARTS_TOGETHER)) * _PARTS_TOGETHER


def _row_lanes(loads: int, each: int) -> int:
    """Threads a row: so many that all loads of a short one are under way at once, of a longer one a warp, then enough
    that none has more than a few."""
    if loads <= 32 * _SHORT_ROW:
        return _power_of_two(-(-loads // _SHORT_ROW))
    return min(THREADS, max(32, _power_of_two(-(-loads // each))))


def _columns(body: _Body, kept: Shape, steps: Shape, out_steps: Shape, axis: int) -> Plan:
    width, step, out_step = kept[axis], steps[axis], out_steps[axis]
    rest, rest_steps, rest_out = (values[:axis] + values[axis + 1 :] for values in (kept, steps, out_steps))
    outer = 1
    for extent in rest:
        outer *= extent
    together = min(_MAX_TOGETHER, body.per_load)
    dense = (
        step == 1 and len(body.shape) < 2 and body.aligned and _multiples((width, *rest_steps, *body.strides), together)
    )
    # The threads that share a result, and its parts, so the tree, follow from the number of its elements alone.
    height = min(8, max(1, _power_of_two(body.count // 8 + 1) // 2))
    chunk, chunks = body.count, 1
    if body.count > 2 * _ROWS_A_THREAD * height:
        chunk = _ROWS_A_THREAD * height * max(1, -(-body.count // (_ROWS_A_THREAD * height * _MAX_COLUMN_CHUNKS)))
        chunks = _parts(body.count, chunk)

    def tiled(each: int) -> tuple[int, int]:
        """Threads side by side, and blocks; in a block of narrow tiles are several parts."""
        lanes = min(THREADS // height, _power_of_two(-(-width // each)))
        return lanes, -(-outer * chunks // (THREADS // (lanes * height))) * -(-width // (lanes * each))

    each = together if dense or body.per_load <= _MAX_TOGETHER else _TOGETHER_SMALL
    lanes, blocks = tiled(each)
    if blocks < _MIN_BLOCKS:
        dense, each = False, 1
        lanes, blocks = tiled(each)
    packed = body.pack(rest, rest_steps, rest_out, (width, step, out_step), lanes, height, each, chunk, chunks)
    if chunks == 1:
        return Plan("columns", dense, blocks, packed)
    merge = _merge((*rest, width), (*rest_out, out_step), chunks)
    return Plan("columns", dense, blocks, packed, outer * width * chunks, merge)


def _merge(kept: Shape, out_steps: Shape, chunks: int) -> Plan:
    """Parts lie side by side, result after result in the order of `kept`."""
    steps = tuple(step * chunks for step in layout.contiguous_strides(kept, 1))
    kept, (steps, out_steps) = layout.collapse(kept, [steps, out_steps])
    return _rows(_Body(0, chunks, (chunks,), (1,), 1, True), kept, steps, out_steps, _PARTS_A_THREAD)


def _multiples(values: Shape, of: int) -> bool:
    return all(value % of == 0 for value in values)


def _power_of_two(value: int) -> int:
    """The smallest power of two that is at least value."""
    return 1 << max(0, value - 1).bit_length()
