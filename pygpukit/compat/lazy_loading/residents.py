"""Residents: the tensors of a LazyModelLoader that are on the device, within its budget, in the order of their use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from pygpukit.array import factory
from pygpukit.array.array import GPUArray
from pygpukit.compat.lazy_loading.state import PoolStats, TensorState
from pygpukit.core.errors import DriverError, OutOfMemoryError
from pygpukit.memory.transfer import Transfer
from pygpukit.memory.transfer_engine import TransferEngine
from pygpukit.models.safetensors import SafeTensorsFile, ShardedSafeTensorsFile, TensorInfo


@dataclass(eq=False)
class Tensor:
    """A tensor of a file. copy: its array, and the transfer that fills it, while it is on the device or on its way."""

    info: TensorInfo
    file: SafeTensorsFile | ShardedSafeTensorsFile
    copy: tuple[GPUArray, Transfer] | None = None
    is_evicted: bool = False

    @property
    def state(self) -> TensorState:
        """Where it is."""
        progress = None if self.copy is None else self.copy[1].state
        if progress in (None, "Failed"):
            return TensorState.Evicted if self.is_evicted else TensorState.OnDisk
        return TensorState.OnGpu if progress == "Completed" else TensorState.Loading


class Residents:
    """As many tensors as a budget of bytes has room for. evicts: whether those that were not used for longest give way.

    It is used by one thread at a time.
    """

    def __init__(self, budget: int, evicts: bool) -> None:
        self.budget, self.evicts, self.used = budget, evicts, 0
        self._engine = TransferEngine()
        self._tensors: OrderedDict[str, Tensor] = OrderedDict()  # the least recently used first
        self._hits = self._copies = self._evictions = 0

    @property
    def names(self) -> list[str]:
        """Of all, the least recently used first."""
        return list(self._tensors)

    @property
    def stats(self) -> PoolStats:
        """Figures of the budget."""
        return PoolStats(
            quota=self.budget,
            used=self.used,
            cached=0,
            available=self.budget - self.used,
            allocation_count=self._hits + self._copies,
            reuse_count=self._hits,
            eviction_count=self._evictions,
            cudamalloc_count=self._copies,
            active_blocks=len(self),
            free_blocks=0,
        )

    def use(self, tensor: Tensor) -> GPUArray:
        """A tensor's array, whose copy is begun where it has none. Raises OutOfMemoryError and DriverError as
        LazyModelLoader.array()."""
        name = tensor.info.name
        if tensor.copy is not None and tensor.copy[1].state == "Failed":
            _, failed = tensor.copy
            self.let_go([name])
            failed.wait()  # raises
        if tensor.copy is not None:
            self._hits += 1
            self._tensors.move_to_end(name)
            return tensor.copy[0]
        self._make_room(tensor.info)
        array = factory.empty(tuple(tensor.info.shape), tensor.info.dtype.data_type, device=self._engine.device)
        array.name = f"{tensor.file.path.stem}/{name}"
        tensor.copy = array, self._engine.to_device(array, tensor.file.array(name))
        tensor.is_evicted = False
        self._tensors[name] = tensor
        self.used += tensor.info.size_bytes
        self._copies += 1
        return array

    def let_go(self, names: Iterable[str]) -> tuple[int, int]:
        """Take tensors off the device; how many were there, and bytes. A copy that is under way ends first: its memory
        is not free before, and whoever has the array keeps the values."""
        count = freed = 0
        for name in names:
            tensor = self._tensors.get(name)
            if tensor is None or tensor.copy is None:
                continue
            with suppress(DriverError):  # of values that nobody asks for any more
                tensor.copy[1].wait()
            tensor.copy = None
            del self._tensors[name]
            self.used -= tensor.info.size_bytes
            count, freed = count + 1, freed + tensor.info.size_bytes
        return count, freed

    def _make_room(self, info: TensorInfo) -> None:
        """Let the least recently used tensors give way to another one."""
        size, left = info.size_bytes, self.budget - self.used
        if size > self.budget or (size > left and not self.evicts):
            whose = "" if size > self.budget else f", and enable_eviction=False keeps {self.used} bytes of others"
            raise OutOfMemoryError(
                f"the tensor {info.name!r} has {size} bytes, memory_budget={self.budget}{whose}; give a larger budget"
                + (", or unload others" if whose else ""),
                requested=size,
                limit=self.budget,
                free=left,
                used=self.used,
            )
        while size > self.budget - self.used:
            name, tensor = next(iter(self._tensors.items()))
            self.let_go([name])
            tensor.is_evicted = True
            self._evictions += 1

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors
