"""Suite `llm`: tokens a second of one sequence, for true shapes with random weights, transformers eager beside it.

`python -m bench.llm SHAPE` prints transformers' rate on the same card as JSON, or why there is none.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from pygpukit.benchmark.result import BenchmarkResult, Unavailable

from .random_weights import RandomCheckpoint

CATEGORY = "llm"
PROMPT, TOKENS, ROUNDS = 128, 128, 5
TIMEOUT_S = 400
# Hugging Face's fields; what a real model of the size has.
_COMMON = {"max_position_embeddings": 8192, "hidden_act": "silu"}
SHAPES: dict[str, dict[str, Any]] = {
    "135M (SmolLM2)": {
        **_COMMON,
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "rope_theta": 1e5,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    },
    "1B (Llama 3.2)": {
        **_COMMON,
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "rope_theta": 5e5,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    },
    "7B (Qwen 2.5)": {
        **_COMMON,
        "model_type": "qwen2",
        "vocab_size": 152064,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "rope_theta": 1e6,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
    },
}


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit.core.backend import ensure, is_sim

    ensure()
    for name in SHAPES:
        if is_sim() and not name.startswith("135M"):
            yield Unavailable(f"{CATEGORY}/{name}: decode", "needs a GPU")
        else:
            yield from _rows_of(name, 16 if quick else TOKENS, 2 if quick else ROUNDS)


def _rows_of(name: str, tokens: int, rounds: int) -> Iterator[BenchmarkResult]:
    from pygpukit.llm.weights import from_checkpoint

    model = from_checkpoint(RandomCheckpoint(name, SHAPES[name], dict(shapes_of(name))), context=1024)
    prompt = [(7919 * i + 1) % model.config.vocab_size for i in range(PROMPT)]
    model.stream(prompt, 3, ignore_eos=True).complete()  # compiles, captures
    rates, firsts = [], []
    for _ in range(rounds):
        model.engine.loop.clear()
        figures = model.stream(prompt, tokens, ignore_eos=True).complete().figures
        rates.append(figures.tokens_per_second or 0.0)
        firsts.append((figures.first_token or 0.0) * 1e3)
    params = {"dtype": model.dtype, "prompt": PROMPT, "tokens": tokens, "shape": name}
    for row, values, unit in ((f"{name}: decode", rates, "tokens/s"), (f"{name}: first token", firsts, "ms")):
        yield BenchmarkResult(
            row,
            CATEGORY,
            params=params,
            value=median(values),
            unit=unit,
            better="higher" if unit == "tokens/s" else "lower",
            samples=values,
            iterations=rounds,
        )


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """transformers, eager, beside each of our rates."""
    for mine in ours:
        if mine.unit != "tokens/s":
            continue
        key = f"{mine.name} beside transformers eager"
        command = [sys.executable, "-m", __name__, str(mine.params["shape"])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            yield Unavailable(f"{CATEGORY}/{key}", (done.stderr.strip().splitlines() or ["no message"])[-1][-200:])
            continue
        theirs = json.loads(lines[-1])
        yield BenchmarkResult(
            key,
            CATEGORY,
            params=mine.params,
            value=mine.value,
            unit="tokens/s",
            better="higher",
            peer=f"transformers {theirs['version']}, eager",
            peer_value=theirs["rate"],
        )


def shapes_of(name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of a shape, by its name in files."""
    from pygpukit.llm.models import MODEL_SPECS

    c, spec = SHAPES[name], MODEL_SPECS[SHAPES[name]["model_type"]]
    hidden, inner = c["hidden_size"], c["intermediate_size"]
    keys = c["num_key_value_heads"] * hidden // c["num_attention_heads"]
    yield spec.embed_tokens, (c["vocab_size"], hidden)
    yield spec.final_norm, (hidden,)
    if not c["tie_word_embeddings"]:
        yield str(spec.lm_head), (c["vocab_size"], hidden)
    products = [(spec.q_proj, hidden, hidden), (spec.k_proj, keys, hidden), (spec.v_proj, keys, hidden)]
    products += [(spec.o_proj, hidden, hidden), (str(spec.down_proj), hidden, inner)]
    products += [(str(spec.gate_proj), inner, hidden), (str(spec.up_proj), inner, hidden)]
    for layer in range(c["num_hidden_layers"]):
        for product, out, columns in products:
            yield product.format(layer), (out, columns)
        for tensor in (spec.attn_norm, spec.mlp_norm):
            yield str(tensor).format(layer), (hidden,)
        if c["model_type"] == "qwen2":
            for bias, size in ((spec.q_bias, hidden), (spec.k_bias, keys), (spec.v_bias, keys)):
                yield str(bias).format(layer), (size,)


def transformers_rate(name: str) -> dict[str, Any]:
    """The rate that transformers reaches, eager, with a cache, greedy, in the type that we use."""
    import torch
    import transformers

    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    fields = {key: value for key, value in SHAPES[name].items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(SHAPES[name]["model_type"], **fields)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    rates = []
    with torch.no_grad():
        for _ in range(3):
            prompt, cache = torch.arange(1, PROMPT + 1, device=device)[None], None
            for step in range(TOKENS):
                if step == 1:
                    started = time.perf_counter()
                out = model(prompt, past_key_values=cache, use_cache=True)
                cache, prompt = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
                prompt.item()
            rates.append((TOKENS - 1) / (time.perf_counter() - started))
    return {"rate": median(rates), "version": transformers.__version__}


if __name__ == "__main__":
    print(json.dumps(transformers_rate(sys.argv[1])))
