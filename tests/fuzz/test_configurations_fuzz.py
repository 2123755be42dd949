"""Damaged config.json, generation_config.json and tokenizer_config.json: each loads, or is refused by an error of ours.

Every field in turn takes a value of every type. PYGPUKIT_FUZZ_CONFIGS sets how many are tried, all of them by 0.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import model_files
import pytest
from llm.tiny_weights import CONFIGS, tensors

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ModelFileError

COUNT = int(os.environ.get("PYGPUKIT_FUZZ_CONFIGS", "400"))
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0}
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**31, 2**63, 10**30, 0.0, -1.5, 0.5, 1e999, float("nan"), "", "7", "full",
    "\ud800", [], {}, [1], ["a"], [[]], [None], {"a": 1}, {"rope_type": "yarn"}, LLAMA3,
    {"type": "linear", "factor": -1},
    {"rope_type": ["linear"], "factor": "2"}, {"quant_method": "fp8"}, {"0": "a"}, {"0": {"content": 3}},
    {"99999999999": {"content": "x"}}, {"content": "<|a|>"}, {"content": ["x"]},
    [{"name": "default", "template": 3}], [{"name": ["default"], "template": "x"}],
)  # fmt: skip
MORE = {
    "llama": ["rope_scaling", "rope_parameters", "sliding_window", "layer_types", "attention_bias", "mlp_bias"]
    + ["head_dim", "eos_token_id", "quantization_config", "architectures", "original_max_position_embeddings"],
    "qwen2": ["use_sliding_window", "max_window_layers", "sliding_window"],
    "gpt2": ["n_inner", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"],
}
TOKENIZER = {"bos_token": "<|a|>", "eos_token": {"content": "<|b|>"}, "pad_token": None, "chat_template": "x"}
TOKENIZER |= {"added_tokens_decoder": {}, "add_bos_token": True, "model_max_length": 9}


def places() -> Iterator[tuple[str, str, str]]:
    """(architecture, file, field)."""
    for kind, more in MORE.items():
        for name in [*CONFIGS[kind], *more]:
            yield kind, "config.json", name
    for name in ("eos_token_id", "bos_token_id", "temperature"):
        yield "llama", "generation_config.json", name
    for name in TOKENIZER:
        yield "llama", "tokenizer_config.json", name


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for kind in MORE:
        values = {name.removeprefix("transformer."): value for name, value in tensors(CONFIGS[kind]).items()}
        made[kind] = model_files.folder(tmp_path_factory.mktemp(kind) / "m", values, **CONFIGS[kind])
    return made


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_damaged_configuration_raises_anything_else(folders: dict[str, Path]) -> None:
    whole = {
        "config.json": CONFIGS,
        "generation_config.json": {"llama": {}},
        "tokenizer_config.json": {"llama": TOKENIZER},
    }
    tries = [(*place, value) for place in places() for value in ODD]
    if COUNT:
        tries = random.Random(3).sample(tries, min(COUNT, len(tries)))
    outcomes = [0, 0]
    for kind, file, name, value in tries:
        path = folders[kind] / file
        before = path.read_text() if path.exists() else None
        path.write_text(json.dumps({**whole[file][kind], name: value}))
        try:
            model = gp.llm.load(folders[kind], progress=False)
            if model.tokenizer is not None:
                model.tokenizer.encode("hello")
                model.stream([1, 2], 1).complete()
            outcomes[0] += 1
        except (InvalidSpecError, ModelFileError) as error:
            assert str(error)
            outcomes[1] += 1
        except BaseException as error:
            raise AssertionError(f"{kind} {file}: {name} = {value!r}: {type(error).__name__}: {error}") from error
        finally:
            path.unlink() if before is None else path.write_text(before)
    print(f"loaded and refused: {outcomes}")
    assert min(outcomes) > len(tries) // 10
