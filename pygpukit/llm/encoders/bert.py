"""BERT (Devlin et al. 2018), RoBERTa and XLM-RoBERTa: every token sees all others; norms come after the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pygpukit.ops as ops
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.models.fields import Fields, FieldTable, check_fields
from pygpukit.nn.linear.layer import Epilogue, LinearBF16
from pygpukit.nn.loading import TensorLoader
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.nn.reads import OnProgress

_ACTIVATIONS: dict[str, Epilogue] = {"gelu": "gelu_erf", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu"}
_READ = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act max_position_embeddings "
    "type_vocab_size layer_norm_eps pad_token_id"
)
_FIELDS = FieldTable(
    frozenset(_READ.split()),
    {**LLAMA_FIELDS.neutral, "position_embedding_type": ("absolute",), "is_decoder": (False,)},
    LLAMA_FIELDS.harmless - {"is_decoder", "pad_token_id"}
    | {"attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout", "gradient_checkpointing"},
)
# Heads of other tasks, and numbers that are computed: files have them beside the encoder.
_UNUSED = ("pooler.", "cls.", "lm_head.", "classifier.", "embeddings.position_ids")
_EMBEDDING = "embeddings.word_embeddings.weight"


@dataclass(frozen=True)
class BertConfig:
    """The fields of config.json. positions: tokens that a text can have; first_position: the first one's number."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    activation: Epilogue
    positions: int
    first_position: int
    types: int
    eps: float


def read_config(values: Mapping[str, Any], where: str = "config.json") -> BertConfig:
    """The configuration of an encoder from the fields of its config.json. Raises InvalidSpecError naming the field."""
    kind = str(values.get("model_type"))
    check_fields(values, _FIELDS, where, kind)
    fields = Fields(values, where)

    def need(name: str) -> int:
        value = fields.integer(name)
        if value is None:
            raise fields.missing(f"a {kind} model", name)
        return value

    activation = fields.text("hidden_act") or "gelu"
    if activation not in _ACTIVATIONS:
        raise InvalidSpecError(
            f"{where}: hidden_act is {activation!r}; it can be {' or '.join(_ACTIVATIONS)}", "hidden_act"
        )
    width, heads, positions = need("hidden_size"), need("num_attention_heads"), need("max_position_embeddings")
    if width % heads:
        raise fields.error(f"must divide the {width} of hidden_size", "num_attention_heads")
    first = 0
    if kind != "bert":  # positions are numbered on from the padding's
        padding = fields.integer("pad_token_id", minimum=0)
        first = 2 if padding is None else padding + 1
    if positions <= first:
        raise fields.error(f"must be more than {first}", "max_position_embeddings")
    return BertConfig(
        need("vocab_size"),
        width,
        need("num_hidden_layers"),
        heads,
        need("intermediate_size"),
        _ACTIVATIONS[activation],
        positions - first,
        first,
        fields.integer("type_vocab_size") or 2,
        fields.number("layer_norm_eps") or 1e-12,
    )


@dataclass(frozen=True)
class BertLayer:
    """Attention, then two products with GELU between; each is added to x, and the sum normalised."""

    config: BertConfig
    qkv: LinearBF16
    out: LinearBF16
    attention_norm: Norm
    fc1: LinearBF16
    fc2: LinearBF16
    output_norm: Norm

    def __call__(self, x: GPUArray, count: int, lengths: GPUArray) -> None:
        """x: float32 (texts * count, hidden), written. lengths: int32 (texts,), of each its tokens."""
        rows, width = x.shape
        dtype, heads = self.qkv.weight.dtype, self.config.num_heads
        qkv = native.empty((rows, 3 * width), dtype)
        self.qkv.project(_as(x, dtype), qkv, 0)
        parts = qkv.reshape(rows // count, count, 3, heads, width // heads)
        q, k, v = (parts[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
        seen = ops.sdpa(q, k, v, lengths=lengths).transpose(0, 2, 1, 3).reshape(rows, width)
        self.out.project(seen, x, 0, epilogue="add")
        self.attention_norm(x, out=x)
        between = native.empty((rows, self.config.intermediate_size), dtype)
        self.fc1.project(_as(x, dtype), between, 0, epilogue=self.config.activation)
        self.fc2.project(between, x, 0, epilogue="add")
        self.output_norm(x, out=x)


@dataclass(frozen=True)
class BertEncoder:
    """The embeddings of tokens and places, a norm, and the layers. places: float32 (positions, hidden), with the
    embedding of token type 0 added."""

    config: BertConfig
    words: GPUArray
    places: GPUArray
    norm: Norm
    layers: tuple[BertLayer, ...]

    def __call__(self, ids: GPUArray, lengths: GPUArray) -> GPUArray:
        """float32 (texts, count, hidden) of token ids, int32 (texts, count), of which each text has as many as lengths,
        int32 (texts,), says; what stands behind them is of no effect on it."""
        texts, count = ids.shape
        x = ops.add(_as(ops.embedding(self.words, ids), self.places.dtype), self.places[:count])
        x = x.reshape(texts * count, self.config.hidden_size)
        self.norm(x, out=x)
        for layer in self.layers:
            layer(x, count, lengths)
        return x.reshape(texts, count, self.config.hidden_size)


class BertLoader(TensorLoader):
    """Reads one checkpoint into an encoder."""

    def __init__(
        self, checkpoint: Checkpoint, config: BertConfig, dtype: str, title: str, progress: bool | OnProgress
    ) -> None:
        self._config = config
        prefixes = [name.removesuffix(_EMBEDDING) for name in checkpoint.names() if name.endswith(_EMBEDDING)]
        prefix = min(prefixes, key=len, default="")
        _check_names(checkpoint.names(), prefix, config.num_layers, title)
        super().__init__(checkpoint, dtype, title, progress, prefix=prefix, what="BERT encoder")

    def encoder(self) -> BertEncoder:
        """The whole encoder."""
        config = self._config
        width, place = config.hidden_size, "embeddings"
        words = self.table(_EMBEDDING, f"{place}/words", (config.vocab_size, width))
        rows = config.first_position + config.positions
        places = self.table(f"{place}.position_embeddings.weight", f"{place}/places", (rows, width))
        types = self.table(f"{place}.token_type_embeddings.weight", f"{place}/types", (config.types, width))
        norm = self._norm(f"{place}.LayerNorm", f"{place}/norm")
        layers = tuple(self._layer(number) for number in range(config.num_layers))
        self._reads.wait()  # the sum reads what has come
        total = ops.add(places[config.first_position :].astype("float32"), types[0].astype("float32"))
        return BertEncoder(config, words, total, norm, layers)

    def _layer(self, number: int) -> BertLayer:
        begin, place = f"encoder.layer.{number}", f"layers.{number:02d}"
        width, inner = self._config.hidden_size, self._config.intermediate_size

        def linear(label: str, columns: int, rows: int, *tensors: str) -> LinearBF16:
            parts = [(f"{begin}.{tensor}.weight", f"{begin}.{tensor}.bias", rows) for tensor in tensors]
            return self.linear(f"{place}/{label}", columns, [*parts])

        return BertLayer(
            self._config,
            linear("qkv", width, width, *(f"attention.self.{part}" for part in ("query", "key", "value"))),
            linear("o", width, width, "attention.output.dense"),
            self._norm(f"{begin}.attention.output.LayerNorm", f"{place}/attention_norm"),
            linear("fc1", width, inner, "intermediate.dense"),
            linear("fc2", inner, width, "output.dense"),
            self._norm(f"{begin}.output.LayerNorm", f"{place}/output_norm"),
        )

    def _norm(self, tensor: str, label: str) -> Norm:
        names = ("gamma", "beta") if self.has(f"{tensor}.gamma") else ("weight", "bias")  # the first files' names
        scale, shift = (f"{tensor}.{name}" for name in names)
        return self.norm_of(scale, shift, label, self._config.hidden_size, "layernorm", self._config.eps)


def _check_names(names: tuple[str, ...], prefix: str, layers: int, title: str) -> None:
    """Raises InvalidSpecError for a tensor that the encoder would not use."""
    numbers = {str(number) for number in range(layers)}
    for name in names:
        own = name.removeprefix(prefix)
        is_layer = own.startswith("encoder.layer.") and own.split(".")[2] in numbers
        is_table = own.startswith("embeddings.") and own.split(".")[1] in _TABLES
        if not (name.startswith(prefix) and (is_layer or is_table)) and not own.startswith(_UNUSED):
            raise InvalidSpecError(
                f"{title}: a BERT encoder with this configuration has no use for the tensor {name!r}, so the file is "
                "of another model, or its config.json is",
                name,
            )


_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")


def _as(x: GPUArray, dtype: Any) -> GPUArray:
    return x if x.dtype == dtype else x.astype(dtype)
