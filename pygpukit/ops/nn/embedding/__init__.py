"""Embedding: rows of a table, chosen by numbers on the device."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import deferred
from pygpukit.core.dtypes import int32, int64
from pygpukit.core.errors import DTypeError, ShapeError, out_of_range
from pygpukit.ops import copying, host, raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices, overlaps, span
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["embedding"]
LOW_LEVEL = ["embedding_lookup", "embedding_lookup_batch", "embedding_lookup_ptr"]

SOURCE = kernels.KernelSpec(__file__, "embedding.cu")
_CALL = SOURCE.structure("EmbeddingCall")
_BLOCK = 256
_INDEX = (int32, int64)
_WORDS = {
    16: "pk::Word16",
    8: "unsigned long long",
    4: "unsigned int",
    2: "unsigned short",
    1: "unsigned char",
}


@prepared
def embedding(table: GPUArray, ids: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """table[ids]: (rows, D) and ids of any shape give ids.shape + (D,), in the table's type, whatever it is.

    ids: int32 or int64, 0 to rows - 1. An id out of range raises IndexError as indexing does: at once on the simulated
    device; on a CUDA one, where nothing is read before the launch, by the next call that waits, and until then its row
    is zero. out: written and returned. Strided operands are read in place; asynchronous; exact.
    Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    return _gather(table, ids, out, "embedding")


def embedding_lookup(embed_matrix: GPUArray, out: GPUArray, token_id: int) -> None:
    """out (1, D) = embed_matrix[token_id]. Raises ShapeError when there is no such row, and as embedding()."""
    what = "embedding_lookup"
    rows = _table(embed_matrix, what).shape[0]
    token = operator.index(token_id)
    if not 0 <= token < rows:
        raise ShapeError(f"{what}: token_id {token} is outside the table's {rows} rows")
    _check_out(embed_matrix, check_array(out, f"{what}: out"), (1,), what)
    copying.copy_to(embed_matrix[token : token + 1], out.reshape(1, -1))


def embedding_lookup_ptr(embed_matrix: GPUArray, out: GPUArray, token_id_buf: GPUArray) -> None:
    """out (1, D) = embed_matrix[id], the id read on the device from token_id_buf (one int32). See embedding()."""
    embedding_lookup_batch(embed_matrix, out, token_id_buf, 1)


def embedding_lookup_batch(embed_matrix: GPUArray, out: GPUArray, token_ids_buf: GPUArray, batch_size: int) -> None:
    """out[i] = embed_matrix[ids[i]] for the first batch_size ids of token_ids_buf, read on the device. See embedding().

    out: at least (batch_size, D); rows beyond are left alone. Raises ShapeError when a buffer is too small.
    """
    what = "embedding_lookup_batch"
    ids = check_array(token_ids_buf, f"{what}: token_ids_buf")
    if ids.ndim != 1 or not 0 <= batch_size <= ids.shape[0]:
        raise ShapeError(f"{what}: token_ids_buf of shape {ids.shape} does not hold {batch_size} ids in one dimension")
    rows = check_array(out, f"{what}: out")
    if rows.ndim == 1:
        rows = rows[None]
    if rows.ndim != 2 or rows.shape[0] < batch_size:
        raise ShapeError(f"{what}: out of shape {out.shape} does not hold {batch_size} rows")
    _gather(embed_matrix, ids[:batch_size], rows[:batch_size], what)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that embedding() can ask for."""
    yield tuple(f"pk::embedding<{word}, {CTYPES[i.name]}>" for word in _WORDS.values() for i in _INDEX)


def _table(table: GPUArray, what: str) -> GPUArray:
    if check_array(table, f"{what}: table").ndim != 2:
        raise ShapeError(f"{what}: the table has shape {table.shape}, must be (rows, D)")
    return table


def _check_out(table: GPUArray, out: GPUArray, shape: tuple[int, ...], what: str) -> None:
    if out.dtype != table.dtype:
        raise DTypeError(f"{what}: out is {out.dtype}, the table is {table.dtype}; they must be alike")
    expected = (*shape, table.shape[1])
    if out.shape != expected and not (shape == (1,) and out.shape == expected[1:]):
        raise ShapeError(f"{what}: out has shape {out.shape}, must be {expected}")


def _gather(table: GPUArray, ids: GPUArray, out: GPUArray | None, what: str) -> GPUArray:
    table, ids = _table(table, what), check_array(ids, f"{what}: ids")
    if ids.dtype not in _INDEX:
        raise DTypeError(f"{what}: ids are {ids.dtype}, must be int32 or int64; use .astype('int64')")
    if out is not None:
        _check_out(table, check_array(out, f"{what}: out"), ids.shape, what)
    check_devices(what, table, ids, *(() if out is None else (out,)))
    target = out
    if target is None or not target.is_contiguous() or overlaps(target, table) or overlaps(target, ids):
        target = native.empty((*ids.shape, table.shape[1]), table.dtype)
    if target.size:
        flat = ids if ids.ndim == 1 else ids.reshape(-1)
        (_on_host if host.computes() else _on_device)(table, flat, target)
    if out is None or target is out:
        return target
    copying.copy_to(target, out)
    return out


def _on_host(table: GPUArray, ids: GPUArray, out: GPUArray) -> None:
    def compute() -> None:
        requested = host.memory(ids)
        missing = requested[(requested < 0) | (requested >= table.shape[0])]
        if missing.size:
            raise out_of_range(int(missing[0]), 0, table.shape[0])
        host.memory(out)[...] = host.memory(table)[requested].reshape(out.shape)

    native.host_launch("embedding", compute, [table, ids, out])


def _on_device(table: GPUArray, ids: GPUArray, out: GPUArray) -> None:
    storage, start = span(table)
    ids_storage, ids_start = span(ids)
    size, (row_step, step) = table.itemsize, table.strides
    row_bytes = table.shape[1] * size
    word = size
    if step == size:
        places = (raw.address(storage), start * size, row_step, row_bytes, raw.address(out))
        word = next(width for width in _WORDS if all(place % width == 0 for place in places))
    words = row_bytes // word
    packed = _CALL.pack(
        ids=ids.size,
        rows=table.shape[0],
        words=words,
        start=start * size // word,
        row_step=row_step // word,
        step=step // word if word == size else 1,
        ids_start=ids_start,
        ids_step=ids.strides[0] // ids.itemsize,
    )
    kernels.launch(
        SOURCE.of(f"pk::embedding<{_WORDS[word]}, {CTYPES[ids.dtype.name]}>"),
        (-(-ids.size * words // _BLOCK), 1, 1),
        (_BLOCK, 1, 1),
        storage,
        ids_storage,
        out,
        deferred.report(),
        packed,
    )
