"""Every architecture beside transformers on small random models (goldens/small.npz, by make_goldens.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llm import tiny

from pygpukit.llm.engine.engine import Engine
from pygpukit.llm.engine.sampling import Sampling

pytestmark = pytest.mark.usefixtures("backend_name")

GOLDEN = np.load(Path(__file__).parent / "goldens" / "small.npz")
STEPS = 256


@pytest.mark.parametrize("name", sorted(tiny.CONFIGS))
def test_logits_and_256_greedy_tokens_are_those_of_transformers(name: str) -> None:
    model = tiny.model(name)
    prompt, tokens = GOLDEN[f"{name}.prompt"].tolist(), GOLDEN[f"{name}.tokens"].tolist()
    engine = Engine(model.engine.network)
    sequence = engine.open(prompt, Sampling())
    step = engine.step([sequence])
    step.load([sequence])
    assert engine.prefill(sequence, step, 0)
    first = step.sampler.logits.to_numpy()[0]
    np.testing.assert_allclose(first, GOLDEN[f"{name}.first"], atol=1e-4)
    step.sample([sequence])
    while len(sequence.answer) < STEPS:
        step.run([sequence])
    assert sequence.answer == tokens
    np.testing.assert_allclose(step.sampler.logits.to_numpy()[0], GOLDEN[f"{name}.last"], atol=1e-4)


@pytest.mark.parametrize("name", sorted(tiny.CONFIGS))
def test_all_logits_of_a_long_prompt_are_those_of_transformers_without_a_cache(name: str) -> None:
    model = tiny.model(name)
    text = [*GOLDEN[f"{name}.prompt"].tolist(), *GOLDEN[f"{name}.tokens"].tolist()]
    expected = GOLDEN[f"{name}.whole"]
    for number, place in enumerate(range(0, len(text), 37)):
        engine = Engine(model.engine.network)
        sequence = engine.open(text[: place + 1], Sampling())
        step = engine.step([sequence])
        step.load([sequence])
        engine.prefill(sequence, step, 0)
        engine.close(sequence)
        np.testing.assert_allclose(step.sampler.logits.to_numpy()[0], expected[number], atol=1e-4)
