"""A model in Hugging Face's layout: a folder of JSON and safetensors files, or one file and what lies beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType, bfloat16, float16, float32
from pygpukit.core.errors import ModelFileError
from pygpukit.models.convert import convert
from pygpukit.models.documents import read_object
from pygpukit.models.quantised.methods import quantised
from pygpukit.models.quantised.tensors import Tensors
from pygpukit.models.safetensors import SafeTensorsFile, ShardedSafeTensorsFile, load_safetensors
from pygpukit.models.stored import Stored

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.models.tokenizer.tokenizer import Tokenizer

_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth", "model.pt")


class FolderCheckpoint:
    """A Checkpoint of such a folder or file."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.folder = path if path.is_dir() else path.parent
        self.config = _optional(self.folder / "config.json")
        if "quantization_config" not in self.config:  # ModelOpt keeps it in a file of its own
            more = _optional(self.folder / "hf_quant_config.json").get("quantization")
            if more is not None:
                self.config["quantization_config"] = {"quant_method": "modelopt", **more}
        self.generation = _optional(self.folder / "generation_config.json")
        self._file = _weights(path)
        # Some writers put GPT-2's tensors under "transformer.", others do not.
        self._stored = {name.removeprefix("transformer."): name for name in self._file.tensor_names}
        self._tokenizer: Tokenizer | None = None
        try:
            self._tensors = Tensors(self._stored, self._kept, self._kept_as, self._kept_shape, str(path))
            self._quantised = quantised(self.config, self._tensors)
        except BaseException:
            self._file.close()
            raise

    def names(self) -> tuple[str, ...]:
        return self._quantised.names(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        weight = self._quantised.own.get(name)
        return self._kept_shape(name) if weight is None else weight.shape(self._tensors)

    def dtype(self, name: str) -> DataType:
        return float32 if name in self._quantised.own else self._kept_as(name)

    def read(self, name: str, dtype: DataType | None = None) -> np.ndarray[Any, Any]:
        have, weight = self.dtype(name), self._quantised.own.get(name)
        values = self._kept(name) if weight is None else weight.values(self._tensors)
        return convert(values, have, dtype or have)

    def _kept(self, name: str) -> np.ndarray[Any, Any]:
        """The stored values, as bits where that is no type of NumPy's."""
        return self._file.array(self._stored[name])

    def _kept_as(self, name: str) -> DataType:
        return self._file.tensor_info(self._stored[name]).dtype.data_type

    def _kept_shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._file.tensor_info(self._stored[name]).shape)

    def stored(self, name: str) -> Stored | None:
        weight = self._quantised.own.get(name)
        if weight is not None:
            return weight.blocks(self._tensors)
        kind = {bfloat16: "BF16", float16: "F16"}.get(self.dtype(name))
        return None if kind is None or len(self.shape(name)) != 2 else Stored(kind, lambda: self.read(name))

    def quantised_weight(self, name: str) -> tuple[str, int] | None:
        weight = self._quantised.own.get(name)
        if weight is None:
            return None
        tensors = [tensor for tensor in weight.tensors if tensor in self._stored]
        return weight.kind, sum(self._file.tensor_info(self._stored[tensor]).size_bytes for tensor in tensors)

    def tokenizer(self) -> Tokenizer:
        from pygpukit.models.tokenizer.tokenizer import Tokenizer

        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self.folder)
        return self._tokenizer

    def close(self) -> None:
        self._file.close()


def _optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _weights(path: Path) -> SafeTensorsFile | ShardedSafeTensorsFile:
    try:
        return load_safetensors(path)
    except ModelFileError:
        pickled = next((name for name in _PICKLED if path.is_dir() and (path / name).exists()), None)
        if pickled is None or any(path.glob("*.safetensors")):
            raise
        raise ModelFileError(
            f"{path}: its weights are in {pickled}, a pickle, which can run any code when it is opened, so it "
            "is not. Take the model's .safetensors files",
            str(path),
        ) from None
