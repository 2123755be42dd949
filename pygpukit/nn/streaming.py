"""LayerStreaming: weights of layers that stay on the host, each copied to the device while those before it compute."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import DataType, uint8
from pygpukit.core.event import Event
from pygpukit.memory.pageable import pinned_or_pageable
from pygpukit.memory.transfer_engine import TransferEngine
from pygpukit.nn.linear.blocks import Blocks, stored_of
from pygpukit.nn.reads import offset_in

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.memory.transfer import Transfer
    from pygpukit.nn.block import Layer
    from pygpukit.nn.linear.layer import LinearBF16

SLOTS = 2  # one layer computes while the next one is copied
_ALIGNMENT = 256  # of arrays in a slot: the pool's


def aligned(nbytes: int) -> int:
    """Bytes that an array takes of a slot."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True)
class _Place:
    """An array of a layer: its bytes lie at the same offset in the layer's host copy and in its slot."""

    shape: tuple[int, ...]
    dtype: DataType
    offset: int

    def in_memory(self, memory: GPUArray) -> GPUArray:
        """Its view of a slot's memory."""
        strides, step = [], self.dtype.itemsize
        for extent in reversed(self.shape):
            strides.append(step)
            step *= extent
        return native.view(memory, self.shape, strides[::-1], self.offset, self.dtype)


@dataclass(frozen=True)
class _Weight:
    """The weight of a product, without its memory. blocks: it, of one of few bits, whose orders of columns stay on the
    device."""

    linear: LinearBF16
    name: str
    places: tuple[_Place, ...]
    blocks: Blocks | None

    def place(self, memory: GPUArray) -> GPUArray | Blocks:
        """Let the product read it from a slot's memory."""
        arrays = [place.in_memory(memory) for place in self.places]
        self.linear.weight = arrays[0] if self.blocks is None else self.blocks.in_memory(arrays)
        return self.linear.weight


@dataclass(frozen=True)
class HostCopy:
    """The place of a layer's weights on the host. arrays: that they lie in before, each with its offset there."""

    arrays: list[tuple[GPUArray, int]]
    host: Any

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array, _ in self.arrays)

    def of(self, part: GPUArray) -> Any:
        """The place, uint8, of an array or of neighbouring rows of one; None for other memory."""
        for array, offset in self.arrays:
            if (begin := offset_in(array, part)) is not None:
                return self.host[offset + begin :][: part.nbytes]
        return None


@dataclass(eq=False)
class _Layer:
    """A layer's weights on the host: uint8, as its slot has them. nbytes: without what lies between arrays."""

    number: int
    nbytes: int
    weights: list[_Weight]
    host: Any


@dataclass(eq=False)
class _Slot:
    """Device memory that its layers have in turn. uses: ends of what computed with it since the last copy was begun."""

    memory: GPUArray
    layers: list[_Layer]
    present: _Layer | None = None
    transfer: Transfer | None = None
    uses: list[Event] = field(default_factory=list)

    def after(self, layer: _Layer) -> _Layer:
        """The layer that has the slot next."""
        return self.layers[(self.layers.index(layer) + 1) % len(self.layers)]


class LayerStreaming:
    """Layers of one model whose products read their weights from slots of device memory.

    hold() makes room for the weights of a layer on the host, place() makes the slots; then a layer computes inside of
    `with streaming.layer(number)`. Addresses never change: a layer has always the same slot.
    """

    def __init__(self) -> None:
        self.hits = self.misses = 0  # layers whose copy had been begun when they were to compute, and others
        self._engine = TransferEngine()
        self._lock = threading.RLock()  # slots are used by one pass at a time
        self._layers: dict[int, _Layer] = {}
        self._slots: list[_Slot] = []
        self._slot_of: dict[int, _Slot] = {}
        self._names: dict[int, str] = {}

    @property
    def numbers(self) -> list[int]:
        """The layers whose weights are on the host."""
        return sorted(self._layers)

    @property
    def nbytes(self) -> int:
        """Bytes of the weights on the host."""
        return sum(layer.nbytes for layer in self._layers.values())

    @property
    def slot_bytes(self) -> int:
        """Bytes of all slots."""
        sizes = [layer.host.nbytes for layer in self._layers.values()]
        return min(SLOTS, len(sizes)) * max(sizes, default=0)

    @property
    def pass_bytes(self) -> int:
        """Bytes that a pass through all layers copies."""
        return sum(layer.host.nbytes for slot in self._slots if len(slot.layers) > 1 for layer in slot.layers)

    @property
    def bandwidth(self) -> float:
        """Bytes a second that the copies had while one was under way; 0 before the first."""
        return float(self._engine.stats()["H2D"]["bytes_per_s"])

    def name_of(self, weight: GPUArray | Blocks) -> str:
        """The name of a weight in a slot, as it was before; "" for others."""
        return self._names.get(id(stored_of(weight)[0]), "")

    def hold(self, number: int, block: Layer) -> HostCopy:
        """Room on the host for the weights of a layer's products, which are to be written there; the layer lets go of
        their device memory."""
        weights, arrays, end, nothing = [], [], 0, factory.empty((0,), uint8)
        for linear in block.linears:
            weight, places = linear.weight, []
            for array in stored_of(weight):
                places.append(_Place(tuple(array.shape), array.dtype, end))
                arrays.append((array, end))
                end += aligned(array.nbytes)
            blocks = weight.in_memory([nothing] * len(places)) if isinstance(weight, Blocks) else None
            weights.append(_Weight(linear, str(weight.name), tuple(places), blocks))
        host = pinned_or_pageable("A layer's weights", (end,), uint8)
        for linear in block.linears:
            del linear.weight  # place() gives it back
        copy = HostCopy(arrays, host)
        self._layers[number] = _Layer(number, copy.nbytes, weights, host)
        return copy

    def fetch(self, copy: HostCopy) -> None:
        """Bring weights that are on the device to the host."""
        transfers = [
            self._engine.to_host(_Place((array.nbytes,), uint8, array.offset).in_memory(array), copy.of(array))
            for array, _ in copy.arrays
        ]
        for transfer in transfers:
            transfer.wait()

    def place(self, title: str) -> None:
        """Make the slots, and begin to copy the first layers. title: the model's, which names their memory."""
        layers = [self._layers[number] for number in self.numbers]
        size = max((layer.host.nbytes for layer in layers), default=0)
        for first in range(min(SLOTS, len(layers))):
            memory = factory.empty((size,), uint8)
            memory.name = f"{title}/slot.{first}"
            slot = _Slot(memory, layers[first::SLOTS])
            self._slots.append(slot)
            for layer in slot.layers:
                self._slot_of[layer.number] = slot
                for weight in layer.weights:
                    self._names[id(stored_of(weight.place(memory))[0])] = weight.name
            self._begin(slot, slot.layers[0])

    @contextmanager
    def layer(self, number: int) -> Iterator[None]:
        """Inside of it, what is launched on the current stream computes with the weights of a layer; behind it, the
        copy of the layer that has the slot next. Raises DriverError where the copy of the layer failed, which the next
        time is tried again."""
        slot = self._slot_of.get(number)
        if slot is None:
            yield
            return
        with self._lock:
            layer = self._layers[number]
            self._bring(slot, layer)
            try:
                yield
            except BaseException:
                slot.present = None  # its copy may be what failed
                raise
            finally:
                end = Event(timing=False)
                end.record()
                slot.uses.append(end)
            self._begin(slot, slot.after(layer))

    def _bring(self, slot: _Slot, layer: _Layer) -> None:
        """Have the copy of a layer begun."""
        if slot.present is layer and slot.transfer is not None:
            if slot.transfer.state not in ("Failed", "Cancelled"):
                self.hits += 1
                return
            slot.present = None
            slot.transfer.wait()  # raises
        self.misses += 1
        self._begin(slot, layer)

    def _begin(self, slot: _Slot, layer: _Layer) -> None:
        """Begin to copy a layer, behind what computes with its slot."""
        if slot.present is layer:
            return
        slot.present = None
        target = slot.memory[: layer.host.nbytes]
        slot.transfer = self._engine.to_device(target, layer.host, after=slot.uses)
        slot.present, slot.uses = layer, []


def streamed_layers(sizes: Sequence[int], others: int, budget: int) -> list[int] | None:
    """The fewest layers, evenly spread, that have to stream for a model to fit; None where none of these choices fits.

    sizes: bytes of each layer's products. others: of what is always on the device. budget: of all of it there.
    """
    for count in range(len(sizes) + 1):
        chosen = [place * len(sizes) // count for place in range(count)] if count else []
        if device_bytes(sizes, others, chosen) <= budget:
            return chosen
    return None


def device_bytes(sizes: Sequence[int], others: int, streamed: Sequence[int]) -> int:
    """Bytes on the device where some layers stream."""
    slots = min(SLOTS, len(streamed)) * max((sizes[number] for number in streamed), default=0)
    return others + sum(sizes) - sum(sizes[number] for number in streamed) + slots
