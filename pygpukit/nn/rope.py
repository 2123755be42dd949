"""Tables of cosines and sines for a model's positions, by its kind of rope scaling."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.config import TransformerConfig
from pygpukit.ops.nn.rope import tables as rope_tables

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Tables = tuple[GPUArray, GPUArray]  # cos and sin


def tables(config: TransformerConfig, positions: int) -> Tables | None:
    """(cos, sin), each (positions, n / 2) float32, one angle a pair of halves of the n elements that are rotated; None
    without rotation.

    Raises InvalidSpecError naming a kind of scaling that is not there.
    """
    if not config.use_rope:
        return None
    from pygpukit.ops.copying import contiguous

    half = (config.rotary_dim or config.head_dim) // 2
    cos, sin = _full(config, positions)
    return contiguous(cos[:, :half]), contiguous(sin[:, :half])


def local_tables(config: TransformerConfig, positions: int) -> Tables | None:
    """tables() of layers with a window; None where they are those of the other layers."""
    if config.local_rope_theta is None:
        return None
    return tables(replace(config, rope_theta=config.local_rope_theta, rope_scaling=None), positions)


def _full(config: TransformerConfig, positions: int) -> Tables:
    dim, base, scaling = config.rotary_dim or config.head_dim, config.rope_theta, config.rope_scaling or {}
    kind = scaling.get("rope_type", "default")
    factor = float(scaling.get("factor", 1.0))
    original = int(scaling.get("original_max_position_embeddings") or config.max_position_embeddings)
    if kind == "default":
        return rope_tables.rope_init_linear(positions, dim, base)
    if kind == "linear":
        return rope_tables.rope_init_linear(positions, dim, base, factor)
    if kind == "llama3":
        low, high = float(scaling.get("low_freq_factor", 1.0)), float(scaling.get("high_freq_factor", 4.0))
        return rope_tables.rope_init_llama3(positions, dim, base, factor, low, high, original)
    if kind == "divided":
        return rope_tables.rope_init_divided(positions, dim, base, scaling["divisors"])
    if kind == "longrope":
        name = "long_factor" if positions > original else "short_factor"
        if len(scaling[name]) != dim // 2:
            raise InvalidSpecError(f"{name} has {len(scaling[name])} numbers, heads rotate {dim // 2} pairs", name)
        factor = float(scaling.get("factor") or config.max_position_embeddings / original)
        grown = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
        grown = float(scaling.get("attention_factor") or grown)
        return rope_tables.rope_init_divided(positions, dim, base, scaling[name], grown)
    if kind == "yarn":
        fast, slow = float(scaling.get("beta_fast") or 32.0), float(scaling.get("beta_slow") or 1.0)
        strength = scaling.get("attention_factor")
        if strength is None and scaling.get("mscale") and scaling.get("mscale_all_dim"):
            strength = _mscale(factor, float(scaling["mscale"])) / _mscale(factor, float(scaling["mscale_all_dim"]))
        weight = 0.1 if strength is None or factor <= 1 else (float(strength) - 1) / math.log(factor)
        return rope_tables.rope_init_yarn(
            positions, dim, base, factor, original, fast, slow, weight, truncate=scaling.get("truncate") is not False
        )
    raise InvalidSpecError(
        f"rope scaling of the type {kind!r} is not there yet; known are default, linear, llama3, yarn, longrope and "
        "divided",
        "rope_type",
    )


def _mscale(factor: float, mscale: float) -> float:
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def precompute_freqs_cis(
    head_dim: int, max_seq_len: int, theta: float = 10000.0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Cosines and sines of all positions on the host, each (max_seq_len, head_dim) float32, one angle a pair of halves,
    twice. Raises ShapeError, InvalidSpecError."""
    cos, sin = rope_tables.rope_init_linear(max_seq_len, head_dim, theta)
    return cos.to_numpy(), sin.to_numpy()


def apply_rotary_pos_emb_numpy(
    q: np.ndarray[Any, Any], k: np.ndarray[Any, Any], cos: np.ndarray[Any, Any], sin: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """q and k, (positions, heads, head_dim) on the host, rotated by precompute_freqs_cis()'s tables: new arrays."""
    import numpy as np

    def rotated(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        half = x.shape[-1] // 2
        rotated_halves = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
        return x * cos[:, None] + rotated_halves * sin[:, None]

    return rotated(q), rotated(k)
