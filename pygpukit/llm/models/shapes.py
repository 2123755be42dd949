"""The fields of a config.json that a model lacks, by the names and shapes of its tensors."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygpukit.core.backend import frames_inside_package
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models.architecture import Architecture
from pygpukit.llm.models.tensors import prefix_of

if TYPE_CHECKING:
    from pygpukit.models.checkpoint import Checkpoint

_PLAIN = ("llama", "qwen2", "qwen3", "gpt2")  # what computes with nothing but sizes and a few constants
_HEADS = (128, 64, 256)  # elements of a head, the likeliest first
_GPT2_HEADS = (64,)  # of all sizes that there are
_MIN_HEADS, _MAX_HEADS = 4, 128  # heads of a model
_POSITIONS = 2048
_HEAD_COUNT, _KV_COUNT = "num_attention_heads", "num_key_value_heads"


def fields_of(
    architecture: Architecture, checkpoint: Checkpoint, config: Mapping[str, Any], title: str
) -> dict[str, Any]:
    """The fields of config.json by the shapes of a model's tensors; those of config count first.

    Sizes, the number of layers and biases are in the shapes. The elements of a head are where heads have norms or
    frequencies of their own; else the first of 128, 64 and 256 that divides queries, keys and width into 4 to 128
    heads, and with the constants that no shape has they are told in a warning. Raises InvalidSpecError for what cannot
    be found, naming the field to give.
    """
    if "model_type" not in config and architecture.name not in _PLAIN:
        raise InvalidSpecError(
            f"{title}: it has no config.json, which models of the type {architecture.name} need: put it beside the "
            "weights",
            "model_type",
        )
    names, weights = set(checkpoint.names()), architecture.weights
    prefix = prefix_of(architecture, names)

    def shape(role: str, layer: int = 0) -> tuple[int, ...] | None:
        name = prefix + weights[role].format(layer) if role in weights else None
        return checkpoint.shape(name) if name in names else None

    def rows(role: str) -> int | None:
        """Of a weight that is (out, in)."""
        extents = shape(role)
        if extents is None or len(extents) != 2:
            return None
        return extents[1 if architecture.transposed else 0]

    table = shape("embed_tokens")
    if table is None or len(table) != 2:
        raise InvalidSpecError(
            f"{title}: it has no config.json, and no table of embeddings {weights['embed_tokens']!r} that tells its "
            "width; give config={...} with the fields of config.json",
            "config",
        )
    query = "qkv_proj" if "qkv_proj" in weights else "q_proj"
    layers = 0
    while shape(query, layers) is not None:
        layers += 1
    vocabulary, width = table
    inner = next((rows(role) for role in ("gate_proj", "fc1") if rows(role) is not None), None)
    taken: dict[str, Any] = {"model_type": architecture.name}
    fields: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "n_inner" if "n_inner" in architecture.fields.read else "intermediate_size": inner,
        "tie_word_embeddings": shape("lm_head") is None,
        "attention_bias": any(shape(f"{part}_bias") is not None for part in "qkvo"),
        "mlp_bias": any(shape(f"{part}_bias") is not None for part in ("gate", "up", "down")),
    }
    positions = shape("position_embed")
    if positions is not None:
        fields["max_position_embeddings"] = positions[0]
    else:
        taken["max_position_embeddings"] = _POSITIONS
    if architecture.use_rope:
        taken["rope_theta"] = architecture.rope_theta
    read = architecture.fields.read
    taken |= {name: architecture.norm_eps for name in ("rms_norm_eps", "layer_norm_epsilon") if name in read}
    queries, keys = rows("q_proj"), rows("k_proj")
    if query == "qkv_proj":
        queries = keys = width if rows(query) == 3 * width else None
    sizes = _HEADS if architecture.use_rope else _GPT2_HEADS
    heads, sure = _head_size(shape("q_norm"), config, width, queries, keys, sizes)
    if heads is None and _HEAD_COUNT not in config:
        raise InvalidSpecError(
            f"{title}: it has no config.json, and its shapes do not say how many heads its {queries or width} numbers "
            f'of queries are; give config={{"{_HEAD_COUNT}": ...}}',
            _HEAD_COUNT,
        )
    if heads is not None and queries is not None and keys is not None:
        counts = {_HEAD_COUNT: queries // heads, _KV_COUNT: keys // heads, "head_dim": heads}
        (fields if sure else taken).update({name: value for name, value in counts.items() if name in read})
    stated = {name: value for name, value in taken.items() if name not in config}
    if stated:
        said = ", ".join(f"{name} {value}" for name, value in stated.items())
        warnings.warn(
            f"{title}: it has no config.json, and its shapes do not say all: {said} are taken; give "
            f"config={reprlib.repr(dict(list(stated.items())[-1:]))} and so on where the model has others",
            stacklevel=frames_inside_package(),
        )
    return {name: value for name, value in {**taken, **fields}.items() if name in read or name == "model_type"} | dict(
        config
    )


def _head_size(
    norm: tuple[int, ...] | None,
    config: Mapping[str, Any],
    width: int,
    queries: int | None,
    keys: int | None,
    sizes: tuple[int, ...],
) -> tuple[int | None, bool]:
    """(elements of a head, whether that is sure); None where nothing tells."""
    if queries is None or keys is None:
        return None, False
    for name, total in (("head_dim", 0), (_HEAD_COUNT, queries), (_KV_COUNT, keys)):
        value = config.get(name)
        if type(value) is int and value > 0:
            size = value if not total else total // value
            return (size, True) if size and not (queries % size or keys % size) else (None, False)
    if norm is not None and len(norm) == 1 and norm[0] < queries:
        return norm[0], True
    for size in sizes:
        if not (queries % size or keys % size or width % size) and _MIN_HEADS <= queries // size <= _MAX_HEADS:
            return size, False
    return None, False
