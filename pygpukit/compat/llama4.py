"""Llama 4 (text) by hand, as documented: whole texts without a cache. load() has the loop, the cache, few bits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.backend import is_sim
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.llm.layer_weights import LayerWeights
from pygpukit.llm.models import prefix_of, read_config
from pygpukit.llm.models.llama4 import LLAMA4, mixture
from pygpukit.models import open_checkpoint
from pygpukit.models.text_part import TextPart, has_text_part
from pygpukit.nn.loading import TensorLoader
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

_INTERVAL = 4  # every so many layers one does not rotate


@dataclass
class Llama4Config:
    """Llama 4's sizes by their names in config.json. no_rope_layers: 1 for each layer that rotates; None: three of
    four. attention_chunk_size: what a layer that rotates sees of a text, counted from its beginning."""

    vocab_size: int = 202048
    hidden_size: int = 5120
    intermediate_size: int = 8192
    num_hidden_layers: int = 48
    num_attention_heads: int = 40
    num_key_value_heads: int = 8
    head_dim: int = 128
    rms_norm_eps: float = 1e-05
    attn_scale: float = 0.1
    floor_scale: float = 8192.0
    use_qk_norm: bool = True
    max_position_embeddings: int = 10485760
    no_rope_layers: list[int] | None = None
    rope_theta: float = 500000.0
    attention_chunk_size: int = 8192

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Llama4Config:
        """The fields of a config.json, or of its text_config, that are these; defaults for the others."""
        stored = json.loads(Path(path).read_text())
        stored = stored.get("text_config", stored)
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})

    def rotates(self, layer: int) -> bool:
        """True for a layer whose heads are rotated."""
        if self.no_rope_layers is None:
            return (layer + 1) % _INTERVAL != 0
        return self.no_rope_layers[layer] == 1


class Llama4Attention:
    """Attention of a whole text: heads rotated and normalised, in chunks, or neither and with queries that grow.

    Weights are arrays (out, in) of one type, rows of q and k in the order of files: pairs are neighbours.
    """

    def __init__(
        self,
        q_proj: GPUArray,
        k_proj: GPUArray,
        v_proj: GPUArray,
        o_proj: GPUArray,
        config: Llama4Config,
        use_rope: bool = True,
    ) -> None:
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = q_proj, k_proj, v_proj, o_proj
        self.config, self.use_rope = config, use_rope
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.head_dim
        q, kv, hidden = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim, config.hidden_size
        expected = {"q_proj": (q, hidden), "k_proj": (kv, hidden), "v_proj": (kv, hidden), "o_proj": (hidden, q)}
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise ShapeError(f"Llama4Attention: {name} has shape {getattr(self, name).shape}, must be {shape}")

    def forward(self, hidden: GPUArray, positions: GPUArray) -> GPUArray:
        """Of rows (S, hidden) of neighbouring positions (S,)."""
        from pygpukit.ops.nn import irope_scale_q, l2norm, rope_inplace, sdpa_causal

        config, count = self.config, hidden.shape[0]
        q, k, v = (
            matmul(hidden, weight.T).reshape(count, -1, self.head_dim)
            for weight in (self.q_proj, self.k_proj, self.v_proj)
        )
        bounds = [0, count]
        if self.use_rope:
            places = positions.to_numpy()
            rope_inplace(q, k, *self._tables(places), layout="gptj")
            if config.use_qk_norm:
                q, k = l2norm(q, config.rms_norm_eps), l2norm(k, config.rms_norm_eps)
            first = int(places[0]) if count else 0
            chunk = config.attention_chunk_size
            bounds[1:1] = [end for end in range(chunk - first % chunk, count, chunk) if end > 0]
        else:
            q = irope_scale_q(q, positions, config.attn_scale, config.floor_scale)
        q, k, v = (heads.transpose(1, 0, 2) for heads in (q, k, v))
        from pygpukit import concatenate

        parts = [sdpa_causal(q[:, begin:end], k[:, begin:end], v[:, begin:end]) for begin, end in pairwise(bounds)]
        rows = (parts[0] if len(parts) == 1 else concatenate(parts, axis=1)).transpose(1, 0, 2)
        return matmul(rows.reshape(count, -1), self.o_proj.T)

    def _tables(self, places: np.ndarray[Any, Any]) -> tuple[GPUArray, GPUArray]:
        """Cosines and sines of these positions, an angle a pair."""
        import numpy as np

        from pygpukit.array.factory import from_numpy

        rates = self.config.rope_theta ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        angles = np.outer(places.astype(np.float64), rates)
        return from_numpy(np.cos(angles).astype(np.float32)), from_numpy(np.sin(angles).astype(np.float32))


class Llama4MLP:
    """down(silu(gate(x)) * up(x)): arrays (out, in) of one type."""

    def __init__(self, gate_proj: GPUArray, up_proj: GPUArray, down_proj: GPUArray) -> None:
        self.gate_proj, self.up_proj, self.down_proj = gate_proj, up_proj, down_proj

    def forward(self, hidden: GPUArray) -> GPUArray:
        """Of rows (S, hidden)."""
        from pygpukit import swiglu

        gated = swiglu(matmul(hidden, self.gate_proj.T), matmul(hidden, self.up_proj.T))
        return matmul(gated, self.down_proj.T)

    __call__ = forward


class Llama4Block:
    """One layer. mlp: a Llama4MLP, or anything that gives rows for rows, as MoELayer does."""

    def __init__(
        self,
        attn: Llama4Attention,
        mlp: Callable[[GPUArray], GPUArray],
        input_norm_weight: GPUArray,
        post_attn_norm_weight: GPUArray,
        rms_norm_eps: float,
    ) -> None:
        self.attn, self.mlp = attn, mlp
        self.input_norm_weight, self.post_attn_norm_weight = input_norm_weight, post_attn_norm_weight
        self.rms_norm_eps = rms_norm_eps

    def forward(self, hidden: GPUArray, positions: GPUArray) -> GPUArray:
        """Of rows (S, hidden) of neighbouring positions (S,)."""
        from pygpukit.ops.nn import rmsnorm

        hidden = hidden + self.attn.forward(rmsnorm(hidden, self.input_norm_weight, self.rms_norm_eps), positions)
        return hidden + self.mlp(rmsnorm(hidden, self.post_attn_norm_weight, self.rms_norm_eps))


class Llama4Model:
    """A model from its parts: tables (vocabulary, hidden), blocks in their order. lm_head: None for the embedding."""

    def __init__(
        self,
        config: Llama4Config,
        embed_tokens: GPUArray,
        blocks: Sequence[Llama4Block],
        final_norm_weight: GPUArray,
        lm_head: GPUArray | None,
    ) -> None:
        self.config, self.embed_tokens, self.blocks = config, embed_tokens, list(blocks)
        self.final_norm_weight, self.lm_head = final_norm_weight, lm_head

    def forward(self, input_ids: Any) -> GPUArray:
        """Logits (S, vocabulary) of a text's token ids (S,)."""
        import numpy as np

        from pygpukit import take
        from pygpukit.array.factory import arange, from_numpy
        from pygpukit.ops.nn import rmsnorm

        ids = np.asarray(input_ids)
        if ids.ndim != 1 or not ids.size:
            raise ShapeError(f"Llama4Model: input_ids has shape {ids.shape}, must be the (S,) ids of one text")
        if ids.min() < 0 or ids.max() >= self.config.vocab_size:
            raise InvalidSpecError(f"input_ids are from 0 to {self.config.vocab_size - 1}", "input_ids")
        hidden, positions = (
            take(self.embed_tokens, from_numpy(ids.astype(np.int32)), 0),
            arange(ids.size, dtype="int32"),
        )
        for block in self.blocks:
            hidden = block.forward(hidden, positions)
        hidden = rmsnorm(hidden, self.final_norm_weight, self.config.rms_norm_eps)
        return matmul(hidden, (self.embed_tokens if self.lm_head is None else self.lm_head).T)

    @classmethod
    def from_safetensors(cls, model_path: str | os.PathLike[str]) -> Llama4Model:
        """A folder of Llama 4 (text), mixtures of experts too: float32 on the simulation, bfloat16 on a GPU.

        Raises InvalidSpecError for another architecture, and as load().
        """
        checkpoint = open_checkpoint(model_path, progress=False)
        try:
            if has_text_part(checkpoint.config):
                checkpoint = TextPart(checkpoint)
            stored = checkpoint.config
            if stored.get("model_type") != LLAMA4.name:
                raise InvalidSpecError(
                    f"{checkpoint.name}: model_type is {stored.get('model_type')!r}, must be {LLAMA4.name!r}; "
                    "gp.llm.load() reads other models", "model_type",
                )  # fmt: skip
            return cls._of(TensorLoader(
                checkpoint, "float32" if is_sim() else "bfloat16", checkpoint.name, False,
                prefix=prefix_of(LLAMA4, checkpoint.names()),
            ), stored)  # fmt: skip
        finally:
            checkpoint.close()

    @classmethod
    def _of(cls, loader: TensorLoader, stored: Any) -> Llama4Model:
        whole = read_config(LLAMA4, stored)
        config = Llama4Config(
            whole.vocab_size, whole.hidden_size, whole.ffn_size, whole.num_layers, whole.num_heads, whole.kv_heads,
            whole.head_dim, whole.norm_eps, whole.query_growth, whole.query_floor, whole.plain_head_norms,
            whole.max_position_embeddings, [int(whole.rotates(number)) for number in range(whole.num_layers)],
            whole.rope_theta, whole.attention_chunk or whole.max_position_embeddings,
        )  # fmt: skip
        q, kv = whole.num_heads * whole.head_dim, whole.kv_heads * whole.head_dim
        hidden, inner, vocabulary = whole.hidden_size, whole.ffn_size, (whole.vocab_size, whole.hidden_size)

        def table(role: str, *shape: int, number: int = 0) -> GPUArray:
            return loader.table(LLAMA4.weights[role].format(number), f"layers.{number:02d}/{role}", shape)

        blocks = []
        with loader:
            for number in range(whole.num_layers):
                shapes = {"q_proj": (q, hidden), "k_proj": (kv, hidden), "v_proj": (kv, hidden), "o_proj": (hidden, q)}
                weights = {role: table(role, *shape, number=number) for role, shape in shapes.items()}
                attention = Llama4Attention(**weights, config=config, use_rope=whole.rotates(number))
                mlp: Callable[[GPUArray], GPUArray]
                if whole.is_sparse(number):
                    mlp = mixture(LayerWeights(loader, LLAMA4, whole, number))
                else:
                    gate, up = (table(f"{part}_proj", inner, hidden, number=number) for part in ("gate", "up"))
                    mlp = Llama4MLP(gate, up, table("down_proj", hidden, inner, number=number))
                before, after = (table(role, hidden, number=number) for role in ("attn_norm", "mlp_norm"))
                blocks.append(Llama4Block(attention, mlp, before, after, whole.norm_eps))
            embedding, norm = table("embed_tokens", *vocabulary), table("final_norm", hidden)
            head = None if whole.tie_word_embeddings else table("lm_head", *vocabulary)
        return cls(config, embedding, blocks, norm, head)


def generate(
    model: Llama4Model, input_ids: Any, max_new_tokens: int = 50, eos_token_id: int = 200001
) -> np.ndarray[Any, Any]:
    """The token ids of a text and what the model adds to it, the most probable token each time, up to eos_token_id.

    The whole text is computed for each token; `gp.llm.load(path).generate()` keeps keys and values.
    """
    import numpy as np

    ids = np.asarray(input_ids).reshape(-1)
    for _ in range(max_new_tokens):
        token = int(model.forward(ids)[-1].astype("float32").to_numpy().argmax())
        ids = np.append(ids, token)
        if token == eos_token_id:
            break
    return ids
