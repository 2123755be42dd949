"""Room: how many blocks the KV cache of a model has, as contexts or as memory."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

from pygpukit.core import device
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import parse_memory, whole
from pygpukit.llm.engine.blocks import MIN_SIZE
from pygpukit.nn.kv_cache import FP8, KVCache, bytes_per_token
from pygpukit.nn.mamba.cache import StateCache, bytes_per_sequence

if TYPE_CHECKING:
    from pygpukit.nn.config import TransformerConfig
    from pygpukit.nn.transformer import Cache, Transformer

BLOCK = 64  # positions of a block of keys and values


def block_size(config: TransformerConfig, positions: int) -> int:
    """Positions of a block of sequences that have so many at most: all of them where a sequence has one state."""
    return BLOCK if config.state_space is None else max(positions, MIN_SIZE)


def new_cache(network: Transformer, count: int, dtype: str, name: str) -> Cache:
    """The cache of so many blocks. Raises InvalidSpecError as check_kept()."""
    check_kept(network.config, dtype)

    def make(own: Transformer, label: str) -> Cache:
        config = own.kept_config
        if config.state_space is not None:
            return StateCache(config, config.state_space, count, dtype, label)
        return KVCache(config, count, BLOCK, dtype, label)

    return network.new_caches(make, name)


def check_kept(config: TransformerConfig, dtype: str | None) -> None:
    """Raises InvalidSpecError for a dtype of keys and values that states cannot have."""
    if config.state_space is not None and dtype == FP8:
        raise InvalidSpecError(
            f'kv_dtype="{FP8}" is of keys and values, and this model keeps states in their place; leave it out',
            "kv_dtype",
        )


def check_room(
    context: SupportsIndex | None, slots: SupportsIndex, kv_memory: str | SupportsIndex | None = None
) -> None:
    """Raises InvalidSpecError where context or slots is no whole number of 1 or more, or kv_memory no size; context and
    kv_memory may be None."""
    for name, value in (("context", 1 if context is None else context), ("slots", slots)):
        expected = "a whole number of 1 or more"
        if whole(value, name, expected) < 1:
            raise InvalidSpecError(f"{name}={value!r}; give {expected}", name)
    if kv_memory is not None:
        if operator.index(slots) != 1:
            raise InvalidSpecError(
                f"slots={slots!r} and kv_memory={kv_memory!r} both say how much; give one", "kv_memory"
            )
        bytes_or_share(kv_memory, 0, "kv_memory")


def blocks_of(
    config: TransformerConfig, dtype: str, positions: int, slots: int, kv_memory: str | SupportsIndex | None
) -> int:
    """Blocks for so many sequences of all positions, or as many as kv_memory holds: bytes, "2GB", or "40%" of the
    device's memory. dtype: of keys and values. Raises InvalidSpecError where that is not one, and as check_kept()."""
    check_kept(config, dtype)
    space, size = config.state_space, block_size(config, positions)
    if kv_memory is None:
        return slots * -(-positions // size)
    each = size * bytes_per_token(config, dtype) if space is None else bytes_per_sequence(config, space, dtype)
    count = bytes_or_share(kv_memory, device.get_memory_info()[1], "kv_memory") // each
    if count < 1:
        raise InvalidSpecError(
            f"kv_memory={kv_memory!r} holds no block of {size} positions, which takes {each} bytes; give more",
            "kv_memory",
        )
    return count


def bytes_or_share(size: str | SupportsIndex, total: int, field: str) -> int:
    """The bytes of a size, or of a share of the total. Raises InvalidSpecError, which names the field, for anything
    else."""
    if not isinstance(size, str) or not size.endswith("%"):
        return parse_memory(size, field)
    try:
        share = float(size[:-1])
    except ValueError:
        share = -1.0
    if not 0 < share <= 100:
        raise InvalidSpecError(f'{field}={size!r}; give bytes, "2GB", or a share such as "40%"', field)
    return int(total * share / 100)
