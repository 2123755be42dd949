"""Kokoro's weights in an ONNX file: under the names of the PyTorch model, in its layout, dequantised.

An exporter keeps the names of biases and tables, but not those of the weights that it folded, transposed or quantised;
their names follow from the nodes that use them, which are called by the module's path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ModelFileError
from pygpukit.models.onnx import Node, OnnxFile

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_PRODUCTS = ("MatMul", "MatMulInteger", "Gemm")
_CONVOLUTIONS = ("Conv", "ConvInteger", "ConvTranspose")
_LSTMS = ("LSTM", "DynamicQuantizeLSTM")
_WRAPPERS = ("encoder", "decoder")  # the two halves that the exporter wraps the model in
_PREDICTOR = ("F0", "N", "shared", "F0_proj", "N_proj")  # called as its own, though they are the predictor's
_HELPERS = ("_scale", "_zero_point", "_shape")
_GATES = (0, 2, 3, 1)  # ONNX has them in the order i, o, f, g; PyTorch in i, f, g, o


def tensors(path: Path) -> dict[str, Callable[[], Array]]:
    """The reader of each weight, float32, by its PyTorch name. Raises ModelFileError for another model."""
    file = OnnxFile(path)
    readers: dict[str, Callable[[], Array]] = {}
    initialisers, used = set(file.names()), set[str]()
    for node in file.nodes:
        for name, weight, read in _of_node(file, node, initialisers):
            if weight not in used and name and ".stft." not in name:
                used.add(weight)
                readers.setdefault(name, read)
    for name in initialisers - used:
        plain = _plain(name)
        if plain:
            readers.setdefault(plain, lambda name=name: file.array(name).astype("float32", copy=False))  # type: ignore[misc]
    for name in list(readers):
        if ".alpha" in name:  # (1, C, 1) in the file
            readers[name] = lambda read=readers[name]: read().reshape(-1)  # type: ignore[misc]
    if "bert.embeddings.word_embeddings.weight" not in readers or "decoder.generator.conv_post.weight" not in readers:
        raise ModelFileError(
            f"{path}: its nodes are not called as Kokoro's are, so its weights cannot be told", str(path)
        )
    return readers


def _of_node(file: OnnxFile, node: Node, initialisers: set[str]) -> Iterator[tuple[str, str, Callable[[], Array]]]:
    """(PyTorch name, the initialiser, what reads it) of the weights that a node brings."""
    if node.op == "DequantizeLinear" and node.inputs[0].endswith("_output_0_quantized"):
        yield from _table(file, node, initialisers)
    weight = node.inputs[1] if len(node.inputs) > 1 else ""
    if weight not in initialisers or len(file.shape(weight)) < 2:
        return
    module = _module(node.name)
    if node.op in _LSTMS:
        yield from _lstm(file, node, module)
    elif node.op in _PRODUCTS:
        as_is = bool(node.attributes.get("transB", 0))
        zero = node.inputs[3] if node.op == "MatMulInteger" else ""
        yield f"{module}.weight", weight, lambda: _transposed(_dequantised(file, weight, zero, -1), as_is)
    elif node.op in _CONVOLUTIONS:
        zero = node.inputs[3] if node.op == "ConvInteger" else ""
        yield f"{module}.weight", weight, lambda: _dequantised(file, weight, zero, 0)


def _table(file: OnnxFile, node: Node, initialisers: set[str]) -> Iterator[tuple[str, str, Callable[[], Array]]]:
    """An embedding: rows are gathered as they are stored, then dequantised."""
    name = node.inputs[1].removesuffix("_scale")
    weight = f"{name}_quantized"
    plain = _plain(name)
    if weight in initialisers and plain:
        yield plain, weight, lambda: _dequantised(file, weight, node.inputs[2], 0)


def _lstm(file: OnnxFile, node: Node, module: str) -> Iterator[tuple[str, str, Callable[[], Array]]]:
    quantised = node.op == "DynamicQuantizeLSTM"
    for which, position in (("ih", 1), ("hh", 2)):
        for direction, suffix in enumerate(("", "_reverse")):
            zero = node.inputs[9 if which == "ih" else 11] if quantised else ""
            weight = node.inputs[position]

            def read(weight: str = weight, zero: str = zero, direction: int = direction) -> Array:
                values = _dequantised(file, weight, zero, 0)[direction]
                return _reordered(values.T if quantised else values)

            yield f"{module}.weight_{which}_l0{suffix}", f"{weight}#{direction}", read

            def bias(which: str = which, direction: int = direction) -> Array:
                halves = file.array(node.inputs[3])[direction].astype("float32", copy=False)
                half = halves.size // 2
                return _reordered(halves[:half] if which == "ih" else halves[half:])

            yield f"{module}.bias_{which}_l0{suffix}", f"{node.inputs[3]}#{which}{direction}", bias


def _reordered(values: Array) -> Array:
    import numpy as np

    gates = values.reshape(4, values.shape[0] // 4, *values.shape[1:])
    return np.ascontiguousarray(gates[list(_GATES)]).reshape(values.shape)


def _transposed(values: Array, as_is: bool) -> Array:
    """(in, out) as the file has it becomes PyTorch's (out, in)."""
    import numpy as np

    return values if as_is else np.ascontiguousarray(values.T)


def _dequantised(file: OnnxFile, weight: str, zero: str, axis: int) -> Array:
    """(q - zero point) * scale; one of both for the tensor, or one for each slice along an axis."""
    import numpy as np

    values = file.array(weight)
    if values.dtype.kind == "f":
        return values.astype(np.float32, copy=False)
    scale = file.array(weight.removesuffix("_quantized") + "_scale")
    point = file.array(zero).astype(np.float32) if zero else np.zeros((), np.float32)
    shape = [1] * values.ndim
    shape[axis] = -1
    scale, point = (x.reshape(shape) if x.size > 1 else x.reshape(()) for x in (scale, point))
    return (values.astype(np.float32) - point) * scale.astype(np.float32)


def _module(name: str) -> str:
    """The PyTorch module of a node: /encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant is text_encoder.cnn.0.0."""
    parts = [part for part in name.split("/") if part][:-1]
    if parts and parts[0] in _WRAPPERS:
        parts = parts[1:]
    if len(parts) > 1 and parts[-1] == "Gemm":
        parts = parts[:-1]
    if parts and parts[0].split(".")[0] in _PREDICTOR:
        parts = ["predictor", *parts]
    kept = [part for i, part in enumerate(parts) if i + 1 == len(parts) or not parts[i + 1].startswith(part + ".")]
    return ".".join(kept)


def _plain(name: str) -> str:
    """The PyTorch name of an initialiser that kept it, or ""."""
    half, _, rest = name.partition(".")
    return (
        rest if half in _WRAPPERS and "/" not in rest and not rest.endswith(_HELPERS) and ".stft." not in rest else ""
    )
