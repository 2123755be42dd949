"""Sequences of a model's loop, taken step by step: what they say, and the logits that it is chosen by."""

from __future__ import annotations

import numpy as np

from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.room import block_size
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.llm.model import CausalTransformerModel


def answered(loop: Loop, opened: list[Sequence]) -> list[list[Choice]]:
    """What open sequences say, taken in turns."""
    found: list[list[Choice]] = [[] for _ in opened]
    going = list(range(len(opened)))
    while going:
        for number in list(going):
            choice = loop.next(opened[number])
            if choice is None:
                going.remove(number)
            else:
                found[number].append(choice)
    return found


def settled(loop: Loop) -> bool:
    """True if nobody is there, and all blocks are free."""
    blocks = loop.scheduler.blocks
    return blocks.free == blocks.count and not loop.scheduler.running and not loop.scheduler.waiting


def logits_of(
    model: CausalTransformerModel, prompt: list[int], steps: int, chunk: int = 768, graphs: bool = True
) -> tuple[np.ndarray, list[int]]:
    """Logits after a prompt and after each of some greedy tokens, (steps + 1, vocabulary), and the tokens.

    chunk: tokens of the prompt at once, 2 or more.
    """
    network = model.engine.network
    blocks = -(-(len(prompt) + steps + 1) // block_size(network.config, network.positions))
    loop = Loop(network, blocks, max_rows=1, budget=chunk, graphs=graphs)
    sequence = Sequence(prompt, steps + 1, sampling=Sampling(top=0))  # which begins no step ahead
    loop.open(sequence)
    found = []
    for _ in range(steps + 1):
        assert loop.next(sequence) is not None
        step = loop.steps if found else loop.firsts
        found.append(step.logits().to_numpy()[0])
    assert loop.next(sequence) is None
    return np.stack(found), sequence.answer
