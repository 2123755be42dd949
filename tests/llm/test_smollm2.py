"""SmolLM2-135M-Instruct, a real model, on the simulation. Fetched once into the model cache (93 MB)."""

from __future__ import annotations

import pytest

import pygpukit as gp
from pygpukit.llm.model import CausalTransformerModel


@pytest.fixture(scope="module")
def smollm2() -> CausalTransformerModel:
    return gp.llm.load("smollm2-135m-instruct", progress=False)


def test_it_knows_the_capital_of_france(smollm2: CausalTransformerModel) -> None:
    answer = smollm2.generate([{"role": "user", "content": "What is the capital of France?"}])
    assert answer.text == "The capital of France is Paris."
    assert answer.finish_reason == "stop"
