"""Models that read pictures or sounds, too: the text of each is that of the same model without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llm import tiny
from llm.tiny_weights import CONFIGS, tensors

from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.llm.weights import from_checkpoint
from pygpukit.models.text_part import TextPart

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
Names = Callable[[str], str]


def older(name: str) -> str:
    return f"language_model.{name}"


def newer(name: str) -> str:
    return name.replace("model.", "model.language_model.", 1)


def idefics(name: str) -> str:
    return name.replace("model.", "model.text_model.", 1)


def same(name: str) -> str:
    return name


def whole(kind: str, type_of: str, name_of: Names, towers: tuple[str, ...], **changes: Any) -> tiny.MemoryCheckpoint:
    """The small model of text, as the text of a larger one."""
    text = CONFIGS[kind]
    found = {name_of(name): values for name, values in tensors(text).items()}
    found |= {f"{tower}.layers.0.weight": np.full((2, 3), np.nan, np.float32) for tower in towers}
    return tiny.MemoryCheckpoint({"model_type": type_of, "text_config": text} | changes, found, "pictures")


def logits(checkpoint: tiny.MemoryCheckpoint) -> np.ndarray:
    model = from_checkpoint(checkpoint, dtype="float32")
    return model.get_logits(model(IDS)[0]).to_numpy()


@pytest.mark.parametrize(
    ("kind", "type_of", "name_of", "towers"),
    [
        ("gemma3", "gemma3", older, ("vision_tower", "multi_modal_projector")),
        ("gemma3", "gemma3", newer, ("model.vision_tower", "model.multi_modal_projector")),
        ("llama", "llava", older, ("vision_tower", "multi_modal_projector")),
        ("llama", "idefics3", idefics, ("model.vision_model", "model.connector")),
        ("mistral", "voxtral", older, ("audio_tower", "multi_modal_projector")),
        ("qwen3", "qwen3_vl", newer, ("model.visual",)),
        ("llama4", "llama4", older, ("vision_model", "multi_modal_projector")),
    ],
)
def test_its_text_is_that_of_the_model_without(
    kind: str, type_of: str, name_of: Names, towers: tuple[str, ...]
) -> None:
    with pytest.warns(UserWarning, match=f"text of a {type_of} model .* left out: {len(towers)} tensors of"):
        found = logits(whole(kind, type_of, name_of, towers))
    np.testing.assert_array_equal(found, logits(tiny.MemoryCheckpoint(CONFIGS[kind], tensors(CONFIGS[kind]))))


@pytest.mark.parametrize("scaling", [{"type": "mrope", "mrope_section": [2, 3, 3]}, {"rope_type": "default"}, None])
def test_fields_of_both_side_by_side(scaling: Any) -> None:
    text = CONFIGS["qwen2"] | {"model_type": "qwen2_5_vl", "rope_scaling": scaling}
    config = text | {"vision_config": {"depth": 2}, "image_token_id": 7, "vision_start_token_id": 8}
    found = tensors(CONFIGS["qwen2"]) | {"visual.blocks.0.attn.qkv.weight": np.ones((2, 2), np.float32)}
    with pytest.warns(UserWarning, match="left out: 1 tensors of visual") as told:
        pictured = logits(tiny.MemoryCheckpoint(config, found))
    assert len(told) == 1  # no field was unknown
    np.testing.assert_array_equal(pictured, logits(tiny.MemoryCheckpoint(CONFIGS["qwen2"], tensors(CONFIGS["qwen2"]))))


def config_of(**fields: Any) -> dict[str, Any]:
    with pytest.warns(UserWarning, match="the text of a"):
        return TextPart(tiny.MemoryCheckpoint(fields, {})).config


def test_what_a_nested_configuration_leaves_out() -> None:
    """As google/gemma-3-4b-it and llava-1.5-7b-hf have it."""
    text = {"hidden_size": 2560, "model_type": "gemma3_text", "sliding_window": 1024}
    config = config_of(model_type="gemma3", eos_token_id=[1, 106], torch_dtype="bfloat16", text_config=text)
    assert config["vocab_size"] == 262208 and config["eos_token_id"] == [1, 106] and config["sliding_window"] == 1024
    assert (
        config_of(model_type="x", text_config={"model_type": "mistral", "sliding_window": None})["sliding_window"]
        is None
    )
    config = config_of(
        model_type="llava", text_config={"model_type": "llama", "vocab_size": 32064}, image_token_index=5
    )
    assert (config["hidden_size"], config["num_attention_heads"], config["vocab_size"]) == (4096, 32, 32064)
    assert "image_token_index" not in config
    outer = config_of(model_type="x", tie_word_embeddings=True, text_config={"tie_word_embeddings": False})
    assert outer["tie_word_embeddings"] is False


def test_a_scaled_rotation_stays_scaled() -> None:
    scaling = {"type": "mrope", "rope_type": "linear", "factor": 2.0, "mrope_section": [1, 1, 2]}
    text = {"model_type": "qwen2_5_vl_text", "rope_scaling": scaling}
    assert config_of(model_type="qwen2_5_vl", text_config=text)["rope_scaling"] == {
        "type": "default",
        "rope_type": "linear",
        "factor": 2.0,
    }


def test_what_is_neither_text_nor_a_known_tower_is_refused() -> None:
    with (
        pytest.warns(UserWarning, match="left out: 0 tensors$"),
        pytest.raises(InvalidSpecError, match=r"no use for the tensor 'pictures\.layers\.0\.weight'"),
    ):
        logits(whole("llama", "new", older, ("pictures",)))
    unknown = {"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text"}}
    with pytest.warns(UserWarning), pytest.raises(InvalidSpecError, match="type 'gemma3n_text' are not there yet"):
        from_checkpoint(tiny.MemoryCheckpoint(unknown, {}))


def test_two_tensors_of_one_place_are_refused() -> None:
    both = {name: np.ones(2, np.float32) for name in ("model.norm.weight", "language_model.model.norm.weight")}
    with pytest.raises(ModelFileError, match=r"both the text's model\.norm\.weight"):
        TextPart(tiny.MemoryCheckpoint({"text_config": {}}, both))
