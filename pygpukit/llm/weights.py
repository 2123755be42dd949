"""Models from checkpoints: each tensor read, converted on the host, and copied to its place on the device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import DTypeError, InvalidSpecError, ModelFileError
from pygpukit.core.extras import require
from pygpukit.kernels.needed import Coming
from pygpukit.llm.engine.room import bytes_or_share, check_kept, check_room
from pygpukit.llm.layer_weights import LayerWeights
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.models import (
    MODEL_SPECS,
    Architecture,
    ModelSpec,
    architecture_of,
    biases,
    check_tensors,
    prefix_of,
    read_config,
)
from pygpukit.llm.models.shapes import fields_of
from pygpukit.llm.models.spec import spec_from
from pygpukit.llm.replaced import operations_for, replace_in
from pygpukit.models.heads import halves
from pygpukit.models.quantised.quantise import NAMES, QuantisingCheckpoint
from pygpukit.models.tokenizer.ending import generation_of
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.kv_cache import check_kv_dtype
from pygpukit.nn.linear.blocks import stored_of
from pygpukit.nn.loading import TensorLoader
from pygpukit.nn.norm import Norm
from pygpukit.nn.reads import are_read
from pygpukit.nn.streaming import SLOTS, LayerStreaming, aligned, device_bytes, streamed_layers
from pygpukit.plugins.replace import Choice, resolved

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.block import Layer
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.reads import OnProgress

TYPES = ("float32", "float16", "bfloat16")


def load(
    model: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    context: int | None = None,
    slots: int = 1,
    kv_memory: str | SupportsIndex | None = None,
    kv_dtype: str | None = None,
    name: str | None = None,
    spec: ModelSpec | None = None,
    progress: bool | OnProgress = True,
    revision: str | None = None,
    quantize: str | None = None,
    activations: str | None = None,
    config: Mapping[str, Any] | None = None,
    replace: Choice | None = None,
    weights_memory: str | SupportsIndex | None = None,
) -> CausalTransformerModel:
    """A language model by name ("smollm2-135m-instruct"), folder, .safetensors or .gguf file, on the current device.

    Or by its owner and name on the Hugging Face hub: "Qwen/Qwen2.5-0.5B-Instruct", with a file where it has several:
    "owner/name:Q4_K_M"; revision: of that, a branch, a tag or a commit.

    dtype: of weights and cache; bfloat16 on a GPU and float32 on the simulation by default. context: positions of a
    sequence, at most and by default the model's own, on the simulation 4096. slots: contexts that the KV cache has room
    for, which any number of shorter sequences share; kv_memory: its size in their place, as bytes, "2GB" or a share of
    the device's memory, "40%". kv_dtype: "fp8", to keep keys and values in 8 bits with a scale for each head of each
    position; by default dtype. name: what its memory and launches are called. progress: a bar, or a function (bytes
    done, bytes in all, tensor). quantize: "int8", "int4" or "fp8", to round the weights of products to, but for those
    that the file has in few bits; model.quantisation_errors tells what that changes of each, model.text_error() what of
    a text. activations: "int8", for a folder whose weights are int8 and whose quantization_config has the rows of their
    products rounded to int8, too (compressed-tensors' int-quantized): products of int8, which sum exactly; by default
    such weights are multiplied with rows of dtype. config: fields of config.json that count before the model's own; of
    a model without a config.json what its shapes do not say, such as {"num_attention_heads": 32, "rope_theta":
    500000.0}. replace: operations of plugins in the place of the model's norms, as gp.plugins.replace() takes them:
    "triton", or {"rmsnorm": "NAME"}. weights_memory: of the device for weights, given as kv_memory is: where they are
    more, the products' weights of as many layers as it takes stay in pinned host memory, and are copied while the
    layers before them compute; no token changes.

    Raises ValueError for another quantize or activations, ModelNotFoundError, ModelFileError, OutOfMemoryError;
    InvalidSpecError for an architecture that is not there, activations that the files do not have, a weights_memory
    that the rest and the layers under way do not fit into, and before any file is read for a context or slots below 1,
    for another kv_dtype and for what is no size; PluginError for a plugin that cannot be used. Raises
    ModuleNotFoundError where the extra `models` is missing, before anything is fetched or placed.
    """
    from pygpukit.models.checkpoint import open_checkpoint

    if dtype is not None and dtype not in TYPES:
        raise DTypeError(f"load: dtype is {dtype!r}, must be {', '.join(TYPES)}")
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"load: model={model!r}; give a name, or the path of a folder or file")
    check_room(context, slots, kv_memory)
    check_kv_dtype(kv_dtype)
    _check_quantize(quantize, activations)
    if replace is not None:
        resolved(replace)
    _budget(weights_memory)
    if not Path(model).expanduser().exists():  # a name: before anything is fetched
        require("models", "a language model", "tokenizers", "jinja2")
    coming = Coming(str(model))
    checkpoint = open_checkpoint(model, progress=bool(progress), revision=revision)
    try:
        loaded = from_checkpoint(
            checkpoint,
            dtype=dtype,
            context=context,
            slots=slots,
            kv_memory=kv_memory,
            kv_dtype=kv_dtype,
            name=name,
            spec=spec,
            progress=progress,
            quantize=quantize,
            activations=activations,
            config=config,
            replace=replace,
            weights_memory=weights_memory,
        )
        coming.wait(progress is True)
        if quantize is not None:
            loaded.load_reference = lambda: load(
                model, dtype=loaded.dtype, context=loaded.context, name=f"{loaded.name}-whole", spec=spec,
                progress=False, revision=revision, config=config, weights_memory=weights_memory,
            )  # fmt: skip
        return loaded
    finally:
        checkpoint.close()


def from_checkpoint(
    checkpoint: Checkpoint,
    *,
    dtype: str | None = None,
    context: int | None = None,
    slots: int = 1,
    kv_memory: str | SupportsIndex | None = None,
    kv_dtype: str | None = None,
    name: str | None = None,
    spec: ModelSpec | None = None,
    progress: bool | OnProgress = False,
    quantize: str | None = None,
    activations: str | None = None,
    config: Mapping[str, Any] | None = None,
    replace: Choice | None = None,
    weights_memory: str | SupportsIndex | None = None,
) -> CausalTransformerModel:
    """load() from a checkpoint that is open already; it stays open."""
    _check_quantize(quantize, activations)
    budget = _budget(weights_memory)
    title = name or checkpoint.name
    where = f"{title}: config.json"
    fields = {**checkpoint.config, **(config or {})}
    architecture = architecture_of(fields.get("model_type"), checkpoint.names(), spec)
    if not checkpoint.config:
        fields = fields_of(architecture, checkpoint, config or {}, title)
    shape = read_config(architecture, fields, where)
    check_kept(shape, kv_dtype)
    operations = operations_for(replace, shape.norm_type, title)
    check_tensors(architecture, shape, checkpoint.names(), biases(architecture, fields, where), title)
    if activations is not None:
        _check_activations(checkpoint, shape, title)
    if dtype is None:
        dtype = "float32" if is_sim() else "bfloat16"
    if context is None and is_sim():
        context = 4096
    tokenizer, problem = _tokenizer(checkpoint)  # before anything is on the device
    rounded = None if quantize is None else QuantisingCheckpoint(checkpoint, quantize)
    loader = Loader(rounded or checkpoint, architecture, shape, dtype, title, progress, activations == "int8")
    streamed = [] if budget is None else loader.streamed_layers(budget)
    with loader:
        model = loader.model(tokenizer, context, slots, spec, kv_memory, kv_dtype, streamed, budget)
    replace_in(model, operations)
    model.tokenizer_problem, model.expanded, model.reordered = problem, loader.expanded, loader.reordered
    model.quantisation_errors = {} if rounded is None else dict(sorted(rounded.errors.items()))
    return model


def _check_quantize(quantize: str | None, activations: str | None) -> None:
    if activations not in (None, "int8"):
        raise ValueError(f"activations={activations!r}; give 'int8' or None")
    if quantize is not None and quantize not in NAMES:
        raise ValueError(f"quantize={quantize!r}; give {', '.join(map(repr, NAMES))} or None")


def _check_activations(checkpoint: Checkpoint, shape: TransformerConfig, title: str) -> None:
    """Raises InvalidSpecError for a model without products of int8."""
    rows = (checkpoint.stored(name) for name in checkpoint.names())
    if shape.num_experts or not any(one is not None and one.int8 is not None for one in rows):
        what = "is a mixture of experts" if shape.num_experts else "has no such weights"
        raise InvalidSpecError(
            f"{title}: activations='int8' needs weights of int8 with a scale a row, and a quantization_config that has "
            f"activations rounded to int8 without zero points, by token or by one scale; this model {what}; load it "
            "without activations=",
            "activations",
        )


def _budget(weights_memory: str | SupportsIndex | None) -> int | None:
    """Bytes of the device for weights; None for as many as it takes."""
    return (
        None
        if weights_memory is None
        else bytes_or_share(weights_memory, device.get_memory_info()[1], "weights_memory")
    )


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
    """Reads one checkpoint into the layers that its architecture and configuration say."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        architecture: Architecture,
        config: TransformerConfig,
        dtype: str,
        title: str,
        progress: bool | OnProgress,
        rounds: bool = False,
    ) -> None:
        self.architecture, self.config = architecture, config
        super().__init__(
            checkpoint,
            dtype,
            title,
            progress,
            prefix=prefix_of(architecture, checkpoint.names()),
            transposed=architecture.transposed,
            what=architecture.name,
            keeps=True,
            rounds=rounds,
        )

    def model(
        self,
        tokenizer: Tokenizer | None,
        context: int | None,
        slots: int,
        spec: ModelSpec | None = None,
        kv_memory: str | SupportsIndex | None = None,
        kv_dtype: str | None = None,
        streamed: Sequence[int] = (),
        budget: int | None = None,
    ) -> CausalTransformerModel:
        """The whole model. streamed: the layers whose weights are to stay on the host, and more where budget asks."""
        weights, config = self.architecture.weights, self.config
        width, positions = config.hidden_size, weights.get("position_embed")
        embed = self.rows(weights["embed_tokens"], "embed_tokens", (config.vocab_size, width))
        learned = None
        if positions is not None:
            learned = self.table(positions, "position_embed", (config.max_position_embeddings, width))
        norm = self.norm(weights["final_norm"], weights.get("final_norm_bias"), "final_norm", width)
        head, blocks = self._lm_head(), []
        streaming = None if budget is None else LayerStreaming()
        for number in range(config.num_layers):
            blocks.append(self._block(number, streaming if number in streamed else None))
        if streaming is not None and budget is not None:
            self._fit(streaming, blocks, budget)
            streaming.place(self._title)
        return CausalTransformerModel(
            config,
            embed,
            blocks,
            norm,
            head,
            learned,
            spec or MODEL_SPECS.get(self.architecture.name) or spec_from(self.architecture),
            name=self._title,
            tokenizer=tokenizer,
            generation=generation_of(self._checkpoint, config.vocab_size),
            context=context,
            slots=slots,
            kv_memory=kv_memory,
            kv_dtype=kv_dtype,
            streaming=streaming if streaming and streaming.numbers else None,
        )

    def streamed_layers(self, budget: int) -> list[int]:
        """The layers that have to stream, by the sizes of their tensors. Raises InvalidSpecError where that is not
        enough, before anything is read."""
        tensors = [self._products_of(number) for number in range(self.config.num_layers)]
        sizes = [sum(map(aligned, layer)) for layer in tensors]
        others = self._total - sum(map(sum, tensors))
        streamed = streamed_layers(sizes, others, budget)
        if streamed is None:
            raise self._too_small(budget, device_bytes(sizes, others, range(len(sizes))))
        return streamed

    def _products_of(self, number: int) -> list[int]:
        """Bytes of each tensor of a layer that products read."""
        experts = range(self.config.num_experts or 1)
        names = {
            self._prefix + template.format(number, expert)
            for role, template in self.architecture.weights.items()
            if template is not None and "{}" in template and role != "moe_gate" and not role.endswith("_bias")
            for expert in experts
        }
        return [self._size(name) for name in names & self._names if len(self._checkpoint.shape(name)) > 1]

    def _block(self, number: int, streaming: LayerStreaming | None = None) -> Layer:
        """A layer. streaming: where its products' weights are to stay on the host."""
        layer = LayerWeights(self, self.architecture, self.config, number)
        counted = self.placed, dict(self.expanded), self.reordered
        with self._reads.collecting() as reads:
            block = self.architecture.block(layer)
        if are_read((array for linear in block.linears for array in stored_of(linear.weight)), reads):
            copy = None if streaming is None else streaming.hold(number, block)
            for read in reads:
                self._reads.begin(read, None if copy is None else copy.of(read.target))
            return block
        self.placed, self.expanded, self.reordered = counted
        with self._reads.at_once():  # the architecture computes with the weights: it joins some
            block = self.architecture.block(layer)
        if streaming is not None:
            streaming.fetch(streaming.hold(number, block))
        return block

    def _fit(self, streaming: LayerStreaming, blocks: Sequence[Layer], budget: int) -> None:
        """Let more layers stream where what was placed is more than the files' tensors are."""
        self._reads.wait()
        for number, block in enumerate(blocks):
            if self._placed(streaming) > budget and number not in streaming.numbers:
                streaming.fetch(streaming.hold(number, block))
        if self._placed(streaming) > budget:
            raise self._too_small(budget, self._placed(streaming))

    def _placed(self, streaming: LayerStreaming) -> int:
        return self.placed - streaming.nbytes + streaming.slot_bytes

    def _too_small(self, budget: int, needed: int) -> InvalidSpecError:
        return InvalidSpecError(
            f"weights_memory={budget} is too small for {self._title}: embedding, logits, norms and {SLOTS} layers "
            f"take {needed} bytes; give as much, or quantize=",
            "weights_memory",
        )

    def _ordered(self, name: str, values: Any) -> Any:
        """Rows of q and k for rope on halves."""
        for role, heads in (("q", self.config.num_heads), ("k", self.config.kv_heads)):
            if self.architecture.paired_heads and f".{role}_proj." in name:
                return halves(values, heads)
        return values

    def norm(self, weight: str, bias: str | None, label: str, size: int) -> Norm:
        """A norm of rows of that size."""
        config, offset = self.config, self.architecture.norm_offset
        return self.norm_of(weight, bias, label, size, config.norm_type, config.norm_eps, offset)

    def _lm_head(self) -> GPUArray | Blocks | None:
        """The weight of the logits; None where it is the embedding's."""
        tensor, embedding = self.architecture.weights.get("lm_head"), self.architecture.weights["embed_tokens"]
        if tensor is None or self.config.tie_word_embeddings:
            if self.has(tensor) and not self.same(embedding, str(tensor)):
                raise InvalidSpecError(
                    f"{self._title}: config.json says that {tensor!r} is the embedding, by tie_word_embeddings, but "
                    "the file has two different ones",
                    "tie_word_embeddings",
                )
            return None
        return self.rows(tensor, "lm_head", (self.config.vocab_size, self.config.hidden_size))
