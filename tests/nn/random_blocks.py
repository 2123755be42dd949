"""Rows of blocks of few bits, drawn by a seed, and their values."""

from __future__ import annotations

import numpy as np

from pygpukit.models.dequantise import named
from pygpukit.models.quantised.blocks import BLOCKS as OF_FOLDERS


def random_blocks(kind: str, rows: int, columns: int, seed: int) -> np.ndarray:
    """Rows of blocks of random bits, whose scales are numbers of a usual size."""
    rng = np.random.default_rng(seed)
    block = named(kind)
    count = rows * columns // block.elements
    blocks = rng.integers(0, 256, (count, block.bytes)).astype(np.uint8)
    if kind in OF_FOLDERS:
        head = rng.uniform(1e-4, 1e-3, count).astype(np.float32)
        if kind.startswith("I4"):
            head = (head.view(np.uint32) & 0xFFFFFF00 | rng.integers(0, 17, count).astype(np.uint32)).view(np.float32)
        elif kind.startswith("I8Z"):
            zeros = rng.integers(-128, 129, count).astype(np.int32).view(np.uint32)
            head = (head.view(np.uint32) & 0xFFFFFE00 | zeros & 0x1FF).view(np.float32)
        elif kind == "NVFP4":
            head[1::2] = -1 / head[1::2]
            blocks[:, 4:12] = rng.integers(1, 0x7F, (count, 8))
        if kind == "MXFP4":
            blocks[:, :4] = rng.integers(110, 120, (count, 4))
        else:
            blocks[:, :4] = head.view(np.uint8).reshape(-1, 4)
        if kind.startswith("FP8"):
            blocks[:, 4:][blocks[:, 4:] & 127 == 127] = 0  # no NaN
        return blocks.reshape(rows, -1)
    places = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,)}
    for place in places.get(kind, (208,) if kind == "Q6_K" else (0,)):
        scale = (rng.uniform(1e-4, 1e-3, count) * rng.choice([-1, 1], count)).astype(np.float16)
        blocks[:, place : place + 2] = scale.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def values(kind: str, blocks: np.ndarray) -> np.ndarray:
    block = named(kind)
    return block.decoded(blocks.reshape(-1, block.bytes)).reshape(len(blocks), -1)
