"""Part: what one of several devices has of a transformer, an ordinary one but for its vocabulary and its layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.nn.embedding import embed
from pygpukit.nn.transformer import Transformer
from pygpukit.ops.elementwise import add, where

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.block import Layer
    from pygpukit.nn.config import TransformerConfig
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.norm import Norm
    from pygpukit.nn.parallel.seat import Seat
    from pygpukit.nn.parallel.shard import Shard
    from pygpukit.nn.transformer import Buffers, Cache


class Part(Transformer):
    """The layers of one device, and its rows of embedding and logits.

    config: of its part; whole: of the model. position_embed: of the first device alone. All parts call forward() at
    the same time. tokens: those whose rows it has.
    """

    def __init__(
        self,
        seat: Seat,
        shard: Shard,
        whole: TransformerConfig,
        config: TransformerConfig,
        embed_tokens: GPUArray | Blocks,
        blocks: Sequence[Layer],
        final_norm: Norm,
        lm_head: GPUArray | Blocks | None,
        position_embed: GPUArray | None,
        positions: int | None,
    ) -> None:
        self.seat, self.shard = seat, shard
        self.tokens = shard.own(whole.vocab_size)
        first = shard.layers(whole).start
        super().__init__(
            config, embed_tokens, blocks, final_norm, lm_head, position_embed, positions, first_layer=first
        )

    @property
    def kept_config(self) -> TransformerConfig:
        """The configuration of the layers that it has."""
        return replace(self.config, num_layers=len(self.blocks))

    def embed(self, batch: Batch, out: GPUArray) -> None:
        """The rows of tokens, which one of the devices has each; the others add zeros."""
        rows = self.tokens
        tokens = batch.tokens - rows.start
        is_own = (tokens >= 0) & (tokens < rows.stop - rows.start)
        embed(replace(batch, tokens=where(is_own, tokens, 0)), self.embed_tokens, None, out)
        where(is_own.reshape(-1, 1), out, 0.0, out=out)
        if self.position_embed is not None:
            learned = native.empty(out.shape, out.dtype)
            embed(replace(batch, tokens=batch.positions), self.position_embed, None, learned)
            add(out, learned, out=out)
        self.seat.add_up(out)

    def pass_layers(self, batch: Batch, cache: Cache, buffers: Buffers, layers: int | None) -> Iterator[None]:
        """buffers.x through all layers, of which each device has a part; in a pipeline each has some, one device after
        the other, and everybody gets what comes out."""
        if self.shard.way == "tensor":
            yield from super().pass_layers(batch, cache, buffers, layers)
            return
        for stage in range(self.shard.size):
            if stage == self.shard.index:
                yield from super().pass_layers(batch, cache, buffers, layers)
            self.seat.send_from(buffers.x, stage)
            yield
