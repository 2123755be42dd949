"""Kokoro's weights: from an ONNX file, or safetensors under PyTorch's names, onto the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float32
from pygpukit.core.errors import DTypeError, ModelFileError
from pygpukit.core.progress import Progress
from pygpukit.models.convert import convert
from pygpukit.models.safetensors import load_safetensors
from pygpukit.tts import onnx_names
from pygpukit.tts.config import KokoroConfig

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Array = np.ndarray[Any, Any]
    Readers = dict[str, Callable[[], Array]]

# A weight that is stored as a length and a direction: what its two tensors' names end in.
_FOLDED = ((".weight_g", ".weight_v"), (".parametrizations.weight.original0", ".parametrizations.weight.original1"))
_UNUSED = "bert.pooler."
_SUFFIXES = (".safetensors", ".onnx")


def load_kokoro_weights(
    model_path: str | os.PathLike[str], dtype: str = "float32", device: str | None = None, *, progress: bool = False
) -> tuple[dict[str, GPUArray], dict[str, Any]]:
    """The weights by their PyTorch names, on the current device, and the configuration's fields.

    model_path: an .onnx or .safetensors file, or a folder with one. dtype: "float32", which all is computed in; device:
    the current one is used, whatever it says. Weights that are stored as a length and a direction are folded, int8 ones
    dequantised. Raises ModelFileError for what is no Kokoro, DTypeError for another dtype.
    """
    del device
    if dtype != "float32":
        raise DTypeError(f"load_kokoro_weights: dtype {dtype!r}; Kokoro runs in float32")
    path = weights_file(Path(model_path))
    readers = _folded(onnx_names.tensors(path) if path.suffix == ".onnx" else _stored(path))
    weights: dict[str, GPUArray] = {}
    with Progress(f"loading {path.name}", len(readers), progress) as bar:
        for name, read in readers.items():
            weights[name] = _uploaded(f"kokoro/{name}", read())
            bar.add(1)
    return weights, KokoroConfig.from_pretrained(path).to_dict()


def weights_file(path: Path) -> Path:
    """The file itself, or the one of a folder. Raises ModelFileError where there is none, or more than one."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and "voice" not in file.name)
        if len(files) != 1:
            names = ", ".join(file.name for file in files) or "none"
            raise ModelFileError(f"{path}: it must have one .onnx or .safetensors file of weights; it has {names}")
        return files[0]
    if path.suffix not in _SUFFIXES:
        raise ModelFileError(f"{path}: Kokoro is read from .onnx and .safetensors files", str(path))
    return path


def get_weight_info(weights: Mapping[str, GPUArray]) -> dict[str, dict[str, Any]]:
    """Shape, type and bytes of each weight, by name."""
    return {
        name: {"shape": array.shape, "dtype": array.dtype.name, "size_bytes": array.nbytes}
        for name, array in weights.items()
    }


def print_weight_summary(weights: Mapping[str, GPUArray]) -> None:
    """Print tensors, parameters and bytes of each part of the model."""
    parts: dict[str, list[GPUArray]] = {}
    for name, array in weights.items():
        parts.setdefault(name.split(".")[0], []).append(array)
    for part, arrays in parts.items():
        size, count = sum(a.nbytes for a in arrays), sum(a.size for a in arrays)
        print(f"{part}: {len(arrays)} tensors, {count:,} parameters, {size / 1e6:.1f} MB")


def _stored(path: Path) -> Readers:
    """Tensors of a safetensors file; `bert.module.x` is `bert.x`."""
    file = load_safetensors(path)
    readers: Readers = {}
    for name in file.tensor_names:
        have = file.tensor_info(name).dtype.data_type
        plain = name.replace(".module.", ".", 1)
        readers[plain] = lambda name=name, have=have: convert(file.array(name), have, float32)  # type: ignore[misc]
    for name in [name for name in readers if name.startswith(_UNUSED)]:
        del readers[name]
    for name in [name for name in readers if ".alpha" in name]:  # (1, C, 1) in the file
        readers[name] = lambda read=readers[name]: read().reshape(-1)  # type: ignore[misc]
    return readers


def _folded(readers: Readers) -> Readers:
    """Weights as length and direction made one: g v / |v|, |v| over all axes but the first."""
    folded = dict(readers)
    for length, direction in _FOLDED:
        for name in [name for name in readers if name.endswith(length)]:
            base = name.removesuffix(length)
            if base + direction not in readers:
                raise ModelFileError(f"the weight {name!r} has no {base + direction!r} beside it")
            g, v = folded.pop(name), folded.pop(base + direction)
            folded[f"{base}.weight"] = lambda g=g, v=v: _product(g(), v())  # type: ignore[misc]
    return folded


def _product(length: Array, direction: Array) -> Array:
    import numpy as np

    wide = direction.astype(np.float64)
    norm = np.sqrt(np.square(wide).sum(axis=tuple(range(1, wide.ndim)), keepdims=True))
    scale = np.divide(length.reshape(norm.shape), norm, out=np.zeros_like(norm), where=norm > 0)
    return (wide * scale).astype(np.float32)


def _uploaded(name: str, values: Array) -> GPUArray:
    import numpy as np

    array = factory.empty(values.shape, "float32")
    array.name = name
    native.copy_from_host(array, np.ascontiguousarray(values))
    return array
