"""Adapters of a model: which of its products each tensor of a LoRA folder is for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float32
from pygpukit.core.errors import InvalidSpecError
from pygpukit.models.convert import convert
from pygpukit.models.heads import halves
from pygpukit.models.peft import LowRank, read_adapter
from pygpukit.nn.linear.adapters import Adapter, Pair
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.loading import TensorShapeError
from pygpukit.nn.mlp import MLP

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.block import TransformerBlock

    Array = np.ndarray[Any, Any]

Names = Mapping[str, Any]  # templates of the tensors of layers by their role, as a ModelSpec has them
_RANKS = 32  # filled up with zeros to a multiple: products want whole packs


class _Place(NamedTuple):
    """Rows first .. first + rows - 1 of a product. paired: heads whose rows files order in pairs, else 0."""

    linear: LinearBF16
    first: int
    rows: int
    paired: int = 0


def load_adapter(
    name: str, folder: str | os.PathLike[str], title: str, names: Names, blocks: Sequence[TransformerBlock]
) -> Adapter:
    """The adapter of a folder on the device of the model that is called title; see model.load_adapter()."""
    places = dict(_places(names, blocks))
    own: dict[LinearBF16, list[tuple[_Place, LowRank]]] = {}
    for module, pair in read_adapter(folder).items():
        place = places.get(module.removeprefix("transformer."))
        if place is None:
            raise InvalidSpecError(
                f"{folder}: the adapter changes {module!r}, which {title} has no product of its layers for; such "
                f"are {', '.join(list(places)[:3])}, ...",
                "target_modules",
            )
        shape = place.rows, place.linear.in_features
        if (len(pair.up), pair.down.shape[1]) != shape:
            raise TensorShapeError(
                f"{folder}: the adapter of {module!r} is for a weight of {(len(pair.up), pair.down.shape[1])}, "
                f"{title} has one of {shape}"
            )
        own.setdefault(place.linear, []).append((place, pair))
    label = f"{title}/adapters.{name}"
    return Adapter(name, {linear: _joined(linear, parts, label) for linear, parts in own.items()})


def _joined(linear: LinearBF16, parts: list[tuple[_Place, LowRank]], label: str) -> Pair:
    """One pair for a product of several weights: their ranks below each other, each for its own rows."""
    import numpy as np

    rank = sum(len(pair.down) for _, pair in parts)
    down = np.zeros((-(-rank // _RANKS) * _RANKS, linear.in_features), np.float32)
    up = np.zeros((linear.out_features, len(down)), np.float32)
    first = 0
    for place, pair in parts:
        end = first + len(pair.down)
        down[first:end] = pair.down
        up[place.first : place.first + place.rows, first:end] = (
            halves(pair.up, place.paired) if place.paired else pair.up
        )
        first = end
    return Pair(_linear(linear, down, f"{label}/down"), _linear(linear, up, f"{label}/up"))


def _linear(base: LinearBF16, values: Array, label: str) -> LinearBF16:
    array = factory.empty(values.shape, base.weight.dtype)
    native.copy_from_host(array, convert(values, float32, base.weight.dtype))
    array.name = label
    return LinearBF16(array)


def _places(names: Names, blocks: Sequence[TransformerBlock]) -> Iterator[tuple[str, _Place]]:
    """The products of all layers by the names of their modules in files."""
    for number, block in enumerate(blocks):
        mlp = _of_mlp(names, block.mlp) if isinstance(block.mlp, MLP) else ()  # experts have none
        for template, place in (*_of_attention(names, block.attn), *mlp):
            yield str(template).format(number).removesuffix(".weight"), place


def _of_attention(names: Names, attn: Attention) -> Iterator[tuple[str | None, _Place]]:
    q, kv = attn.q_dim, attn.k_dim
    if names["qkv_combined"]:
        yield names["q_proj"], _Place(attn.qkv_proj, 0, q + 2 * kv)
    else:
        paired = (attn.num_heads, attn.num_kv_heads) if names["paired_heads"] else (0, 0)
        yield names["q_proj"], _Place(attn.qkv_proj, 0, q, paired[0])
        yield names["k_proj"], _Place(attn.qkv_proj, q, kv, paired[1])
        yield names["v_proj"], _Place(attn.qkv_proj, q + kv, kv)
    yield names["o_proj"], _Place(attn.o_proj, 0, attn.o_proj.out_features)


def _of_mlp(names: Names, mlp: MLP) -> Iterator[tuple[str | None, _Place]]:
    (up, down), size = mlp.linears, mlp.intermediate_size
    if mlp.gate_up_proj is None:
        yield names["fc1"], _Place(up, 0, size)
        yield names["fc2"], _Place(down, 0, down.out_features)
        return
    if names["gate_proj"] == names["up_proj"]:
        yield names["gate_proj"], _Place(up, 0, 2 * size)
    else:
        yield names["gate_proj"], _Place(up, 0, size)
        yield names["up_proj"], _Place(up, size, size)
    yield names["down_proj"], _Place(down, 0, down.out_features)
