"""KVCache: keys and values of a fixed number of sequences, each with a fixed number of positions."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.config import TransformerConfig

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

PATIENCE_S = 5.0  # that a slot is waited for: another thread may be about to close an answer


@dataclass
class LayerCache:
    """Keys and values of one layer: (slots, key heads, positions of one, head_dim), or blocks in the place of slots."""

    k: GPUArray
    v: GPUArray


@dataclass
class Slot:
    """Room for one sequence. prompt: tokens from the start whose keys and values were computed as a prompt's."""

    number: int
    prompt: list[int] = field(default_factory=list)
    taken: bool = False
    used: int = 0  # when it was last taken, for choosing the one that is forgotten


class KVCache:
    """Keys and values on the device, slots for sequences that come and go. Safe from several threads.

    A sequence that begins as one that was here before finds the part that they share: only what was computed as a
    prompt counts, so that an answer is the same, bit for bit, whether it was found or computed anew.
    """

    def __init__(self, config: TransformerConfig, slots: int, positions: int, dtype: str, name: str) -> None:
        shape = (slots, config.kv_heads, positions, config.head_dim)
        self.positions = positions
        self.layers = [
            LayerCache(factory.zeros(shape, dtype), factory.zeros(shape, dtype)) for _ in range(config.num_layers)
        ]
        for number, layer in enumerate(self.layers):
            layer.k.name, layer.v.name = f"{name}/layers.{number:02d}/kv.k", f"{name}/layers.{number:02d}/kv.v"
        self.slots = [Slot(number) for number in range(slots)]
        self._free = threading.Condition()
        self._clock = 0

    @property
    def nbytes(self) -> int:
        """Bytes on the device, of all slots."""
        return sum(layer.k.nbytes + layer.v.nbytes for layer in self.layers)

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one position of one sequence takes."""
        return self.nbytes // (len(self.slots) * self.positions)

    def acquire(self, tokens: list[int]) -> tuple[Slot, int]:
        """A slot, and how many of the tokens, from the first, it already holds.

        Raises InvalidSpecError where all slots stay taken for some seconds: by answers that nobody finished or closed.
        """
        with self._free:
            if not self._free.wait_for(lambda: not all(slot.taken for slot in self.slots), PATIENCE_S):
                count = len(self.slots)
                raise InvalidSpecError(
                    f"the model's {count} slot{'s are' if count > 1 else ' is'} taken by answers that have not ended; "
                    f"finish or close() one of them, or load the model with slots={count + 1}",
                    "slots",
                )
            free = [slot for slot in self.slots if not slot.taken]
            slot = max(free, key=lambda slot: (_shared(slot.prompt, tokens), -slot.used))
            shared = min(_shared(slot.prompt, tokens), len(tokens) - 1)
            self._clock += 1
            slot.taken, slot.used, slot.prompt = True, self._clock, tokens[:shared]
            return slot, shared

    def release(self, slot: Slot) -> None:
        """Give a slot back; its prompt stays until another sequence needs the room."""
        with self._free:
            slot.taken = False
            self._free.notify()

    def clear(self) -> None:
        """Forget the prompts of all slots."""
        with self._free:
            for slot in self.slots:
                slot.prompt = []


def _shared(a: list[int], b: list[int]) -> int:
    """Length of the common prefix."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
