"""DecodeBuffers: the documented arrays of a decode step, allocated once; a step's results are copied into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.compat.decoding.fixed_cache import layers_of
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.compat.decoding.hand import Hand
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.nn.config import TransformerConfig


@dataclass
class DecodeBuffers:
    """Arrays of one decode step, of the type given to allocate(); logits are float32, numbers int32.

    The strategies' steps need no arrays of the caller: they run in their own, made once. Of buffers that they are given
    they write results: hidden, logits, token_id_buf, position_buf and context_len_buf, or of several rows hidden_batch,
    logits_batch, token_ids_batch_buf and start_position_batch_buf. All others are room for steps that the caller writes
    with operations and their `out=`. q_view, k_view and v_view lie in qkv_proj_out, gate_view and up_view in
    gate_up_out.
    """

    hidden: GPUArray
    q: GPUArray
    k: GPUArray
    v: GPUArray
    attn_out: GPUArray
    mlp_gate: GPUArray
    mlp_up: GPUArray
    mlp_down: GPUArray
    q_proj_out: GPUArray
    k_proj_out: GPUArray
    v_proj_out: GPUArray
    o_proj_out: GPUArray
    q_t: GPUArray
    cos: GPUArray
    sin: GPUArray
    embed_out: GPUArray
    residual: GPUArray
    norm_out: GPUArray
    q_2d: GPUArray | None = None
    k_2d: GPUArray | None = None
    q_flat: GPUArray | None = None
    k_flat: GPUArray | None = None
    position_buf: GPUArray | None = None
    qkv_proj_out: GPUArray | None = None
    gate_up_out: GPUArray | None = None
    q_view: GPUArray | None = None
    k_view: GPUArray | None = None
    v_view: GPUArray | None = None
    gate_view: GPUArray | None = None
    up_view: GPUArray | None = None
    logits: GPUArray | None = None
    sampled_token: GPUArray | None = None
    random_val: GPUArray | None = None
    token_id_buf: GPUArray | None = None
    context_len_buf: GPUArray | None = None
    moe_num_experts: int = 0
    moe_num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    moe_router_logits: GPUArray | None = None
    moe_router_weights: GPUArray | None = None
    moe_expert_indices: GPUArray | None = None
    moe_expert_counts: GPUArray | None = None
    moe_expert_offsets: GPUArray | None = None
    moe_permute_indices: GPUArray | None = None
    moe_reverse_perm: GPUArray | None = None
    moe_row_expert_ids: GPUArray | None = None
    moe_gathered: GPUArray | None = None
    moe_gate_out: GPUArray | None = None
    moe_up_out: GPUArray | None = None
    moe_intermediate: GPUArray | None = None
    moe_expert_outputs: GPUArray | None = None
    moe_output: GPUArray | None = None
    max_batch_size: int = 0
    hidden_batch: GPUArray | None = None
    residual_batch: GPUArray | None = None
    norm_out_batch: GPUArray | None = None
    qkv_proj_out_batch: GPUArray | None = None
    q_batch: GPUArray | None = None
    k_batch: GPUArray | None = None
    v_batch: GPUArray | None = None
    q_t_batch: GPUArray | None = None
    attn_out_batch: GPUArray | None = None
    attn_out_t_batch: GPUArray | None = None
    o_proj_out_batch: GPUArray | None = None
    gate_up_out_batch: GPUArray | None = None
    mlp_down_batch: GPUArray | None = None
    cos_batch: GPUArray | None = None
    sin_batch: GPUArray | None = None
    logits_batch: GPUArray | None = None
    q_flat_batch: GPUArray | None = None
    k_flat_batch: GPUArray | None = None
    token_ids_batch_buf: GPUArray | None = None
    start_position_batch_buf: GPUArray | None = None

    @classmethod
    def allocate(
        cls,
        config: TransformerConfig,
        dtype: str = "float16",
        use_qk_norm: bool = False,
        vocab_size: int | None = None,
        max_batch_size: int = 0,
        moe_config: TransformerConfig | None = None,
    ) -> DecodeBuffers:
        """Arrays for the sizes of a model.

        Parameters
        ----------
        config : TransformerConfig
            The model's.
        dtype : str
            Of all but numbers and logits.
        use_qk_norm : bool
            Whether q_2d, k_2d, q_flat and k_flat are there.
        vocab_size : int, optional
            With it logits, sampled_token and random_val are there.
        max_batch_size : int
            Rows of the arrays that end in `_batch`; 0 for none of them.
        moe_config : TransformerConfig, optional
            That of a mixture of experts: the arrays that begin with `moe_` are there, for one row.

        Raises
        ------
        InvalidSpecError
            For a moe_config without experts, and sizes that are no whole numbers of 0 or more.
        """
        rows = whole(max_batch_size, "max_batch_size", "a whole number of 0 or more")
        if rows < 0:
            raise InvalidSpecError(
                f"max_batch_size={max_batch_size!r}; give a whole number of 0 or more", "max_batch_size"
            )
        arrays: dict[str, Any] = _one_row(config, dtype, use_qk_norm)
        if vocab_size is not None:
            arrays |= {"logits": factory.zeros((1, vocab_size), "float32"), "sampled_token": _numbers(1)}
            arrays["random_val"] = factory.zeros(1, "float32")
        if rows:
            arrays |= _several_rows(config, dtype, use_qk_norm, vocab_size, rows)
        if moe_config is not None:
            arrays |= _of_experts(moe_config, dtype)
        return cls(**arrays)

    @classmethod
    def of(cls, model: CausalTransformerModel, rows: int = 0) -> DecodeBuffers:
        """allocate() for a model."""
        config = model.config
        norms = layers_of(model)[0].q_norm is not None
        return cls.allocate(config, model.dtype, norms, config.vocab_size, rows, config if config.is_moe else None)


def check_room(buffers: DecodeBuffers | None, rows: int) -> None:
    """Raises InvalidSpecError for buffers without room for so many rows."""
    if buffers is not None and rows > 1 and rows > buffers.max_batch_size:
        raise InvalidSpecError(
            f"{rows} tokens, and buffers have max_batch_size={buffers.max_batch_size}; allocate them with "
            f"max_batch_size={rows}",
            "buffers",
        )


def fill(buffers: DecodeBuffers | None, hand: Hand, tokens: Sequence[int], position: int) -> GPUArray:
    """The output of the last step's rows, also copied into buffers, where there are some."""
    rows = len(tokens)
    hidden = hand.outputs(rows)
    if buffers is None:
        return hidden
    end = [position + rows]
    if rows == 1:
        _copy(hidden, buffers.hidden)
        _copy(hand.logits(1), buffers.logits)
        numbers = ((buffers.token_id_buf, tokens), (buffers.position_buf, [position]), (buffers.context_len_buf, end))
    else:
        _copy(hidden, None if buffers.hidden_batch is None else buffers.hidden_batch[:rows])
        _copy(hand.logits(rows), None if buffers.logits_batch is None else buffers.logits_batch[:rows])
        ids = None if buffers.token_ids_batch_buf is None else buffers.token_ids_batch_buf[:rows]
        numbers = ((ids, tokens), (buffers.start_position_batch_buf, [position]), (buffers.context_len_buf, end))
    for array, values in numbers:
        if array is not None:
            _set(array, values)
    return hidden


def _copy(source: GPUArray, target: GPUArray | None) -> None:
    if target is not None:
        copying.copy_to(source if source.dtype == target.dtype else source.astype(target.dtype.name), target)


def _set(array: GPUArray, values: Sequence[int]) -> None:
    import numpy as np

    native.copy_from_host(array, np.asarray(values, np.int32))


def _numbers(count: int) -> GPUArray:
    return factory.zeros(count, "int32")


def _arrays(shapes: dict[str, tuple[int, ...]], dtype: str) -> dict[str, GPUArray]:
    return {name: factory.zeros(shape, dtype) for name, shape in shapes.items()}


def _one_row(config: TransformerConfig, dtype: str, use_qk_norm: bool) -> dict[str, GPUArray]:
    heads, kv_heads, dim = config.num_heads, config.kv_heads, config.head_dim
    q, kv, hidden, inner = heads * dim, kv_heads * dim, config.hidden_size, config.ffn_size
    shapes: dict[str, tuple[int, ...]] = {
        "q": (1, heads, dim), "k": (1, kv_heads, dim), "v": (1, kv_heads, dim),
        "attn_out": (heads, 1, dim), "q_t": (heads, 1, dim), "cos": (1, dim), "sin": (1, dim),
        "q_proj_out": (1, q), "k_proj_out": (1, kv), "v_proj_out": (1, kv), "qkv_proj_out": (1, q + 2 * kv),
        "mlp_gate": (1, inner), "mlp_up": (1, inner), "gate_up_out": (1, 2 * inner),
    }  # fmt: skip
    for name in ("hidden", "mlp_down", "o_proj_out", "embed_out", "residual", "norm_out"):
        shapes[name] = (1, hidden)
    if use_qk_norm:
        shapes |= {"q_2d": (heads, dim), "k_2d": (kv_heads, dim), "q_flat": (heads, dim), "k_flat": (kv_heads, dim)}
    arrays = _arrays(shapes, dtype)
    both, three = arrays["gate_up_out"], arrays["qkv_proj_out"]
    arrays |= {"q_view": three[:, :q], "k_view": three[:, q : q + kv], "v_view": three[:, q + kv :]}
    arrays |= {"gate_view": both[:, :inner], "up_view": both[:, inner:]}
    return arrays | {name: _numbers(1) for name in ("position_buf", "token_id_buf", "context_len_buf")}


def _several_rows(
    config: TransformerConfig, dtype: str, use_qk_norm: bool, vocab_size: int | None, rows: int
) -> dict[str, Any]:
    heads, kv_heads, dim = config.num_heads, config.kv_heads, config.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "qkv_proj_out_batch": (rows, (heads + 2 * kv_heads) * dim), "gate_up_out_batch": (rows, 2 * config.ffn_size),
        "q_batch": (rows, heads, dim), "k_batch": (rows, kv_heads, dim), "v_batch": (rows, kv_heads, dim),
        "q_t_batch": (heads, rows, dim), "attn_out_batch": (heads, rows, dim), "attn_out_t_batch": (rows, heads, dim),
        "cos_batch": (rows, dim), "sin_batch": (rows, dim),
    }  # fmt: skip
    for name in ("hidden", "residual", "norm_out", "o_proj_out", "mlp_down"):
        shapes[f"{name}_batch"] = (rows, config.hidden_size)
    if use_qk_norm:
        shapes |= {"q_flat_batch": (rows * heads, dim), "k_flat_batch": (rows * kv_heads, dim)}
    arrays: dict[str, Any] = _arrays(shapes, dtype)
    if vocab_size is not None:
        arrays["logits_batch"] = factory.zeros((rows, vocab_size), "float32")
    numbers = {"token_ids_batch_buf": _numbers(rows), "start_position_batch_buf": _numbers(1), "max_batch_size": rows}
    return arrays | numbers


def _of_experts(config: TransformerConfig, dtype: str) -> dict[str, Any]:
    if config.num_experts is None:
        raise InvalidSpecError("moe_config has no experts; give the configuration of a mixture", "moe_config")
    experts, chosen, inner, hidden = (
        config.num_experts, config.num_experts_per_tok, config.expert_size, config.hidden_size
    )  # fmt: skip
    shapes = {
        "router_logits": (1, experts), "router_weights": (1, chosen), "gathered": (chosen, hidden),
        "gate_out": (chosen, inner), "up_out": (chosen, inner), "intermediate": (chosen, inner),
        "expert_outputs": (chosen, hidden), "output": (1, hidden),
    }  # fmt: skip
    numbers = {
        "expert_indices": chosen, "expert_counts": experts, "expert_offsets": experts + 1, "permute_indices": chosen,
        "reverse_perm": chosen, "row_expert_ids": chosen,
    }  # fmt: skip
    arrays: dict[str, Any] = {f"moe_{name}": factory.zeros(shape, dtype) for name, shape in shapes.items()}
    arrays |= {f"moe_{name}": _numbers(count) for name, count in numbers.items()}
    sizes = {"moe_num_experts": experts, "moe_num_experts_per_tok": chosen, "moe_intermediate_size": inner}
    return arrays | sizes
