"""Small models over several simulated devices, and their greedy tokens."""

from __future__ import annotations

from typing import Any

import pytest
from llm.tiny import MemoryCheckpoint
from llm.tiny_weights import CONFIGS, tensors

from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.parallel import places_of
from pygpukit.llm.weights import from_checkpoint

SIMULATED = pytest.mark.skipif("gp.backend() != 'sim'", reason="several devices are simulated")
SIZES = {"intermediate_size": 64, "moe_intermediate_size": 32, "intermediate_size_mlp": 96}  # that four divide


def config_of(name: str, **changes: Any) -> dict[str, Any]:
    config = CONFIGS[name]
    return {**config, **{key: value for key, value in SIZES.items() if key in config}, **changes}


def model(config: dict[str, Any], devices: Any = None, way: str = "tensor", seed: int = 0, **options: Any) -> Any:
    checkpoint = MemoryCheckpoint(config, tensors(config, seed))
    return from_checkpoint(checkpoint, dtype="float32", places=places_of(devices, way), **options)


def greedy(model: CausalTransformerModel, prompt: list[int], count: int = 8) -> tuple[list[int], list[float]]:
    """Tokens, and their margins."""
    tokens = list(model.stream(prompt, max_new_tokens=count, top=2, ignore_eos=True))
    return [token.token_id for token in tokens], [float(token.margin or 0) for token in tokens]
