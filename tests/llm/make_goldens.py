"""What transformers says of the same models, for test_transformers.py and test_smollm2.py; run by hand.

    python -m venv /tmp/goldens && /tmp/goldens/bin/pip install torch transformers safetensors gguf accelerate
    cd tests && /tmp/goldens/bin/python -m llm.make_goldens SmolLM2-135M-Instruct.Q4_1.gguf

Float32, eager attention, greedy. Without the file only the small models are done, and with names of some only these,
the others staying as they are. Then, of the same answers, how far
transformers' own bfloat16 is from its float32: `--bfloat16` does this alone, from the answers that are there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from llm import tiny_weights
from safetensors.torch import save_file

FOLDER = Path(__file__).parent / "goldens"
VERSIONS = {"torch": torch.__version__, "transformers": transformers.__version__}
STEPS = 256
WITHOUT_CACHE = ("mamba2",)  # whose caches have another name
QUESTIONS = [
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "How many legs does a spider have?",
    "Name three colours.",
    "Explain gravity to a child.",
    "What is 12 plus 30?",
    "Give me a recipe for tea.",
    "Translate 'good morning' to French.",
    "Who wrote Romeo and Juliet?",
    "Write a Python function that adds two numbers.",
    "Why is the sky blue?",
    "Tell me a very short story about a dog.",
]
ANSWER = 24  # tokens


def greedy(model: Any, prompt: list[int], steps: int) -> tuple[list[int], list[float], np.ndarray, np.ndarray]:
    """Tokens, the margins of their choice, and the logits after the prompt and at the end; with a cache."""
    tokens, margins, cache = list(prompt), [], None
    given, first = torch.tensor([prompt]), None
    with torch.no_grad():
        for _ in range(steps):
            if model.config.model_type in WITHOUT_CACHE:
                out = model(torch.tensor([tokens]), use_cache=False)
            else:
                out = model(given, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
            logits = out.logits[0, -1].float()
            first = logits if first is None else first
            best = torch.topk(logits, 2)
            margins.append(float(best.values[0] - best.values[1]))
            tokens.append(int(best.indices[0]))
            given = torch.tensor([[tokens[-1]]])
    return tokens[len(prompt) :], margins, first.numpy(), logits.numpy()


def from_folder(name: str, config: dict[str, Any]) -> Any:
    """The model of a folder with this configuration and its tensors; those of experts are put together on the way."""
    state = {key: torch.from_numpy(np.array(value)) for key, value in tiny_weights.tensors(config).items()}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        save_file(state, Path(folder, "model.safetensors"), {"format": "pt"})
        model, told = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
    left = [key for key in told["missing_keys"] if key != "lm_head.weight"]
    assert not left and not told["unexpected_keys"] and not told["mismatched_keys"], (name, told)
    return model.eval()


def small(names: list[str]) -> None:
    file = FOLDER / "small.npz"
    found: dict[str, np.ndarray] = dict(np.load(file)) if names else {}
    for name in names or tiny_weights.CONFIGS:
        config = tiny_weights.CONFIGS[name]
        model = from_folder(name, config)
        prompt = [int(x) for x in np.random.default_rng(17).integers(0, 99, 40)]
        tokens, margins, first, last = greedy(model, prompt, STEPS)
        with torch.no_grad():
            whole = model(torch.tensor([[*prompt, *tokens]]), use_cache=False).logits[0].float().numpy()
        found |= {f"{name}.prompt": np.array(prompt), f"{name}.tokens": np.array(tokens)}
        found |= {f"{name}.first": first, f"{name}.last": last, f"{name}.whole": whole[::37]}
        print(f"{name}: smallest margin {min(margins):.2e}, {len(set(tokens))} different tokens")
    np.savez_compressed(file, **found)


def smollm2(file: Path) -> None:
    load = {"gguf_file": file.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **load)
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, **load, dtype=torch.float32).eval()
    answers = []
    for question in QUESTIONS:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
        )
        prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens, margins, _, _ = greedy(model, prompt, ANSWER)
        answers.append({"question": question, "prompt": prompt, "tokens": tokens, "margins": margins})
        print(question, "->", tokenizer.decode(tokens))
    FOLDER.joinpath("smollm2.json").write_text(json.dumps({"made with": VERSIONS, "answers": answers}) + "\n")


def bfloat16(file: Path) -> None:
    """The largest difference of a logit, at each token of the answers that smollm2() wrote."""
    load = {"quantization_config": transformers.GgufConfig(str(file), dequantize=True), "gguf_file": file.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, **load, dtype=torch.float32).eval()
    answers = json.loads(FOLDER.joinpath("smollm2.json").read_text())["answers"]

    def logits(answer: dict[str, Any]) -> torch.Tensor:
        first = len(answer["prompt"]) - 1
        with torch.no_grad():
            return model(torch.tensor([answer["prompt"] + answer["tokens"]])).logits[0, first:-1].float()

    exact = [logits(answer) for answer in answers]
    assert all(rows.argmax(-1).tolist() == answer["tokens"] for rows, answer in zip(exact, answers, strict=True))
    model = model.bfloat16()
    errors = [
        [round(float(error), 4) for error in (logits(answer) - rows).abs().amax(-1)]
        for rows, answer in zip(exact, answers, strict=True)
    ]
    print("largest logit error of bfloat16:", [max(each) for each in errors])
    FOLDER.joinpath("smollm2_bfloat16.json").write_text(json.dumps({"made with": VERSIONS, "errors": errors}) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    FOLDER.mkdir(exist_ok=True)
    names = [word for word in sys.argv[1:] if word in tiny_weights.CONFIGS]
    files = [Path(word) for word in sys.argv[1:] if word != "--bfloat16" and word not in names]
    if "--bfloat16" not in sys.argv:
        small(names)
        for file in files:
            smollm2(file)
    for file in files:
        bfloat16(file)
