"""Loader: one checkpoint's tensors as the layers that an architecture and a configuration say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.layer_weights import LayerWeights
from pygpukit.llm.models import Architecture, prefix_of
from pygpukit.models.heads import halves
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.blocks import read_into
from pygpukit.nn.loading import TensorLoader
from pygpukit.nn.norm import Norm
from pygpukit.nn.reads import are_read
from pygpukit.nn.streaming import SLOTS, LayerStreaming, aligned, device_bytes, streamed_layers
from pygpukit.nn.transformer import Transformer

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.nn.block import Layer
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.parallel.seat import Seat
    from pygpukit.nn.reads import OnProgress


class Pieces(NamedTuple):
    """The weights and layers of a network."""

    embed_tokens: GPUArray | Blocks
    blocks: list[Layer]
    final_norm: Norm
    lm_head: GPUArray | Blocks | None
    position_embed: GPUArray | None


class Loader(TensorLoader):
    """Reads one checkpoint into the layers that its architecture and configuration say.

    seat: of several devices that have a part of each layer. is_first: whether what is added once is this device's.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        architecture: Architecture,
        config: TransformerConfig,
        dtype: str,
        title: str,
        progress: bool | OnProgress,
        rounds: bool = False,
        seat: Seat | None = None,
        is_first: bool = True,
    ) -> None:
        self.architecture, self.config, self._seat, self.is_first = architecture, config, seat, is_first
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

    def network(self, positions: int | None, streamed: Sequence[int] = (), budget: int | None = None) -> Transformer:
        """The whole network. streamed: the layers whose weights are to stay on the host, and more where budget asks."""
        streaming = None if budget is None else LayerStreaming()
        self.tiles = self.tiles and streaming is None  # layers that stream are copied as their files have them
        pieces = self.pieces(range(self.config.num_layers), streaming, streamed)
        if streaming is not None and budget is not None:
            self._fit(streaming, pieces.blocks, budget)
            streaming.place(self._title)
        held = streaming if streaming and streaming.numbers else None
        return Transformer(self.config, *pieces, positions, held)

    def pieces(
        self, layers: Iterable[int], streaming: LayerStreaming | None = None, streamed: Sequence[int] = ()
    ) -> Pieces:
        """The pieces of a network of some layers. streamed: of them, those that streaming is to hold."""
        weights, config = self.architecture.weights, self.config
        width, positions = config.hidden_size, weights.get("position_embed")
        head, table = self._head_name(), (config.vocab_size, width)
        embed = self.rows(weights["embed_tokens"], "embed_tokens", table, multiplied=head is None)
        learned = None
        if positions is not None and self.is_first:
            learned = self.table(positions, "position_embed", (config.max_position_embeddings, width))
        norm = self.norm(weights["final_norm"], weights.get("final_norm_bias"), "final_norm", width)
        logits = None if head is None else self.rows(head, "lm_head", table, multiplied=True)
        blocks = [self._block(number, streaming if number in streamed else None) for number in layers]
        return Pieces(embed, blocks, norm, logits, learned)

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
        layer = LayerWeights(self, self.architecture, self.config, number, self._seat)
        counted, pending = (self.placed, dict(self.expanded), self.reordered), len(self.pending)
        with self._reads.collecting() as reads:
            block = self.architecture.block(layer)
        if are_read((pair for linear in block.linears for pair in read_into(linear.weight)), reads):
            copy = None if streaming is None else streaming.hold(number, block)
            for read in reads:
                self._reads.begin(read, None if copy is None else copy.of(read.target))
            return block
        self.placed, self.expanded, self.reordered = counted
        del self.pending[pending:]
        tiles, self.tiles = self.tiles, False
        with self._reads.at_once():  # the architecture computes with the weights: it joins some
            block = self.architecture.block(layer)
        self.tiles = tiles
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

    def _head_name(self) -> str | None:
        """The tensor of the logits' weight; None where it is the embedding's."""
        tensor, embedding = self.architecture.weights.get("lm_head"), self.architecture.weights["embed_tokens"]
        if tensor is None or self.config.tie_word_embeddings:
            if self.has(tensor) and not self.same(embedding, str(tensor)):
                raise InvalidSpecError(
                    f"{self._title}: config.json says that {tensor!r} is the embedding, by tie_word_embeddings, but "
                    "the file has two different ones",
                    "tie_word_embeddings",
                )
            return None
        return tensor
