"""Rows of blocks of few bits, drawn by a seed, and their values."""

from __future__ import annotations

import numpy as np

from pygpukit.models.dequantise import named


def random_blocks(kind: str, rows: int, columns: int, seed: int) -> np.ndarray:
    """Rows of blocks of random bits, whose scales are numbers of a usual size."""
    rng = np.random.default_rng(seed)
    block = named(kind)
    count = rows * columns // block.elements
    blocks = rng.integers(0, 256, (count, block.bytes)).astype(np.uint8)
    places = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,)}
    for place in places.get(kind, (208,) if kind == "Q6_K" else (0,)):
        scale = (rng.uniform(1e-4, 1e-3, count) * rng.choice([-1, 1], count)).astype(np.float16)
        blocks[:, place : place + 2] = scale.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def values(kind: str, blocks: np.ndarray) -> np.ndarray:
    block = named(kind)
    return block.decoded(blocks.reshape(-1, block.bytes)).reshape(len(blocks), -1)
