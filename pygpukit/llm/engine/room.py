"""Room: how many blocks the KV cache of a model has, as contexts or as memory."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

from pygpukit.core import device
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import parse_memory, whole
from pygpukit.nn.kv_cache import bytes_per_token

if TYPE_CHECKING:
    from pygpukit.nn.config import TransformerConfig

BLOCK = 64  # positions of a block


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
    device's memory. dtype: of keys and values. Raises InvalidSpecError where that is not one."""
    if kv_memory is None:
        return slots * -(-positions // BLOCK)
    each = BLOCK * bytes_per_token(config, dtype)
    count = bytes_or_share(kv_memory, device.get_memory_info()[1], "kv_memory") // each
    if count < 1:
        raise InvalidSpecError(
            f"kv_memory={kv_memory!r} holds no block of {BLOCK} positions, which takes {each} bytes; give more",
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
