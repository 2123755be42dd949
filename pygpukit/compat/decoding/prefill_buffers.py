"""PrefillBuffers: the documented arrays of a prompt's pass through the layers, for passes that the caller writes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.config import TransformerConfig


@dataclass
class PrefillBuffers:
    """Room for max_seq_len rows, written by operations with `out=`. `DecodeStrategy.prefill()`, generate() and stream()
    need none of it: their passes have arrays of their own, made once. k_t and v_t are for keys that are repeated for
    all query heads; q_2d and k_2d for the norm of heads."""

    max_seq_len: int
    hidden: GPUArray
    q: GPUArray
    k: GPUArray
    v: GPUArray
    q_proj_out: GPUArray
    k_proj_out: GPUArray
    v_proj_out: GPUArray
    o_proj_out: GPUArray
    q_t: GPUArray
    k_t: GPUArray
    v_t: GPUArray
    attn_out: GPUArray
    attn_out_t: GPUArray
    attn_out_2d: GPUArray
    mlp_gate: GPUArray
    mlp_up: GPUArray
    mlp_down: GPUArray
    cos: GPUArray
    sin: GPUArray
    residual: GPUArray
    norm_out: GPUArray
    q_2d: GPUArray | None = None
    k_2d: GPUArray | None = None

    @classmethod
    def allocate(
        cls, config: TransformerConfig, max_seq_len: int, dtype: str = "float16", use_qk_norm: bool = False
    ) -> PrefillBuffers:
        """Arrays for the sizes of a model.

        Parameters
        ----------
        config : TransformerConfig
            The model's.
        max_seq_len : int
            Rows.
        dtype : str
            Of all arrays.
        use_qk_norm : bool
            Whether q_2d and k_2d are there.

        Raises
        ------
        InvalidSpecError
            Where max_seq_len is no whole number of 1 or more.
        """
        expected = "a whole number of 1 or more"
        if whole(max_seq_len, "max_seq_len", expected) < 1:
            raise InvalidSpecError(f"max_seq_len={max_seq_len!r}; give {expected}", "max_seq_len")
        rows = operator.index(max_seq_len)
        heads, kv_heads, dim = config.num_heads, config.kv_heads, config.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "q": (rows, heads, dim), "k": (rows, kv_heads, dim), "v": (rows, kv_heads, dim),
            "q_proj_out": (rows, heads * dim), "k_proj_out": (rows, kv_heads * dim),
            "v_proj_out": (rows, kv_heads * dim), "attn_out_t": (rows, heads, dim), "attn_out_2d": (rows, heads * dim),
            "cos": (rows, dim), "sin": (rows, dim),
        }  # fmt: skip
        shapes |= dict.fromkeys(("q_t", "k_t", "v_t", "attn_out"), (heads, rows, dim))
        shapes |= dict.fromkeys(("mlp_gate", "mlp_up"), (rows, config.ffn_size))
        shapes |= dict.fromkeys(_OF_THE_STREAM, (rows, config.hidden_size))
        if use_qk_norm:
            shapes |= {"q_2d": (rows * heads, dim), "k_2d": (rows * kv_heads, dim)}
        return cls(rows, **{name: factory.zeros(shape, dtype) for name, shape in shapes.items()})


_OF_THE_STREAM = ("hidden", "residual", "norm_out", "o_proj_out", "mlp_down")
