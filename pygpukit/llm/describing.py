"""describe() of a model: its weights by layer and kind, what a token costs, and how fast this device could be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.nn.kv_cache import bytes_per_token
from pygpukit.nn.linear.blocks import Blocks, read_into
from pygpukit.nn.mamba.cache import bytes_per_sequence

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.nn.streaming import LayerStreaming
    from pygpukit.nn.transformer import Transformer

_LAYER = re.compile(r"layers\.(\d+)/")


@dataclass(frozen=True)
class WeightLine:
    """Weights of one name and kind. layers: their numbers, None for what is of no layer; share: of them, that a token
    reads: of experts those that it goes to; nbytes and count: of all layers together."""

    name: str
    kind: str
    shape: tuple[int, ...]
    layers: tuple[int, ...] | None
    nbytes: int
    count: int
    share: float

    @property
    def place(self) -> str:
        """Name and layers as a text: "qkv of layers 0 to 27"."""
        if self.layers is None:
            return self.name
        first, last = self.layers[0], self.layers[-1]
        if len(self.layers) == last - first + 1:
            return f"{self.name} of layer{f's {first} to {last}' if last > first else f' {first}'}"
        return f"{self.name} of layers {', '.join(map(str, self.layers))}"


@dataclass(frozen=True)
class Streamed:
    """Layers whose weights are copied to the device while others compute.

    layers: their numbers. nbytes: of their weights on the host; slot_bytes: of the device memory that they share;
    pass_bytes: that a step copies, of one answer or of many. bandwidth: bytes a second that the copies reached, 0
    before the first. hits, misses: layers whose copy had been begun before their turn, and others.
    """

    layers: tuple[int, ...]
    nbytes: int
    slot_bytes: int
    pass_bytes: int
    bandwidth: float
    hits: int
    misses: int

    @property
    def floor_s(self) -> float | None:
        """Seconds that a step's copies take at that rate; None before the first."""
        return self.pass_bytes / self.bandwidth if self.bandwidth else None


@dataclass(frozen=True)
class Description:
    """A model's weights and what a token of one answer costs.

    state_bytes: of a sequence, where layers keep a state in the place of keys and values, else 0. context: positions
    whose keys and values the token reads. kv_dtype, kv_token_bytes: what these are stored as, and how many bytes those
    of one position take. bandwidth: bytes a second of the device's memory by its facts, 0 where it does not say.
    expanded: of kinds of few bits that did not stay so, (bytes in the file, on the device). reordered: bytes of weights
    whose columns lie by their groups of scales, for which a product takes x's in that order. tiled: bytes of weights
    that were put by tiles when they were loaded, and how many of these the file does not have. replaced: the operations
    of plugins in the place of the model's own, in words. streamed: the layers that are, None where all of the model is
    on the device. device_bytes: of weights, by the number of the device, where there are several; at_once: how many of
    these read their part of a layer at the same time.
    """

    name: str
    device: str
    lines: tuple[WeightLine, ...]
    expanded: dict[str, tuple[int, int]]
    reordered: int
    context: int
    kv_dtype: str
    kv_token_bytes: int
    kv_bytes: int
    kv_operations: int
    bandwidth: float
    replaced: tuple[str, ...] = ()
    streamed: Streamed | None = None
    state_bytes: int = 0
    device_bytes: dict[int, int] = field(default_factory=dict)
    at_once: int = 1
    tiled: tuple[int, int] = (0, 0)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights, wherever they are."""
        return sum(line.nbytes for line in self.lines)

    @property
    def nbytes(self) -> int:
        """Bytes of weights on the device, with the slots of those that are streamed."""
        streamed = self.streamed
        return self.weight_bytes - (0 if streamed is None else streamed.nbytes - streamed.slot_bytes)

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """Bytes of weights by kind, most first."""
        kinds: dict[str, int] = {}
        for line in self.lines:
            kinds[line.kind] = kinds.get(line.kind, 0) + line.nbytes
        return dict(sorted(kinds.items(), key=lambda item: -item[1]))

    @property
    def active_bytes(self) -> int:
        """Bytes of the weights that a token of one answer reads: of a mixture those of its experts."""
        return round(sum(line.nbytes * line.share for line in self.lines))

    @property
    def token_bytes(self) -> int:
        """Bytes that a token of one answer reads."""
        return self.active_bytes + self.kv_bytes + self.state_bytes

    @property
    def token_operations(self) -> int:
        """Multiplications and additions of a token."""
        return 2 * round(sum(line.count * line.share for line in self.lines)) + self.kv_operations

    @property
    def floor_s(self) -> float | None:
        """Seconds that a token needs at least: its bytes by the bandwidth, or what is copied by the link's, whichever
        takes longer. None where the device does not say."""
        memory = self.token_bytes / self.bandwidth / self.at_once if self.bandwidth else None
        link = None if self.streamed is None else self.streamed.floor_s
        return max((seconds for seconds in (memory, link) if seconds is not None), default=None)

    def __repr__(self) -> str:
        count = sum(line.count for line in self.lines)
        rows = [f"{self.name} on {self.device}: {count / 1e6:.1f} million numbers in {_size(self.weight_bytes)}"]
        width = max(len(line.place) for line in self.lines)
        for line in self.lines:
            shape = " x ".join(map(str, line.shape))
            rows.append(f"  {line.place:{width}}  {line.kind:14}  {shape:>15}  {_size(line.nbytes):>9}")
        rows.append("by kind: " + ", ".join(f"{kind} {_size(size)}" for kind, size in self.bytes_by_kind.items()))
        if any(0 < line.share < 1 for line in self.lines):
            rows.append(f"of the experts a token goes to few: it reads {_size(self.active_bytes)} of the weights")
        rows += [
            f"expanded from {kind}: {_size(before)} in the file, {_size(after)} here"
            for kind, (before, after) in self.expanded.items()
        ]
        if self.reordered:
            rows.append(f"columns by their groups, not as in the file (act-order): {_size(self.reordered)}")
        if self.tiled[0]:
            more = f", {_size(self.tiled[1])} more than in the file" if self.tiled[1] else ""
            rows.append(f"by tiles of 16 rows, not as in the file: {_size(self.tiled[0])}{more}")
        rows += [f"replaced: {one}" for one in self.replaced]
        if self.device_bytes:
            parts = (f"{_size(size)} on device {number}" for number, size in self.device_bytes.items())
            rows.append(f"over devices: {', '.join(parts)}")
        if self.state_bytes:
            rows.append(f"states: {_size(self.state_bytes)} a sequence, whatever its length")
        else:
            rows.append(f"keys and values in {self.kv_dtype}: {self.kv_token_bytes} bytes a position")
        token = f"a token at {self.context} positions reads {_size(self.token_bytes)}"
        rows.append(f"{token} and takes {self.token_operations / 1e9:.2f} billion operations")
        if self.bandwidth:
            rows.append(_at(self.bandwidth * self.at_once, self.token_bytes / self.bandwidth / self.at_once))
        if self.streamed is not None:
            rows += _streaming_lines(self.streamed, self.nbytes)
        return "\n".join(rows)


def describe(model: CausalTransformerModel, context: int) -> Description:
    """The description of a model."""
    config, streaming, parts = model.config, model.engine.network.streaming, model.engine.network.parts
    with model.engine.network.at_home():
        facts = device.current()
    groups: dict[tuple[str, str, tuple[int, ...], float], list[tuple[int | None, int, int]]] = {}
    for weight, share in (one for part in parts for one in _weights(part)):
        title = weight.name if streaming is None else streaming.name_of(weight) or weight.name
        path = title.rpartition(f"{model.name}/")[2]
        layer = _LAYER.match(path)
        label = path[layer.end() :] if layer else path
        key = label.removesuffix(".weight"), _kind(weight), weight.shape, share
        number = int(layer[1]) if layer else None
        groups.setdefault(key, []).append((number, weight.nbytes, prod(weight.shape)))
    lines = []
    for (name, kind, shape, share), own in groups.items():
        layers = tuple(sorted({number for number, *_ in own if number is not None})) or None
        lines.append(
            WeightLine(name, kind, shape, layers, sum(size for _, size, _ in own), sum(n for *_, n in own), share)
        )
    read = [
        min(context, config.window_of(layer) or context, config.chunk_of(layer) or context)
        for layer in range(config.num_layers)
    ]
    kv_dtype = model.engine.kv_dtype
    space = config.state_space
    kept = [part.kept_config for part in parts]
    kv_token_bytes = 0 if space is not None else sum(bytes_per_token(own, kv_dtype) for own in kept)
    kv_bytes = sum(read) * kv_token_bytes // config.num_layers
    if space is not None:
        read = [space.state] * config.num_layers
    operations = sum(4 * config.num_heads * config.head_dim * positions for positions in read)
    return Description(
        model.name,
        facts.name,
        tuple(lines),
        dict(model.expanded),
        model.reordered,
        context,
        kv_dtype,
        kv_token_bytes,
        kv_bytes,
        operations,
        facts.bandwidth,
        tuple(f"{name} by {one}" for name, one in model.replaced.items()),
        None if streaming is None else _streamed(streaming),
        0 if space is None else sum(bytes_per_sequence(own, space, kv_dtype) for own in kept),
        {} if len(parts) == 1 else {part.device: sum(w.nbytes for w, _ in _weights(part)) for part in parts},
        model.engine.network.at_once,
        _tiled(weight for part in parts for weight, _ in _weights(part)),
    )


def _streamed(streaming: LayerStreaming) -> Streamed:
    return Streamed(
        tuple(streaming.numbers),
        streaming.nbytes,
        streaming.slot_bytes,
        streaming.pass_bytes,
        streaming.bandwidth,
        streaming.hits,
        streaming.misses,
    )


def _streaming_lines(streamed: Streamed, nbytes: int) -> Iterator[str]:
    """The lines about layers that stream."""
    numbers = ", ".join(map(str, streamed.layers))
    yield f"on the device {_size(nbytes)}; on the host {_size(streamed.nbytes)} of the layers {numbers}"
    yield f"layers whose copy was begun before their turn: {streamed.hits}, others: {streamed.misses}"
    yield f"a step copies {_size(streamed.pass_bytes)}, for one answer or many"
    if streamed.floor_s:
        yield _at(streamed.bandwidth, streamed.floor_s)


def _at(bandwidth: float, seconds: float) -> str:
    return f"at {_size(round(bandwidth))}/s that takes {seconds * 1e3:.3f} ms: {1 / seconds:.3g} tokens/s at most"


def _weights(part: Transformer) -> Iterator[tuple[GPUArray | Blocks, float]]:
    """Each weight, and the share of it that a token reads."""
    yield part.embed_tokens, float(part.lm_head is part.embed_tokens)
    if part.position_embed is not None:
        yield part.position_embed, 0.0
    for block in part.blocks:
        yield from block.shares()
    yield from ((array, 1.0) for array in part.final_norm.arrays)
    if part.lm_head is not part.embed_tokens:
        yield part.lm_head, 1.0


def _tiled(weights: Iterable[GPUArray | Blocks]) -> tuple[int, int]:
    """Bytes of weights by tiles, and how many the file does not have; a tied embedding counts once."""
    own = {id(weight): weight for weight in weights if isinstance(weight, Blocks)}
    pairs = [
        (part.array.nbytes, read)
        for weight in own.values()
        for part, (_, read) in zip(weight.parts, read_into(weight), strict=True)
        if part.tiled
    ]
    return sum(size for size, _ in pairs), sum(size - read for size, read in pairs)


def _kind(weight: GPUArray | Blocks) -> str:
    if isinstance(weight, Blocks):
        return ", ".join(dict.fromkeys(part.kind for part in weight.parts))
    return weight.dtype.name


def _size(count: int) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
