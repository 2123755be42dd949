"""The logits that a model's loop chooses tokens by, step by step."""

from __future__ import annotations

import numpy as np

from pygpukit.llm.engine.loop import BLOCK, Loop
from pygpukit.llm.engine.sampling import Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.llm.model import CausalTransformerModel


def logits_of(
    model: CausalTransformerModel, prompt: list[int], steps: int, chunk: int = 768, graphs: bool = True
) -> tuple[np.ndarray, list[int]]:
    """Logits after a prompt and after each of some greedy tokens, (steps + 1, vocabulary), and the tokens.

    chunk: tokens of the prompt at once, 2 or more.
    """
    network = model.engine.network
    blocks = -(-(len(prompt) + steps + 1) // BLOCK)
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
