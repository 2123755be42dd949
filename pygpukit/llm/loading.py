"""Tensors of a checkpoint as arrays and layers on the device, named after model and layer, with a bar that tells.

Tensors are read and converted by several threads, while those before them are copied to the device.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.core.progress import Progress
from pygpukit.llm.layers.linear import LinearBF16
from pygpukit.llm.layers.norm import Norm
from pygpukit.memory.transfer_engine import TransferEngine

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.memory.transfer import Transfer
    from pygpukit.models.checkpoint import Checkpoint

    Told = Callable[[int, int, str], None]


_UNDER_WAY_BYTES = 256 << 20  # of tensors on the host that are converted, or wait for their copy
_READERS = 8  # threads at most: what they do is bound by memory


@dataclass
class _Coming:
    """A tensor on its way to the device: its values once they are converted, then its copy."""

    name: str
    target: GPUArray
    values: Future[Any]
    transfer: Transfer | None = None


class TensorLoader:
    """Reads tensors of one checkpoint, inside of `with`: at its end all of them are on the device.

    Memory is named after the model and the place: "smollm2/layers.03/qkv".

    prefix: what the file's names have before those that are asked for. transposed: weights are (in, out) in the file.
    what: what needs the tensors, for errors.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        dtype: str,
        title: str,
        progress: bool | Told,
        *,
        prefix: str = "",
        transposed: bool = False,
        what: str = "model",
    ) -> None:
        self._checkpoint, self._dtype, self._title = checkpoint, as_dtype(dtype), title
        self._prefix, self._transposed, self._what = prefix, transposed, what
        self._names = set(checkpoint.names())
        self._total = sum(_count(checkpoint.shape(name)) for name in self._names) * self._dtype.itemsize
        self._done = 0
        self._told: Told | None = None if isinstance(progress, bool) else progress
        self._bar = Progress(f"loading {title}", self._total, shown=progress is True)
        self._under_way: deque[_Coming] = deque()

    def __enter__(self) -> None:
        self._engine = TransferEngine()
        self._readers = ThreadPoolExecutor(min(os.cpu_count() or 1, _READERS), "pygpukit-load")
        self._bar.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._wait(0)
        finally:
            self._readers.shutdown(cancel_futures=True)
            self._engine.close()
            self._bar.__exit__(kind, error, trace)

    def linear(self, label: str, columns: int, parts: list[tuple[str | None, str | None, int]]) -> LinearBF16:
        """One weight from one or more tensors, below each other, with their biases where the file has any."""
        rows = sum(count for *_, count in parts)
        weight = self._array((rows, columns), f"{label}.weight")
        biased = any(self.has(bias) for _, bias, _ in parts)
        bias = self._array((rows,), f"{label}.bias") if biased else None
        if bias is not None:
            native.fill(bias, bytes(bias.itemsize))
        start = 0
        for tensor, bias_tensor, count in parts:
            shape = (columns, count) if self._transposed else (count, columns)
            self._copy(str(tensor), shape, weight[start : start + count], transposed=self._transposed)
            if bias is not None and self.has(bias_tensor):
                self._copy(str(bias_tensor), (count,), bias[start : start + count])
            start += count
        return LinearBF16(weight, bias)

    def norm_of(
        self, weight: str, bias: str | None, label: str, size: int, kind: Literal["rmsnorm", "layernorm"], eps: float
    ) -> Norm:
        """A norm of rows of that size."""
        shift = None if bias is None else self.table(bias, f"{label}.bias", (size,))
        scale = self.table(weight, f"{label}.weight", (size,))
        return Norm(scale, shift, kind, eps)

    def table(self, tensor: str, label: str, shape: tuple[int, ...]) -> GPUArray:
        """One tensor as it is."""
        array = self._array(shape, label)
        self._copy(tensor, shape, array)
        return array

    def has(self, tensor: str | None) -> bool:
        """Whether the file has that tensor."""
        return tensor is not None and self._prefix + tensor in self._names

    def same(self, one: str, other: str) -> bool:
        """Whether two tensors hold the same numbers."""
        import numpy as np

        a, b = (self._checkpoint.read(self._prefix + name) for name in (one, other))
        return a.dtype == b.dtype and np.array_equal(a, b)

    def _array(self, shape: tuple[int, ...], label: str) -> GPUArray:
        array = factory.empty(shape, self._dtype)
        array.name = f"{self._title}/{label}"
        return array

    def _copy(self, tensor: str, shape: tuple[int, ...], target: GPUArray, transposed: bool = False) -> None:
        name = self._prefix + tensor
        if name not in self._names:
            raise InvalidSpecError(f"{self._title}: the model has no tensor {name!r}, a {self._what} needs it", name)
        found = self._checkpoint.shape(name)
        if found != shape:
            raise ShapeError(
                f"{self._title}: the tensor {name!r} has shape {found}, must be {shape} by its config.json"
            )
        self._wait(_UNDER_WAY_BYTES - target.nbytes)
        values = self._readers.submit(self._values, name, transposed)
        self._under_way.append(_Coming(name, target, values))
        for coming in self._under_way:  # in their order, as far as they have come
            if coming.transfer is None:
                if not coming.values.done():
                    break
                self._send(coming)

    def _values(self, name: str, transposed: bool) -> Any:
        import numpy as np

        values = self._checkpoint.read(name, self._dtype)
        return np.ascontiguousarray(values.T if transposed and values.ndim == 2 else values)

    def _send(self, coming: _Coming) -> Transfer:
        """The copy of a tensor to the device, once its values are there."""
        coming.transfer = self._engine.to_device(coming.target, coming.values.result())
        self._done += coming.target.nbytes
        self._bar.update(self._done)
        if self._told is not None:
            self._told(self._done, self._total, coming.name)
        return coming.transfer

    def _wait(self, most_bytes: int) -> None:
        """Until no more than that is under way."""
        while self._under_way and sum(one.target.nbytes for one in self._under_way) > most_bytes:
            coming = self._under_way.popleft()
            (coming.transfer or self._send(coming)).wait()


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total
