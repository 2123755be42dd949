"""Models from checkpoints: each tensor read, converted on the host, and copied to its place on the device."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import DTypeError, InvalidSpecError, ModelFileError
from pygpukit.core.extras import require
from pygpukit.kernels.needed import Coming
from pygpukit.llm.engine.room import bytes_or_share, check_kept, check_room
from pygpukit.llm.loader import Loader
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.models import (
    MODEL_SPECS,
    ModelSpec,
    architecture_of,
    biases,
    check_tensors,
    is_known,
    read_config,
)
from pygpukit.llm.models.shapes import fields_of
from pygpukit.llm.models.spec import spec_from
from pygpukit.llm.parallel import Devices, Places, check_several, loaded_by, places_of, read_parts
from pygpukit.llm.replaced import operations_for, replace_in
from pygpukit.models.quantised.quantise import NAMES, QuantisingCheckpoint
from pygpukit.models.text_part import TextPart, has_text_part
from pygpukit.models.tokenizer.ending import generation_of
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.kv_cache import check_kv_dtype
from pygpukit.plugins.replace import Choice, resolved

if TYPE_CHECKING:
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.reads import OnProgress
    from pygpukit.nn.transformer import Transformer

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
    devices: Devices | None = None,
    parallel: str = "tensor",
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
    layers before them compute; no token changes. devices: over how many to divide the model, or a list of their
    numbers; by default it is on the current device. parallel: "tensor", each has a part of every layer, or "pipeline",
    some of the layers.

    Raises ValueError for another quantize or activations, ModelNotFoundError, ModelFileError, OutOfMemoryError;
    InvalidSpecError for an architecture that is not there, activations that the files do not have, a weights_memory
    that the rest and the layers under way do not fit into, and before any file is read for a context or slots below 1,
    for another kv_dtype and for what is no size, and for a model that does not divide over devices, before its weights
    are read; DeviceMismatchError for a device that there is not; PluginError for a plugin that cannot be used. Raises
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
    places = places_of(devices, parallel)
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
            places=places,
        )
        coming.wait(progress is True)
        if quantize is not None:
            loaded.load_reference = lambda: load(
                model, dtype=loaded.dtype, context=loaded.context, name=f"{loaded.name}-whole", spec=spec,
                progress=False, revision=revision, config=config, weights_memory=weights_memory, devices=devices,
                parallel=parallel,
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
    places: Places = Places(),  # noqa: B008 - nothing of it can be changed
) -> CausalTransformerModel:
    """load() from a checkpoint that is open already; it stays open."""
    check_room(context, slots, kv_memory)
    _check_quantize(quantize, activations)
    budget = _budget(weights_memory)
    if has_text_part(checkpoint.config) and not is_known(checkpoint.config.get("model_type")):
        checkpoint = TextPart(checkpoint)
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
    source, rounds = rounded or checkpoint, activations == "int8"
    read = partial(Loader, architecture=architecture, dtype=dtype, title=title, progress=progress, rounds=rounds)
    positions = None if context is None else operator.index(context)
    network: Transformer
    with places.at_home():
        if places.several:
            check_several(title, activations=activations, weights_memory=weights_memory, replace=replace)
            network, loaders = read_parts(source, architecture, shape, places, positions, read)
        else:
            loader = read(source, config=shape)
            streamed = [] if budget is None else loader.streamed_layers(budget)
            with loader:
                network = loader.network(positions, streamed, budget)
            loaders = [loader]
        model = CausalTransformerModel.over(
            network,
            spec or MODEL_SPECS.get(architecture.name) or spec_from(architecture),
            name=title,
            tokenizer=tokenizer,
            generation=generation_of(checkpoint, shape.vocab_size),
            slots=slots,
            kv_memory=kv_memory,
            kv_dtype=kv_dtype,
        )
    replace_in(model, operations)
    model.tokenizer_problem, model.expanded, model.reordered = problem, *loaded_by(loaders)
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
