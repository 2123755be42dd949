"""SmolLM2 in bfloat16 beside float32: goldens/smollm2_bfloat16.json has how far transformers' own bfloat16 is off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.llm.model import CausalTransformerModel

pytestmark = pytest.mark.usefixtures("backend_name")

FOLDER = Path(__file__).parent / "goldens"
ERRORS = json.loads((FOLDER / "smollm2_bfloat16.json").read_text())["errors"]
ANSWERS = json.loads((FOLDER / "smollm2.json").read_text())["answers"]
CASES = [{**answer, "error": max(errors)} for answer, errors in zip(ANSWERS, ERRORS, strict=True)]


@pytest.fixture(scope="module")
def model() -> CausalTransformerModel:
    return gp.llm.load("smollm2-135m-instruct", progress=False, context=256, dtype="bfloat16")


def check(chosen: list[int], case: dict[str, Any]) -> None:
    """The first token unlike float32's may come only where two logits are as near as the errors of bfloat16."""
    for ours, theirs, margin in zip(chosen, case["tokens"], case["margins"], strict=False):
        if ours != theirs:
            assert margin < 2 * case["error"], (ours, theirs)
            return


def test_the_first_difference_comes_where_the_margin_is_small(model: CausalTransformerModel, backend_name: str) -> None:
    """Each answer in one pass, of float32's tokens: every answer on a device, every third on the simulation."""
    for case in CASES if backend_name == "cuda" else CASES[::3]:
        first = len(case["prompt"]) - 1
        hidden, _ = model(case["prompt"] + case["tokens"][:-1])
        logits = model.get_logits(hidden[first:]).to_numpy()
        check(logits.argmax(-1).tolist(), case)
        best = np.sort(logits, axis=-1)[:, -2:].astype(float)
        assert np.abs(best[:, 1] - best[:, 0] - case["margins"]).max() < 2 * case["error"], case["question"]


def test_token_by_token_too(model: CausalTransformerModel) -> None:
    case = CASES[0]
    with model.chat(case["question"], len(case["tokens"]), ignore_eos=True) as answer:
        check([token.token_id for token in answer], case)
