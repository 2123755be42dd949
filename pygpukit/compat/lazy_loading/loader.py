"""LazyModelLoader: tensors of safetensors files, copied to the device when they are asked for, within a budget."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pygpukit.compat.lazy_loading.residents import Residents, Tensor
from pygpukit.compat.lazy_loading.state import PoolStats, TensorState
from pygpukit.core.errors import ModelFileError
from pygpukit.core.sizes import MemoryLike, parse_memory
from pygpukit.models.safetensors import SafeTensorsFile, ShardedSafeTensorsFile, TensorInfo, load_safetensors

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class LazyModelLoader:
    """Tensors of files that are larger than the device: each is copied to it when it is asked for.

    get() and array() begin the copy, by the transfer engine and straight from the mapped file, and do not wait: what
    uses the array comes after it. Where the budget has no room the least recently used tensors give way; they are
    copied again when they are asked for. An array that you keep stays valid when its tensor is unloaded or gives way,
    and its memory is then yours, not the budget's. `gp.llm.load(..., weights_memory=)` runs whole models in this way.

    Parameters
    ----------
    memory_budget : int or str
        Bytes of the current device that tensors take at most, or "4GB". The pool rounds each up, by at most an eighth.
    enable_eviction : bool
        Whether tensors give way; else one that does not fit is refused.

    Raises
    ------
    InvalidSpecError
        For a budget that is no size.

    Examples
    --------
    >>> import pygpukit as gp
    >>> loader = gp.llm.LazyModelLoader("64MB")
    >>> loader.num_tensors, loader.pool_stats.available
    (0, 67108864)
    """

    def __init__(self, memory_budget: MemoryLike, enable_eviction: bool = True) -> None:
        self._residents = Residents(parse_memory(memory_budget, "memory_budget"), enable_eviction)
        self._lock = threading.RLock()
        self._files: list[SafeTensorsFile | ShardedSafeTensorsFile] = []
        self._tensors: dict[str, Tensor] = {}

    @property
    def memory_budget(self) -> int:
        """Bytes of the device that tensors take at most."""
        return self._residents.budget

    def load_file(self, path: str | os.PathLike[str]) -> None:
        """Map a .safetensors file, an index of several, or a folder with either; no tensor is read.

        Raises ModelFileError for a malformed file, and where a tensor's name is in a file that is there already.
        """
        file = load_safetensors(path)
        with self._lock:
            try:
                tensors = {name: Tensor(file.tensor_info(name), file) for name in file.tensor_names}
                if twice := tensors.keys() & self._tensors.keys():
                    name = min(twice)
                    raise ModelFileError(
                        f"{file.path}: the tensor {name!r} is in {self._tensors[name].file.path}, too; clear() forgets "
                        "what was loaded",
                        str(file.path),
                    )
            except BaseException:
                file.close()
                raise
            self._files.append(file)
            self._tensors |= tensors

    @property
    def tensor_names(self) -> list[str]:
        """The names, file after file."""
        return list(self._tensors)

    @property
    def total_size(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.info.size_bytes for tensor in self._tensors.values())

    @property
    def loaded_size(self) -> int:
        """Bytes of the tensors on the device, or on their way."""
        return self._residents.used

    @property
    def pool_stats(self) -> PoolStats:
        """Figures of the budget."""
        with self._lock:
            return self._residents.stats

    @property
    def num_tensors(self) -> int:
        """Number of tensors."""
        return len(self._tensors)

    @property
    def num_files(self) -> int:
        """Number of files and indexes that load_file() has mapped."""
        return len(self._files)

    def get(self, name: str) -> TensorInfo | None:
        """The file's entry of a tensor, which is on the device from now on, or on its way; None for an unknown name.

        Raises as array().
        """
        with self._lock:
            tensor = self._tensors.get(name)
            if tensor is None:
                return None
            self._residents.use(tensor)
            return tensor.info

    def array(self, name: str) -> GPUArray:
        """A tensor on the device, of the file's shape and type.

        Raises KeyError for an unknown name; OutOfMemoryError, before anything gives way, for one larger than the
        budget, and without eviction for one that what is there leaves no room for; DriverError where its last copy
        failed, which the next time is tried again.
        """
        with self._lock:
            return self._residents.use(self._tensor(name))

    def state(self, name: str) -> TensorState:
        """Where a tensor is. Raises KeyError for an unknown name."""
        return self._tensor(name).state

    def tensor_data_ptr(self, name: str) -> tuple[int, int]:
        """Device address and bytes of a tensor whose copy has ended; 0 as address of one that is not on the device.

        Waits for the copy. Raises KeyError for an unknown name, DriverError where the copy failed.
        """
        with self._lock:
            tensor = self._tensor(name)
            address = 0 if tensor.copy is None else tensor.copy[1].wait().device_ptr
            return address, tensor.info.size_bytes

    def loaded_tensors(self) -> list[str]:
        """The names of the tensors on the device, or on their way; the least recently used first."""
        with self._lock:
            return self._residents.names

    def num_loaded(self) -> int:
        """Number of tensors on the device, or on their way."""
        return len(self._residents)

    def get_layer_tensors(self, prefix: str) -> list[str]:
        """The names that begin with a prefix, such as "model.layers.0."."""
        return [name for name in self._tensors if name.startswith(prefix)]

    def layer_size(self, prefix: str) -> int:
        """Bytes of the tensors whose names begin with a prefix."""
        return self.layer_state(prefix)[2]

    def is_layer_loaded(self, prefix: str) -> bool:
        """True if all tensors whose names begin with a prefix are on the device, or on their way; False for none."""
        total, loaded, _, _ = self.layer_state(prefix)
        return 0 < total == loaded

    def layer_state(self, prefix: str) -> tuple[int, int, int, int]:
        """(tensors, of these on the device or on their way, bytes, of these so) of names that begin with a prefix."""
        with self._lock:
            sizes = {name: self._tensors[name].info.size_bytes for name in self.get_layer_tensors(prefix)}
            loaded = [size for name, size in sizes.items() if name in self._residents]
        return len(sizes), len(loaded), sum(sizes.values()), sum(loaded)

    def unload_model(self) -> int:
        """Let go of all device memory; the files stay mapped. Returns bytes."""
        return self.unload_layer("")[1]

    def unload_layer(self, prefix: str) -> tuple[int, int]:
        """Let go of the tensors whose names begin with a prefix. Returns how many were on the device, and bytes."""
        with self._lock:
            return self._residents.let_go([name for name in self._residents.names if name.startswith(prefix)])

    def unload_tensors(self, names: Iterable[str]) -> tuple[int, int]:
        """Let go of tensors by name. Returns as unload_layer(). Raises KeyError, before any, for an unknown name."""
        with self._lock:
            return self._residents.let_go([self._tensor(name).info.name for name in names])

    def clear(self) -> int:
        """Let go of all device memory and all files. Returns bytes."""
        with self._lock:
            freed = self.unload_model()
            for file in self._files:
                file.close()
            self._files.clear()
            self._tensors.clear()
        return freed

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __repr__(self) -> str:
        return (
            f"LazyModelLoader(files={self.num_files}, tensors={self.num_loaded()} of {len(self)} loaded, "
            f"bytes={self.loaded_size} of {self.memory_budget})"
        )

    def _tensor(self, name: str) -> Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise KeyError(f"the loader has no tensor {name!r}; it has {len(self)}, see tensor_names")
        return tensor
