"""Models from checkpoints: each tensor read, converted on the host, and copied to its place on the device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pygpukit.core.backend import is_sim
from pygpukit.core.errors import DTypeError, InvalidSpecError, ModelFileError
from pygpukit.core.extras import require
from pygpukit.kernels.needed import Coming
from pygpukit.llm.model import CausalTransformerModel, check_room
from pygpukit.llm.models import ModelSpec, biases, check_tensors, prefix_of, read_config, spec_of
from pygpukit.models.tokenizer.ending import generation_of
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.loading import TensorLoader
from pygpukit.nn.mlp import MLP
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.loading import Told

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

    Raises ModelNotFoundError, ModelFileError, OutOfMemoryError; InvalidSpecError for an architecture that is not there,
    and before any file is read for a context or slots below 1. Raises ModuleNotFoundError where the extra `models` is
    missing, before anything is fetched or placed.
    """
    from pygpukit.models.checkpoint import open_checkpoint

    if dtype is not None and dtype not in TYPES:
        raise DTypeError(f"load: dtype is {dtype!r}, must be {', '.join(TYPES)}")
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"load: model={model!r}; give a name, or the path of a folder or file")
    check_room(context, slots)
    if not Path(model).expanduser().exists():  # a name: before anything is fetched
        require("models", "a language model", "tokenizers", "jinja2")
    coming = Coming(str(model))
    checkpoint = open_checkpoint(model)
    try:
        made = from_checkpoint(
            checkpoint, dtype=dtype, context=context, slots=slots, name=name, spec=spec, progress=progress
        )
        coming.wait(progress is True)
        return made
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
    title = name or checkpoint.name
    where = f"{title}: config.json"
    spec = spec or spec_of(checkpoint.config.get("model_type"), checkpoint.names())
    config = read_config(spec, checkpoint.config, where)
    check_tensors(spec, config, checkpoint.names(), biases(spec, checkpoint.config, where), title)
    if dtype is None:
        dtype = "float32" if is_sim() else "bfloat16"
    if context is None and is_sim():
        context = 4096
    tokenizer, problem = _tokenizer(checkpoint)  # before anything is on the device
    loader = Loader(checkpoint, spec, config, dtype, title, progress)
    with loader:
        made = loader.model(tokenizer, context, slots)
    made.tokenizer_problem = problem
    return made


def _tokenizer(checkpoint: Checkpoint) -> tuple[Tokenizer | None, str]:
    """The model's tokenizer; None for a model without one that can be read, and why.

    Raises ModuleNotFoundError for a library that it needs.
    """
    try:
        tokenizer = checkpoint.tokenizer()
    except ModelFileError as error:
        return None, str(error)
    if tokenizer.chat_template is not None:
        require("models", "a chat template", "jinja2")
    return tokenizer, ""


class Loader(TensorLoader):
    """Reads one checkpoint into the layers that a spec and a configuration say."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        spec: ModelSpec,
        config: TransformerConfig,
        dtype: str,
        title: str,
        progress: bool | Told,
    ) -> None:
        self._spec, self._config = spec, config
        prefix = prefix_of(spec, checkpoint.names())
        super().__init__(
            checkpoint,
            dtype,
            title,
            progress,
            prefix=prefix,
            transposed=spec.weight_transpose,
            what=spec.name,
            keeps=True,
        )

    def model(self, tokenizer: Tokenizer | None, context: int | None, slots: int) -> CausalTransformerModel:
        """The whole model."""
        spec, config = self._spec, self._config
        table = config.vocab_size, config.hidden_size
        positions = config.max_position_embeddings, config.hidden_size
        embed = self.rows(spec.embed_tokens, "embed_tokens", table)
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
            tokenizer=tokenizer,
            generation=generation_of(self._checkpoint, config.vocab_size),
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
        attention = Attention(qkv, None, None, out, config, q_norm=q_norm, k_norm=k_norm, layer=number)
        inner = config.ffn_size
        if spec.gate_proj is not None:
            gates = (spec.gate_proj, spec.gate_bias, inner), (spec.up_proj, spec.up_bias, inner)
            down = linear("down", inner, (spec.down_proj, spec.down_bias, width))
            mlp = MLP(config, gate_proj=linear("gate_up", width, *gates), down_proj=down)
        else:
            fc1 = linear("fc1", width, (spec.fc1, spec.fc1_bias, inner))
            fc2 = linear("fc2", inner, (spec.fc2, spec.fc2_bias, width))
            mlp = MLP(config, fc1.weight, fc1.bias, fc2.weight, fc2.bias)
        attn_norm = norm(spec.attn_norm, spec.attn_norm_bias, "attn_norm")
        return TransformerBlock(attn_norm, attention, norm(spec.mlp_norm, spec.mlp_norm_bias, "mlp_norm"), mlp)

    def norm(self, weight: str, bias: str | None, label: str, size: int) -> Norm:
        """A norm of rows of that size."""
        return self.norm_of(weight, bias, label, size, self._config.norm_type, self._config.norm_eps)

    def head(self) -> GPUArray | Blocks | None:
        """The weight of the logits; None where it is the embedding's."""
        tensor = self._spec.lm_head
        if tensor is None or self._config.tie_word_embeddings:
            if self.has(tensor) and not self.same(self._spec.embed_tokens, str(tensor)):
                raise InvalidSpecError(
                    f"{self._title}: config.json says that {tensor!r} is the embedding, by tie_word_embeddings, but "
                    "the file has two different ones",
                    "tie_word_embeddings",
                )
            return None
        return self.rows(tensor, "lm_head", (self._config.vocab_size, self._config.hidden_size))
