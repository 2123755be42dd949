"""A cache in blocks beside one with a slot for each sequence: the same bits, in prompts and in steps, on the host and
by kernels; entries of a table behind a sequence, and what no sequence wrote, are poison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from llm import tiny

import pygpukit as gp
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.nn.batch import Batch, Span
from pygpukit.nn.kv_cache import KVCache, LayerCache
from pygpukit.ops import host

SIZE, BLOCKS = 64, 3  # positions of a block, blocks of a sequence
PROMPTS = [150, 64, 1, 63]  # tokens before the first step
CASES = [("llama", "bfloat16"), ("gemma3", "float16"), ("qwen3", "float32"), ("gpt2", "float32")]
CASES += [("gemma2", "bfloat16"), ("phi4", "float32"), ("smollm3", "float16"), ("olmo2", "bfloat16")]


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["host", "kernels"])
def by_kernels(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the simulator runs the kernels, or NumPy and the processor's own instructions compute."""
    if not request.param:
        yield False
        return
    request.getfixturevalue("kernels_on_sim")
    yield True


class Run:
    """A model with a cache: prompts prefilled in chunks, then steps; everything that comes out."""

    def __init__(self, model: CausalTransformerModel, paged: bool) -> None:
        self.network, self.paged, self.found = model.engine.network, paged, list[bytes]()
        shuffled = np.random.default_rng(8).permutation(len(PROMPTS) * BLOCKS + 1)
        self.tables = shuffled[:-1].reshape(len(PROMPTS), BLOCKS).astype(np.int32)
        config, dtype = self.network.config, self.network.dtype
        count, size = (len(shuffled), SIZE) if paged else (len(PROMPTS), SIZE * BLOCKS)
        self.cache = KVCache(config, count, size, dtype, "t")
        for layer in self.cache.layers:
            layer.k[...] = layer.v[...] = np.nan

    def batch(self, tokens: list[int], positions: list[int], rows: list[int], start: int | None = None) -> Batch:
        slots = self.tables[rows].copy() if self.paged else np.asarray(rows, np.int32)
        if self.paged:
            for row, position in enumerate(positions):
                last = max(positions) if start is not None else position
                slots[row, last // SIZE + 1 :] = 10**6
        numbers = [gp.from_numpy(np.asarray(x, np.int32)) for x in (tokens, positions)]
        spans = () if start is None else (Span(0, len(tokens), start, int(slots.reshape(-1)[0])),)
        return Batch(*numbers, gp.from_numpy(slots), spans)

    def forward(self, batch: Batch) -> None:
        buffers = self.network.buffers(batch.count)
        self.network.forward(batch, self.cache, buffers)
        logits = gp.zeros((batch.count, self.network.config.vocab_size))
        self.network.head(buffers.x, logits)
        self.found += [buffers.x.to_numpy().tobytes(), logits.to_numpy().tobytes()]

    def all(self, chunk: int) -> list[bytes]:
        random = np.random.default_rng(4)
        tokens = random.integers(0, 99, (len(PROMPTS), SIZE * BLOCKS)).tolist()
        for row, count in enumerate(PROMPTS):
            for start in range(0, count, chunk):
                end = min(start + chunk, count)
                positions = list(range(start, end))
                self.forward(self.batch(tokens[row][start:end], positions, [row] * len(positions), start))
        for step in range(3):  # the second sequence enters its second block, the last one too
            rows = [0, 1, 2, 3] if step < 2 else [3, 0]
            positions = [PROMPTS[row] + step for row in rows]
            self.forward(self.batch([tokens[row][p] for row, p in zip(rows, positions, strict=True)], positions, rows))
        return self.found


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_blocks_and_slots_give_the_same_bits(by_kernels: bool, name: str, dtype: str) -> None:
    model = tiny.model(name, dtype=dtype, context=SIZE * BLOCKS)
    chunk = 70
    slots, blocks = (Run(model, paged).all(chunk) for paged in (False, True))
    assert all(np.isfinite(np.frombuffer(found, np.float32)).all() for found in slots)
    assert slots == blocks


def test_a_row_at_a_negative_position_changes_nothing(kernels_on_sim: None) -> None:
    """Padded rows of a step."""
    model = tiny.model("llama", dtype="bfloat16", context=SIZE * BLOCKS)
    runs = [Run(model, True) for _ in range(2)]
    runs[0].forward(runs[0].batch([5, 6], [0, 0], [0, 1]))
    padded = runs[1].batch([5, 6, 7], [0, 0, 0], [0, 1, 2])
    padded.positions[2:] = -(2**30)
    runs[1].forward(padded)
    rows = [np.frombuffer(run.found[1], np.float32).reshape(-1, 99)[:2].tobytes() for run in runs]
    assert rows[0] == rows[1]
    for one, other in zip(runs[0].cache.layers, runs[1].cache.layers, strict=True):
        assert _bits(one) == _bits(other)


def _bits(layer: LayerCache) -> list[bytes]:
    with host.built_in_kernels():
        return [array.to_numpy().tobytes() for array in (layer.k, layer.v)]
