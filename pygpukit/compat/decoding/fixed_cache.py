"""FixedCache: keys and values of one layer for the positions of one sequence, which a caller numbers."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.engine.room import BLOCK
from pygpukit.nn import rope
from pygpukit.nn.kv_cache import FP8, KVCache

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.kv_cache import LayerCache


class FixedCache:
    """Room for `count` positions. written: those that were computed so far; confirmed: those of them that stay."""

    def __init__(self, layer: LayerCache, count: int, dtype: str) -> None:
        self.layer, self.count, self.dtype = layer, count, dtype
        self.written = self.confirmed = 0
        self._tables: tuple[rope.Tables | None] | None = None

    @property
    def blocks(self) -> int:
        """Blocks of the cache."""
        return int(self.layer.k.shape[0])

    def tables(self, attention: Attention) -> rope.Tables | None:
        """The rotation of the layer; made once."""
        if self._tables is None:
            config = attention.config
            is_local = attention.window is not None
            local = rope.local_tables(config, self.count) if is_local else None
            own = rope.tables(config, self.count) if config.rotates(attention.layer) else None
            self._tables = (local or own if own else None,)
        return self._tables[0]

    def check(self, position: int, rows: int, context_len: int) -> None:
        """Raises InvalidSpecError for rows that it has no room for, or that do not follow what was written."""
        end = position + rows
        if not 0 <= position <= self.written:
            raise InvalidSpecError(
                f"position={position}, and {self.written} positions have keys; give 0 to {self.written}", "position"
            )
        if end > self.count:
            raise InvalidSpecError(
                f"position {end - 1} is beyond max_seq_len={self.count}; call init_fixed_cache() with more", "position"
            )
        if context_len != end:
            raise InvalidSpecError(
                f"context_len={context_len}; rows at {position} to {end - 1} see the {end} positions up to themselves: "
                f"give {end}",
                "context_len",
            )

    def wrote(self, end: int) -> None:
        """Positions up to `end` are computed; whatever lay behind them was of other tokens."""
        self.written = end
        self.confirmed = min(self.confirmed, end)


_CACHES: WeakKeyDictionary[Attention, FixedCache] = WeakKeyDictionary()


def init_fixed_cache(self: Attention, max_seq_len: int, dtype: str = "float16") -> None:
    """Make room for the keys and values of one sequence, for steps by hand; an older one is let go of.

    Parameters
    ----------
    max_seq_len : int
        Positions, 1 to the configuration's max_position_embeddings.
    dtype : str
        "fp8", or a type of floats: then keys and values have the type of the weights, in which they are computed.

    Raises
    ------
    InvalidSpecError
        For a number or a type that it cannot have.
    """
    longest = self.config.max_position_embeddings
    expected = f"a whole number of 1 to {longest}"
    if not 1 <= whole(max_seq_len, "max_seq_len", expected) <= longest:
        raise InvalidSpecError(f"max_seq_len={max_seq_len!r}; give {expected}", "max_seq_len")
    if dtype not in (FP8, "float16", "bfloat16", "float32"):
        raise InvalidSpecError(f'dtype={dtype!r}; give "{FP8}", "float16", "bfloat16" or "float32"', "dtype")
    count = operator.index(max_seq_len)
    stored = FP8 if dtype == FP8 else as_dtype(self.qkv_proj.weight.dtype).name
    cache = KVCache(replace(self.config, num_layers=1), -(-count // BLOCK), BLOCK, stored, "fixed")
    _CACHES[self] = FixedCache(cache.layers[0], count, stored)


def fixed_cache(attention: Attention) -> FixedCache:
    """The cache of a layer. Raises InvalidSpecError where it has none."""
    if attention not in _CACHES:
        raise InvalidSpecError(
            "the layer has no fixed cache; call init_fixed_cache(max_seq_len) first: "
            "for block in model.blocks: block.attn.init_fixed_cache(512)",
            "max_seq_len",
        )
    return _CACHES[attention]


def layers_of(model: CausalTransformerModel) -> list[Attention]:
    """The attention of each layer. Raises InvalidSpecError for a model without."""
    blocks = model.engine.network.attention_blocks(f"{model.name}: decoding by hand", "model")
    return [block.attn for block in blocks]


def init_missing(layers: Iterable[Attention], max_seq_len: int) -> None:
    """A cache for each layer that has none, or one of fewer positions."""
    for attention in layers:
        if attention not in _CACHES or _CACHES[attention].count < max_seq_len:
            init_fixed_cache(attention, max_seq_len)


def set_confirmed_pos(self: Attention, pos: int) -> None:
    """The first `pos` positions stay. Raises InvalidSpecError where fewer were computed."""
    cache = fixed_cache(self)
    expected = f"0 to {cache.written}, the positions that were computed"
    if not 0 <= whole(pos, "pos", expected) <= cache.written:
        raise InvalidSpecError(f"pos={pos!r}; give {expected}", "pos")
    cache.confirmed = operator.index(pos)


def reset_lookahead(self: Attention) -> None:
    """Forget what was computed behind the confirmed positions: the next rows begin there."""
    cache = fixed_cache(self)
    cache.wrote(cache.confirmed)


def commit_lookahead(self: Attention, n_accepted: int) -> None:
    """Confirm so many positions more. Raises InvalidSpecError where fewer were computed."""
    cache = fixed_cache(self)
    ahead = cache.written - cache.confirmed
    expected = f"0 to {ahead}, the positions that were computed behind the confirmed ones"
    if not 0 <= whole(n_accepted, "n_accepted", expected) <= ahead:
        raise InvalidSpecError(f"n_accepted={n_accepted!r}; give {expected}", "n_accepted")
    cache.confirmed += operator.index(n_accepted)


def get_confirmed_pos(self: Attention) -> int:
    """The number of confirmed positions."""
    return fixed_cache(self).confirmed
