"""A small random Whisper model under Hugging Face's names, with peaked attention: uniform attention hides faults."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
CONFIG = {
    "model_type": "whisper",
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 64,
    "vocab_size": 70,
    "num_mel_bins": 80,
    "max_source_positions": 50,
    "max_target_positions": 24,
    "activation_function": "gelu",
    "pad_token_id": 1,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "decoder_start_token_id": 2,
}
TOKENS = [2, 9, 33, 61, 7, 7, 12, 50, 3]


def weights() -> dict[str, Array]:
    """Every tensor, float32."""
    rng = np.random.default_rng(20)

    def new(*shape: int, scale: float) -> Array:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    d = 32
    found = {
        "model.encoder.conv1.weight": new(d, 80, 3, scale=0.1),
        "model.encoder.conv1.bias": new(d, scale=0.1),
        "model.encoder.conv2.weight": new(d, d, 3, scale=0.1),
        "model.encoder.conv2.bias": new(d, scale=0.1),
        "model.encoder.embed_positions.weight": new(50, d, scale=0.5),
        "model.decoder.embed_positions.weight": new(24, d, scale=0.5),
        "model.decoder.embed_tokens.weight": new(70, d, scale=0.6),
    }
    for stack, layers, inner in (("encoder", 2, 48), ("decoder", 3, 64)):
        norms = [f"model.{stack}.layer_norm"]
        for number in range(layers):
            begin = f"model.{stack}.layers.{number}"
            kinds = ("self_attn", "encoder_attn") if stack == "decoder" else ("self_attn",)
            for kind in kinds:
                for part in "qkv":
                    scale = 0.6 if part in "qk" else 0.2
                    found[f"{begin}.{kind}.{part}_proj.weight"] = new(d, d, scale=scale)
                    if part != "k":
                        found[f"{begin}.{kind}.{part}_proj.bias"] = new(d, scale=0.1)
                found[f"{begin}.{kind}.out_proj.weight"] = new(d, d, scale=0.2)
                found[f"{begin}.{kind}.out_proj.bias"] = new(d, scale=0.1)
            for name, shape in (("fc1", (inner, d)), ("fc2", (d, inner))):
                found[f"{begin}.{name}.weight"] = new(*shape, scale=0.2)
                found[f"{begin}.{name}.bias"] = new(shape[0], scale=0.1)
            norms += [f"{begin}.{kind}_layer_norm" for kind in (*kinds, "final")]
        for norm in norms:
            found[f"{norm}.weight"] = 1 + new(d, scale=0.2)
            found[f"{norm}.bias"] = new(d, scale=0.1)
    return found


def mel() -> Array:
    """Features of a window, (80, 100)."""
    return np.random.default_rng(21).uniform(-1, 1.5, (80, 100)).astype(np.float32)
