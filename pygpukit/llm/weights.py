"""Models from checkpoints: each tensor read, converted on the host, and copied to its place on the device."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.core.progress import Progress
from pygpukit.llm.config import TransformerConfig
from pygpukit.llm.layers.attention import Attention
from pygpukit.llm.layers.block import TransformerBlock
from pygpukit.llm.layers.linear import LinearBF16
from pygpukit.llm.layers.mlp import MLP
from pygpukit.llm.layers.norm import Norm
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.models import ModelSpec, read_config, spec_of

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.models.checkpoint import Checkpoint

    Told = Callable[[int, int, str], None]

TYPES = ("float32", "float16", "bfloat16")


def load(
    model: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    context: int | None = None,
    slots: int = 1,
    name: str | None = None,
    spec: ModelSpec | None = None,
    progress: bool | Told = True,
) -> CausalTransformerModel:
    """A language model by name ("smollm2-135m-instruct"), folder, .safetensors or .gguf file, on the current device.

    dtype: of weights and cache; bfloat16 on a GPU and float32 on the simulation by default. context: positions of a
    sequence, at most and by default the model's own, on the simulation 4096. slots: sequences that can be open at once.
    name: what its memory and launches are called. progress: a bar, or a function (bytes done, bytes in all, tensor).

    Raises ModelNotFoundError, ModelFileError, InvalidSpecError for an architecture that is not there, OutOfMemoryError.
    """
    from pygpukit.models.checkpoint import open_checkpoint

    if dtype is not None and dtype not in TYPES:
        raise DTypeError(f"load: dtype is {dtype!r}, must be {', '.join(TYPES)}")
    checkpoint = open_checkpoint(model)
    try:
        return from_checkpoint(
            checkpoint, dtype=dtype, context=context, slots=slots, name=name, spec=spec, progress=progress
        )
    finally:
        checkpoint.close()


def from_checkpoint(
    checkpoint: Checkpoint,
    *,
    dtype: str | None = None,
    context: int | None = None,
    slots: int = 1,
    name: str | None = None,
    spec: ModelSpec | None = None,
    progress: bool | Told = False,
) -> CausalTransformerModel:
    """load() from a checkpoint that is open already; it stays open."""
    spec = spec or spec_of(checkpoint.config.get("model_type"), checkpoint.names())
    config = read_config(spec, checkpoint.config)
    if dtype is None:
        dtype = "float32" if is_sim() else "bfloat16"
    if context is None and is_sim():
        context = 4096
    title = name or checkpoint.name
    loader = Loader(checkpoint, spec, config, dtype, title, progress)
    with loader.bar:
        return loader.model(context, slots)


class Loader:
    """Reads one checkpoint into layers. Memory is named after the model and the layer: "smollm2/layers.03/qkv"."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        spec: ModelSpec,
        config: TransformerConfig,
        dtype: str,
        title: str,
        progress: bool | Told,
    ) -> None:
        self._checkpoint, self._spec, self._config = checkpoint, spec, config
        self._dtype, self._title = as_dtype(dtype), title
        self._names = set(checkpoint.names())
        prefixes = [name.removesuffix(spec.embed_tokens) for name in self._names if name.endswith(spec.embed_tokens)]
        self._prefix = min(prefixes, key=len, default="")
        self._total = sum(_count(checkpoint.shape(name)) for name in self._names) * self._dtype.itemsize
        self._done = 0
        self._told: Told | None = None if isinstance(progress, bool) else progress
        self.bar = Progress(f"loading {title}", self._total, shown=progress is True)

    def model(self, context: int | None, slots: int) -> CausalTransformerModel:
        """The whole model."""
        spec, config = self._spec, self._config
        table = config.vocab_size, config.hidden_size
        positions = config.max_position_embeddings, config.hidden_size
        embed = self.table(spec.embed_tokens, "embed_tokens", table)
        learned = None if spec.position_embed is None else self.table(spec.position_embed, "position_embed", positions)
        return CausalTransformerModel(
            config,
            embed,
            [self.block(number) for number in range(config.num_layers)],
            self.norm(spec.final_norm, spec.final_norm_bias, "final_norm", config.hidden_size),
            self.head(),
            learned,
            spec,
            name=self._title,
            tokenizer=self.tokenizer(),
            generation=self._checkpoint.generation,
            context=context,
            slots=slots,
        )

    def block(self, number: int) -> TransformerBlock:
        """One layer."""
        spec, config, place = self._spec, self._config, f"layers.{number:02d}"
        width, heads = config.hidden_size, config.num_heads * config.head_dim
        keys = config.kv_heads * config.head_dim

        def named(template: str | None) -> str | None:
            return None if template is None else template.format(number)

        def norm(weight: str, bias: str | None, label: str, size: int = width) -> Norm:
            return self.norm(weight.format(number), named(bias), f"{place}/{label}", size)

        def linear(label: str, columns: int, *parts: tuple[str | None, str | None, int]) -> LinearBF16:
            return self.linear(
                f"{place}/{label}", columns, [(named(weight), named(bias), rows) for weight, bias, rows in parts]
            )

        q_norm = None if spec.q_norm is None else norm(spec.q_norm, None, "q_norm", config.head_dim)
        k_norm = None if spec.k_norm is None else norm(spec.k_norm, None, "k_norm", config.head_dim)
        if spec.qkv_combined:
            qkv = linear("qkv", width, (spec.q_proj, spec.q_bias, heads + 2 * keys))
        else:
            parts = (
                (spec.q_proj, spec.q_bias, heads),
                (spec.k_proj, spec.k_bias, keys),
                (spec.v_proj, spec.v_bias, keys),
            )
            qkv = linear("qkv", width, *parts)
        out = linear("o", heads, (spec.o_proj, spec.o_bias, width))
        attention = Attention(qkv, None, None, out, config, q_norm=q_norm, k_norm=k_norm)
        inner = config.ffn_size
        if spec.gate_proj is not None:
            up = linear("gate_up", width, (spec.gate_proj, None, inner), (spec.up_proj, None, inner))
            mlp = MLP(config, gate_proj=up, down_proj=linear("down", inner, (spec.down_proj, None, width)))
        else:
            fc1 = linear("fc1", width, (spec.fc1, spec.fc1_bias, inner))
            fc2 = linear("fc2", inner, (spec.fc2, spec.fc2_bias, width))
            mlp = MLP(config, fc1.weight, fc1.bias, fc2.weight, fc2.bias)
        attn_norm = norm(spec.attn_norm, spec.attn_norm_bias, "attn_norm")
        return TransformerBlock(attn_norm, attention, norm(spec.mlp_norm, spec.mlp_norm_bias, "mlp_norm"), mlp)

    def linear(self, label: str, columns: int, parts: list[tuple[str | None, str | None, int]]) -> LinearBF16:
        """One weight from one or more tensors, below each other, with their biases where the file has any."""
        rows = sum(count for *_, count in parts)
        weight = self._array((rows, columns), f"{label}.weight")
        biased = any(self._has(bias) for _, bias, _ in parts)
        bias = self._array((rows,), f"{label}.bias") if biased else None
        if bias is not None:
            native.fill(bias, bytes(bias.itemsize))
        start = 0
        for tensor, bias_tensor, count in parts:
            shape = (columns, count) if self._spec.weight_transpose else (count, columns)
            self._copy(str(tensor), shape, weight[start : start + count], transposed=self._spec.weight_transpose)
            if bias is not None and self._has(bias_tensor):
                self._copy(str(bias_tensor), (count,), bias[start : start + count])
            start += count
        return LinearBF16(weight, bias)

    def norm(self, weight: str, bias: str | None, label: str, size: int) -> Norm:
        """A norm of rows of that size."""
        shift = None if bias is None else self.table(bias, f"{label}.bias", (size,))
        scale = self.table(weight, f"{label}.weight", (size,))
        return Norm(scale, shift, self._config.norm_type, self._config.norm_eps)

    def table(self, tensor: str, label: str, shape: tuple[int, ...]) -> GPUArray:
        """One tensor as it is."""
        array = self._array(shape, label)
        self._copy(tensor, shape, array)
        return array

    def head(self) -> GPUArray | None:
        """The weight of the logits; None where it is the embedding's."""
        tensor = self._spec.lm_head
        if self._config.tie_word_embeddings or tensor is None or not self._has(tensor):
            return None
        return self.table(tensor, "lm_head", (self._config.vocab_size, self._config.hidden_size))

    def tokenizer(self) -> Any:
        """The model's tokenizer; None for a file without one."""
        from pygpukit.core.errors import ModelFileError

        try:
            return self._checkpoint.tokenizer()
        except ModelFileError:
            return None

    def _has(self, tensor: str | None) -> bool:
        return tensor is not None and self._prefix + tensor in self._names

    def _array(self, shape: tuple[int, ...], label: str) -> GPUArray:
        array = factory.empty(shape, self._dtype)
        array.name = f"{self._title}/{label}"
        return array

    def _copy(self, tensor: str, shape: tuple[int, ...], target: GPUArray, transposed: bool = False) -> None:
        import numpy as np

        name = self._prefix + tensor
        if name not in self._names:
            raise InvalidSpecError(
                f"{self._title}: the model has no tensor {name!r}, a {self._spec.name} needs it", name
            )
        found = self._checkpoint.shape(name)
        if found != shape:
            raise ShapeError(
                f"{self._title}: the tensor {name!r} has shape {found}, must be {shape} by its config.json"
            )
        values = self._checkpoint.read(name, self._dtype)
        native.copy_from_host(target, np.ascontiguousarray(values.T if transposed and values.ndim == 2 else values))
        self._done += target.nbytes
        self.bar.update(self._done)
        if self._told is not None:
            self._told(self._done, self._total, name)


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total
