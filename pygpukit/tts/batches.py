"""Sentences spoken together: which go into one pass, within limits of memory, and the pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.ops import host

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.tts.network import Network

TOKENS = 8192  # of a pass, the padding of shorter sentences counted
FRAMES = 8192  # of a pass, 205 s of sound: the generator holds about 0.6 MB a frame


@dataclass(frozen=True)
class Sentence:
    """The network's input: tokens, a style (256,), and a seed of the noise, None for none."""

    tokens: list[int]
    style: np.ndarray[Any, Any]
    speed: float
    seed: int | None


def speak(network: Network, sentences: Sequence[Sentence]) -> list[GPUArray]:
    """The samples of each sentence, with the bits that it has alone.

    Those of similar length go together, at most TOKENS and FRAMES in one pass. Where NumPy computes, on the simulated
    device, they go one by one: its matrix products have other bits in other company.
    """
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number].tokens))
    samples_by_sentence: dict[int, GPUArray] = {}
    for batch in _within([len(sentences[number].tokens) for number in order], TOKENS, padded=True):
        chosen = [sentences[order[place]] for place in batch]
        prediction = network.predict([each.tokens for each in chosen], _styles(chosen), [each.speed for each in chosen])
        for part in _within([prediction.frames(number) for number in range(len(chosen))], FRAMES, padded=False):
            some = [chosen[number] for number in part]
            styles = _styles(some)
            utterance = network.utterance(prediction, styles, part)
            samples = network.waveforms(utterance, styles, [each.seed for each in some])
            samples_by_sentence |= {order[batch[number]]: sound for number, sound in zip(part, samples, strict=True)}
    return [samples_by_sentence[number] for number in range(len(sentences))]


def _styles(sentences: Sequence[Sentence]) -> GPUArray:
    import numpy as np

    return factory.from_numpy(np.stack([each.style for each in sentences]).astype(np.float32))


def _within(sizes: Sequence[int], max_size: int, padded: bool) -> Iterator[range]:
    """Neighbours whose sizes come to at most `max_size`, at least one at a time. padded: each counts as the largest."""
    start = total = largest = 0
    for number, size in enumerate(sizes):
        largest = max(largest, size)
        total += size
        count = number + 1 - start
        if count > 1 and (host.computes() or (largest * count if padded else total) > max_size):
            yield range(start, number)
            start, total, largest = number, size, size
    if start < len(sizes):
        yield range(start, len(sizes))
