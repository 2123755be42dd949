"""The same bits whatever is computed beside: run to run, chunks of the prompt, batches, graph and launch by launch."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from llm import tiny
from llm.stepping import logits_of

from pygpukit.llm.model import CausalTransformerModel

pytestmark = pytest.mark.usefixtures("backend_name")

PROMPT = [int(x) for x in np.random.default_rng(5).integers(0, 99, 150)]


def bits_of(model: CausalTransformerModel, chunk: int, graphs: bool = True) -> bytes:
    """The logits after a prompt and after each of some greedy tokens."""
    return logits_of(model, PROMPT, 6, chunk, graphs)[0].tobytes()


@pytest.mark.parametrize("name", sorted(tiny.CONFIGS))
def test_a_prompt_in_any_chunks_and_steps_with_and_without_the_graph_give_the_same_bits(name: str) -> None:
    model = tiny.model(name)
    expected = bits_of(model, 256)
    for chunk in (2, 7, 64, 100):
        assert bits_of(model, chunk) == expected, chunk
    assert bits_of(model, 256, graphs=False) == expected
    assert bits_of(tiny.model(name), 256) == expected


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "seed": 7}])
@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "phi4", "olmo2"])
def test_eight_together_say_what_each_says_alone(name: str, settings: dict) -> None:
    model = tiny.model(name, slots=8)
    prompts = [PROMPT[i : i + 5 + 9 * i] for i in range(8)]
    together = model.generate_batch(prompts, 40, top=2, **settings)
    for number, (prompt, found) in enumerate(zip(prompts, together, strict=True)):
        model.engine.loop.clear()
        alone = model.stream(prompt, 40, top=2, request=number, **settings).complete()
        assert found.token_ids == alone.token_ids
        assert [t.logprob for t in found.tokens] == [t.logprob for t in alone.tokens]


def test_another_process_computes_the_same_bits() -> None:
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]; from hashlib import sha256; from llm import tiny;"
        "from llm.test_model_bits import bits_of;"
        "print(sha256(bits_of(tiny.model('qwen3'), 31)).hexdigest())"
    )
    tests = str(Path(__file__).parents[1])
    other = subprocess.run(
        [sys.executable, "-c", script, tests], capture_output=True, text=True, check=True, timeout=240
    )
    assert other.stdout.split()[-1] == sha256(bits_of(tiny.model("qwen3"), 256)).hexdigest()
