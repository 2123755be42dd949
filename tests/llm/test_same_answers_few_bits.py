"""Weights of few bits, of every kind: an answer's tokens and logprobs are the same alone and in any company."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm import few_bits
from llm.stepping import answered, settled

from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.llm.weights import from_checkpoint
from pygpukit.models.quantised.quantise import NAMES
from pygpukit.nn.linear import blocks, in_blocks, in_tiles
from pygpukit.ops import host
from pygpukit.ops.elementwise import pointwise

RANDOM = np.random.default_rng(6)
SHARED, OTHER = ([int(x) for x in RANDOM.integers(0, 32, 70)] for _ in range(2))
# Prompts that begin alike, one of them for kernels of many rows; two whose answers need a block more.
REQUESTS: list[tuple[list[int], int, dict[str, Any]]] = [
    (SHARED[:62], 5, {}),
    ([*SHARED[:40], 7], 4, {"temperature": 0.9, "seed": 5}),
    (OTHER[:61], 6, {"temperature": 1.1, "top_k": 20, "seed": 2, "request": 3}),
    ([3], 4, {"repetition_penalty": 1.2, "logit_bias": {4: 1.5}}),
    (SHARED[:70], 3, {}),
]
# Loop's settings: batches and places in them, sizes of chunks, blocks too few for all, no captured steps.
WAYS: dict[str, tuple[int, dict[str, Any]]] = {
    "together": (1, {"blocks": 20, "max_rows": 8, "budget": 300}),
    "in the other order": (-1, {"blocks": 20, "max_rows": 8, "budget": 300}),
    "chunks of a few tokens": (1, {"blocks": 20, "max_rows": 3, "budget": 10}),
    "a row at a time": (-1, {"blocks": 20, "max_rows": 1, "budget": 33}),
    "few blocks, no graphs": (1, {"blocks": 4, "max_rows": 4, "budget": 40, "graphs": False}),
}


def of(number: int, **more: Any) -> Sequence:
    """A request."""
    prompt, count, settings = REQUESTS[number]
    return Sequence(prompt, count, sampling=Sampling(top=20, **settings), **more)


def asked(network: Any, numbers: list[int], **settings: Any) -> tuple[list[dict[int, list[Choice]]], list[Sequence]]:
    """What requests are answered in the order in which they come, twice: the second time their prompts are found."""
    loop, found, last = Loop(network, settings.pop("blocks"), **settings), [], []
    for _ in range(2):
        opened = [of(number) for number in numbers]
        for sequence in opened:
            loop.open(sequence)
        found.append(dict(zip(numbers, answered(loop, opened), strict=True)))
        assert settled(loop)
        last += opened
    return found, last


def resumed(network: Any) -> list[list[Choice]]:
    """What one is answered that gives way after its first token, and the one that it gives way to."""
    loop, opened = Loop(network, 3), [of(0), of(2, policy="guaranteed")]
    loop.open(opened[0])
    first = loop.next(opened[0])
    loop.open(opened[1])
    rest, other = answered(loop, opened)
    assert settled(loop) and opened[0].preemptions and first is not None
    return [[first, *rest], other]


def check(name: str, source: str, dtype: str, path: Path) -> None:
    """The model in every way."""
    opened = few_bits.checkpoint(source, few_bits.small(name), path / "m")
    network = from_checkpoint(opened, dtype=dtype, context=128).engine.network
    numbers = list(range(len(REQUESTS)))
    alone: dict[int, list[Choice]] = {}
    for number in numbers:
        (first, warm), asked_for = asked(network, [number], blocks=20, max_rows=1, budget=300)
        assert warm == first and (asked_for[1].reused > 0) == (len(REQUESTS[number][0]) > 1)
        alone |= first
    assert [len(alone[number]) for number in numbers] == [count for _, count, _ in REQUESTS]
    for way, (step, settings) in WAYS.items():
        assert asked(network, numbers[::step], **settings)[0] == [alone, alone], way
    assert resumed(network) == [alone[0], alone[2]]


@pytest.fixture
def by_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Operations run their CUDA kernels on the simulator, without its checks, which take most of the time."""
    monkeypatch.setattr(pointwise, "_learn", lambda *_: None)  # operators would go to these kernels in later tests, too
    with host.built_in_kernels():
        yield


@pytest.mark.turns(4)
@pytest.mark.parametrize("kind", [kind for kind in blocks.KINDS if kind in in_blocks.KINDS])
def test_on_the_host(kind: str, tmp_path: Path) -> None:
    check("llama", kind, "float32", tmp_path)


@pytest.mark.slow
@pytest.mark.turns(150)
@pytest.mark.parametrize("kind", in_blocks.KINDS)
def test_in_blocks_of_the_file(by_kernels: None, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_tiles, "takes", lambda *_: False)
    check("llama", kind, "bfloat16", tmp_path)


@pytest.mark.slow
@pytest.mark.turns(150)
@pytest.mark.parametrize("kind", in_tiles.KINDS)
def test_by_tiles(by_kernels: None, kind: str, tmp_path: Path) -> None:
    check("llama", kind, "bfloat16", tmp_path)


@pytest.mark.slow
@pytest.mark.turns(150)
@pytest.mark.parametrize("kind", in_blocks.KINDS)
def test_of_experts(by_kernels: None, kind: str, tmp_path: Path) -> None:
    check("mixtral", kind, "bfloat16", tmp_path)


@pytest.mark.slow
@pytest.mark.turns(150)
@pytest.mark.parametrize("layout", ["gptq", "gptq of 8"])
def test_columns_in_an_order_of_their_own(by_kernels: None, layout: str, tmp_path: Path) -> None:
    check("llama", layout, "bfloat16", tmp_path)


@pytest.mark.slow
@pytest.mark.turns(150)
@pytest.mark.parametrize("quantize", NAMES)
def test_rounded_at_load(by_kernels: None, quantize: str, tmp_path: Path) -> None:
    check("llama", quantize, "bfloat16", tmp_path)
