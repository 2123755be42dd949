"""Every architecture beside transformers on small random models (goldens/small.npz, by make_goldens.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llm import tiny
from llm.stepping import logits_of

pytestmark = pytest.mark.usefixtures("backend_name")

GOLDEN = np.load(Path(__file__).parent / "goldens" / "small.npz")
STEPS = 256


@pytest.mark.parametrize("name", sorted(tiny.CONFIGS))
def test_logits_and_256_greedy_tokens_are_those_of_transformers(name: str) -> None:
    model = tiny.model(name)
    prompt, tokens = GOLDEN[f"{name}.prompt"].tolist(), GOLDEN[f"{name}.tokens"].tolist()
    logits, answer = logits_of(model, prompt, STEPS - 1)
    np.testing.assert_allclose(logits[0], GOLDEN[f"{name}.first"], atol=1e-4)
    assert answer == tokens
    np.testing.assert_allclose(logits[-1], GOLDEN[f"{name}.last"], atol=1e-4)


@pytest.mark.parametrize("name", sorted(tiny.CONFIGS))
def test_all_logits_of_a_long_prompt_are_those_of_transformers_without_a_cache(name: str) -> None:
    model = tiny.model(name)
    text = [*GOLDEN[f"{name}.prompt"].tolist(), *GOLDEN[f"{name}.tokens"].tolist()]
    expected = GOLDEN[f"{name}.whole"]
    for number, place in enumerate(range(0, len(text), 37)):
        logits, _ = logits_of(model, text[: place + 1], 0)
        np.testing.assert_allclose(logits[0], expected[number], atol=1e-4)
