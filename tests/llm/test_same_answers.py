"""Every architecture: an answer's tokens and logprobs are the same alone and in any company, chunks and blocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from llm import tiny

from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.nn.transformer import Transformer

RANDOM = np.random.default_rng(4)
SHARED = [int(x) for x in RANDOM.integers(0, 90, 80)]
# Prompts that begin alike within a block, at its end and behind it; greedy, seeded, and with penalties.
REQUESTS: list[tuple[list[int], int, dict[str, Any]]] = [
    (SHARED[:70], 9, {}),
    ([*SHARED[:64], 7], 12, {"temperature": 0.9, "seed": 5}),
    ([*SHARED[:30], 8, 9], 40, {}),
    ([3], 7, {"temperature": 1.1, "top_k": 20, "seed": 2, "request": 3}),
    ([*SHARED[:66], 11], 5, {"repetition_penalty": 1.2, "logit_bias": {4: 1.5}}),
]
# Loop's settings: batches and places in them, sizes of chunks, blocks too few for all, no captured steps.
WAYS: dict[str, dict[str, Any]] = {
    "together": {"blocks": 20, "max_rows": 8, "budget": 300},
    "chunks of a few tokens": {"blocks": 20, "max_rows": 3, "budget": 10},
    "a row at a time": {"blocks": 20, "max_rows": 1, "budget": 33},
    "few blocks": {"blocks": 3, "max_rows": 5, "budget": 64},
    "no graphs": {"blocks": 20, "max_rows": 4, "budget": 40, "graphs": False},
}


def asked(network: Transformer, numbers: list[int], **settings: Any) -> dict[int, list[Choice]]:
    """What requests are answered, in the order in which they come; twice, so that prompts are found again."""
    loop, found = Loop(network, settings.pop("blocks"), **settings), {}
    for _ in range(2):
        opened = {
            number: Sequence(prompt, count, sampling=Sampling(top=2, **more))
            for number, (prompt, count, more) in ((number, REQUESTS[number]) for number in numbers)
        }
        for sequence in opened.values():
            loop.open(sequence)
        found = {number: [] for number in numbers}
        going = list(numbers)
        while going:
            for number in list(going):
                choice = loop.next(opened[number])
                if choice is None:
                    going.remove(number)
                else:
                    found[number].append(choice)
        assert loop.scheduler.blocks.free == loop.scheduler.blocks.count
    return found


def cases() -> Iterator[Any]:
    """(architecture, type, that of keys and values); a few of them always."""
    for name in tiny.CONFIGS:
        marks = [] if name in ("llama", "gemma3", "gpt2") else [pytest.mark.slow]
        for dtype, kv_dtype in (("float32", None), ("bfloat16", None), ("bfloat16", "fp8")):
            if name != "mamba2" or kv_dtype is None:  # which has no keys
                yield pytest.param(name, dtype, kv_dtype, marks=marks)


@pytest.mark.parametrize(("name", "dtype", "kv_dtype"), list(cases()))
def test_an_answer_is_the_same_in_every_way(name: str, dtype: str, kv_dtype: str | None) -> None:
    network = tiny.model(name, dtype=dtype, context=128).engine.network
    alone: dict[int, list[Choice]] = {}
    for number in range(len(REQUESTS)):
        alone |= asked(network, [number], blocks=20, max_rows=1, budget=300, kv_dtype=kv_dtype)
    assert [len(alone[number]) for number in range(len(REQUESTS))] == [count for _, count, _ in REQUESTS]
    for way, settings in WAYS.items():
        for order in (list(range(len(REQUESTS))), list(reversed(range(len(REQUESTS))))):
            assert asked(network, order, kv_dtype=kv_dtype, **settings) == alone, way


def test_an_answer_is_the_same_beside_another_model() -> None:
    networks = [
        tiny.model(name, seed, "bfloat16", context=128).engine.network for seed, name in enumerate(("llama", "gpt2"))
    ]
    numbers = list(range(len(REQUESTS)))
    alone = [asked(network, numbers, **WAYS["together"]) for network in networks]
    found: list[Any] = [None, None]

    def ask(which: int) -> None:
        found[which] = asked(networks[which], numbers, **WAYS["together"])

    threads = [threading.Thread(target=ask, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone
