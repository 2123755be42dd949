"""Models without a config.json: read by the shapes of their tensors, or refused by the field that is to be given."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm import tiny_weights
from safetensors.numpy import save_file

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError

SMALL = {"vocab_size": 99, "hidden_size": 256, "intermediate_size": 96, "max_position_embeddings": 64}


def alone(path: Path, kind: str, **changes: Any) -> tuple[Path, dict[str, Any]]:
    """(file, its configuration) of a random model, with no config.json beside it."""
    config = {**tiny_weights.CONFIGS[kind], **SMALL, **changes}
    if kind == "gpt2":
        config = {**tiny_weights.CONFIGS[kind], **changes}
    path.mkdir()
    save_file(tiny_weights.tensors(config, 3), path / "model.safetensors")
    return path / "model.safetensors", config


def with_config(path: Path, config: dict[str, Any]) -> gp.llm.CausalTransformerModel:
    """The same weights, by their config.json."""
    (path.parent / "config.json").write_text(json.dumps(config))
    whole = gp.llm.load(path.parent, progress=False, context=64)
    (path.parent / "config.json").unlink()
    return whole


def answer(model: gp.llm.CausalTransformerModel) -> np.ndarray[Any, Any]:
    return model(list(range(20)))[0].to_numpy()


CASES = {
    "llama, heads of 64": ("llama", {"num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6}),
    "qwen2, heads of 64": ("qwen2", {"num_attention_heads": 4, "num_key_value_heads": 1, "rms_norm_eps": 1e-6}),
    "qwen3, heads by their norm": ("qwen3", {"head_dim": 32, "num_attention_heads": 6, "rms_norm_eps": 1e-6}),
    "tied": ("llama", {"num_attention_heads": 4, "tie_word_embeddings": True, "rms_norm_eps": 1e-6}),
    "gpt2": ("gpt2", {"n_embd": 256, "n_head": 4, "vocab_size": 90}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_model_is_that_of_its_config(tmp_path: Path, case: str, is_folder: bool) -> None:
    kind, changes = CASES[case]
    path, config = alone(tmp_path / "model", kind, **changes)
    expected = with_config(path, config)
    with pytest.warns(UserWarning, match="has no config.json, and its shapes do not say all: model_type"):
        found = gp.llm.load(path.parent if is_folder else path, progress=False, context=64)
    ours, theirs = found.config, expected.config
    for name in ("vocab_size", "hidden_size", "num_layers", "num_heads", "kv_heads", "head_dim", "ffn_size"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.tie_word_embeddings == theirs.tie_word_embeddings
    assert (answer(found) == answer(expected)).all()


def test_what_the_shapes_do_not_say_is_taken_from_config(tmp_path: Path) -> None:
    own = {"num_attention_heads": 8, "num_key_value_heads": 4, "rope_theta": 500000.0, "rms_norm_eps": 1e-5}
    path, config = alone(tmp_path / "model", "llama", **own)
    expected = with_config(path, config)
    more = {"model_type": "llama", "max_position_embeddings": 64, "rope_theta": 500000.0, "rms_norm_eps": 1e-5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing was left to guess
        found = gp.llm.load(path, progress=False, config={**more, "num_attention_heads": 8})
    assert (found.config.num_heads, found.config.kv_heads, found.context) == (8, 4, 64)
    assert (answer(found) == answer(expected)).all()
    with pytest.warns(UserWarning, match="num_attention_heads 4, num_key_value_heads 2, head_dim 64"):
        guess = gp.llm.load(path, progress=False)
    assert guess.config.head_dim == 64


@pytest.mark.parametrize(
    "kind, changes, config, message",
    [
        ("llama", {"hidden_size": 32, "num_attention_heads": 4}, {}, r"how many heads its 32 .*num_attention_heads"),
        ("llama", {"num_attention_heads": 4}, {"num_attention_heads": 7}, "num_heads, 7"),
        ("llama", {"num_attention_heads": 4}, {"num_attention_heads": "four"}, "num_attention_heads"),
        ("olmo2", {"num_attention_heads": 4}, {}, "config.json, which models of the type olmo2 need"),
        ("gemma3", {"num_attention_heads": 4}, {}, "config.json, which models of the type gemma3_text need"),
    ],
)
def test_what_cannot_be_found_is_refused(
    tmp_path: Path, kind: str, changes: dict[str, Any], config: dict[str, Any], message: str
) -> None:
    path, _ = alone(tmp_path / "model", kind, **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InvalidSpecError, match=message):
            gp.llm.load(path, progress=False, config=config)


def test_tensors_of_no_model(tmp_path: Path) -> None:
    save_file({"a": np.zeros(3, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(InvalidSpecError, match="no known architecture has these tensors"):
        gp.llm.load(tmp_path, progress=False)
    save_file({"model.embed_tokens.weight": np.zeros(3, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(InvalidSpecError, match="embeddings"):
        gp.llm.load(tmp_path, progress=False, config={"model_type": "llama"})


def test_config_counts_before_the_models_own(tmp_path: Path) -> None:
    path, config = alone(tmp_path / "model", "llama", num_attention_heads=4)
    (path.parent / "config.json").write_text(json.dumps(config))
    assert gp.llm.load(path, progress=False, config={"max_position_embeddings": 32}).context == 32
    with pytest.raises(InvalidSpecError, match="'bert' are encoders"):
        gp.llm.load(path, progress=False, config={"model_type": "bert"})
