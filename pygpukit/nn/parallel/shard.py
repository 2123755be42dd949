"""Shard: which numbers of a model one of several devices has, and over how many devices a model divides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from pygpukit.core.errors import InvalidSpecError

if TYPE_CHECKING:
    from pygpukit.nn.config import TransformerConfig

Way: TypeAlias = Literal["tensor", "pipeline"]
WAYS: tuple[Way, ...] = get_args(Way)
_EACH = 8  # numbers that a device's part of a product's inputs is a multiple of: kernels read 16 bytes at a time
_MAX_DEVICES = 64  # devices that are tried for an error
VOCABULARY = ("embed_tokens", "lm_head")


class Cut(NamedTuple):
    """The parts of a tensor (out, in) or (experts, out, in): along `out`, or along `in` where is_inner."""

    parts: tuple[slice, ...]
    is_inner: bool = False


@dataclass(frozen=True)
class Shard:
    """Device `index` of `size`. way: "tensor", a part of every layer, or "pipeline", some of the layers whole."""

    index: int
    size: int
    way: Way = "tensor"

    def own(self, total: int) -> slice:
        """Its part of so many."""
        return slice(self.index * total // self.size, (self.index + 1) * total // self.size)

    def layers(self, config: TransformerConfig) -> range:
        """Its layers."""
        count = config.num_layers
        return range(count)[self.own(count)] if self.way == "pipeline" else range(count)

    def config(self, config: TransformerConfig) -> TransformerConfig:
        """The configuration of its part; num_layers stays that of the model, since layers are asked for by number."""
        rows = self.own(config.vocab_size)
        vocabulary = rows.stop - rows.start
        if self.way == "pipeline":
            return replace(config, vocab_size=vocabulary, _head_dim=config.head_dim)
        return replace(
            config,
            vocab_size=vocabulary,
            num_heads=config.num_heads // self.size,
            num_kv_heads=max(config.kv_heads // self.size, 1),
            _head_dim=config.head_dim,
            intermediate_size=config.ffn_size // (self.size if _has_mlp(config) else 1),
            moe_intermediate_size=config.expert_size // self.size,
        )

    def cut(self, role: str, config: TransformerConfig, interleaved: bool = False) -> Cut | None:
        """The part of a tensor of that role; None for all of it. interleaved: rows of stacked gates and ups lie in
        turn."""
        if role in VOCABULARY:
            return Cut((self.own(config.vocab_size),))
        if self.way == "pipeline":
            return None
        dim = config.head_dim
        heads = self._scaled(config.num_heads, dim)
        keys = slice(self._key_heads(config).start * dim, self._key_heads(config).stop * dim)
        inner, expert = self.own(config.ffn_size), self.own(config.expert_size)
        q, kv = config.num_heads * dim, config.kv_heads * dim
        outer: dict[str, tuple[slice, ...]] = {
            "q": (heads,),
            "k": (keys,),
            "v": (keys,),
            "qkv": (heads, _moved(keys, q), _moved(keys, q + kv)),
            "sinks": (self.own(config.num_heads),),
            **dict.fromkeys(("gate", "up", "fc1"), (inner,)),
            "gate_up": (inner, _moved(inner, config.ffn_size)),
            **dict.fromkeys(("expert_gate", "expert_up", "shared_gate", "shared_up"), (expert,)),
            "experts_gate_up": (self._scaled(config.expert_size, 2),)
            if interleaved
            else (expert, _moved(expert, config.expert_size)),
        }
        inwards = {
            "o": heads,
            **dict.fromkeys(("down", "fc2"), inner),
            **dict.fromkeys(("expert_down", "experts_down", "shared_down"), expert),
        }
        name = role.removesuffix("_proj").removesuffix("_bias")
        if name in outer:
            return Cut(outer[name])
        return Cut((inwards[name],), is_inner=True) if name in inwards and not role.endswith("_bias") else None

    def has(self, role: str) -> bool:
        """False for what is added once, to the first device's sums: biases of products whose inputs are divided, and
        learned positions."""
        name = role.removesuffix("_bias")
        once = role == "position_embed" or (
            self.way == "tensor" and name != role and name in ("o", "down", "fc2", "expert_down", "experts_down")
        )
        return self.index == 0 or not once

    def _key_heads(self, config: TransformerConfig) -> slice:
        """Its key heads: where they are fewer than devices several have the same one."""
        if config.kv_heads >= self.size:
            return self.own(config.kv_heads)
        first = self.index * config.kv_heads // self.size
        return slice(first, first + 1)

    def _scaled(self, total: int, each: int) -> slice:
        own = self.own(total)
        return slice(own.start * each, own.stop * each)


def check_division(config: TransformerConfig, size: int, way: Way, title: str) -> None:
    """Raises InvalidSpecError where a model does not divide over so many devices, saying over how many it would."""
    problem = _problem(config, size, way)
    if problem is None:
        return
    fitting = [str(count) for count in range(2, _MAX_DEVICES + 1) if _problem(config, count, way) is None]
    remedy = f"give devices={' or '.join(fitting)}" if fitting else "give one device"
    if way == "tensor" and _problem(config, size, "pipeline") is None:
        remedy += ', or parallel="pipeline"'
    raise InvalidSpecError(f"{title}: over {size} devices {problem}; {remedy}", "devices")


def _problem(config: TransformerConfig, size: int, way: Way) -> str | None:
    """Why a model does not divide over so many devices."""
    if config.vocab_size < size:
        return f"{config.vocab_size} tokens do not divide"
    if way == "pipeline":
        return f"{config.num_layers} layers do not divide" if config.num_layers < size else None
    if config.state_space is not None:
        return "layers that keep states are not divided"
    if config.num_heads % size:
        return f"{config.num_heads} heads do not divide evenly"
    if config.kv_heads % size and size % config.kv_heads:
        return f"{config.kv_heads} key heads neither divide evenly nor repeat"
    sizes = {"intermediate_size": config.ffn_size} if _has_mlp(config) else {}
    if config.is_moe:
        sizes["moe_intermediate_size"] = config.expert_size
    for name, value in sizes.items():
        if value % (_EACH * size):
            return f"{name}, {value}, gives no multiples of {_EACH}"
    return None


def _has_mlp(config: TransformerConfig) -> bool:
    """True if any layer has a feed-forward layer that is no mixture."""
    return not config.is_moe or config.sparse is not None


def _moved(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)
