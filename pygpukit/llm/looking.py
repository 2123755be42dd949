"""Looking inside a model: what each token of a prompt attends to, and which experts it goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.moe.layer import MoELayer, watching

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.generating import Prompt
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.moe.routing import Routed

MAX_TOKENS = 1024  # tokens: the result grows with their square


def attention(model: CausalTransformerModel, prompt: Prompt, layer: int) -> Any:
    """The attention weights of a layer over a prompt: a NumPy array, float32 (heads, tokens, tokens); rows add up to 1,
    with sinks (gpt-oss) to less.

    prompt: text, token ids or messages. Row i is what token i sees of those up to itself. Raises InvalidSpecError for a
    layer that is not there, a model without attention, and for more than 1024 tokens.
    """
    import numpy as np

    if not 0 <= layer < len(model.blocks):
        raise InvalidSpecError(f"there is no layer {layer}: {model.name} has 0 to {len(model.blocks) - 1}", "layer")
    attn = model.engine.network.attention_blocks(f"{model.name}: attention()", "model")[layer].attn
    ids, _ = model._ids(prompt)
    if len(ids) > MAX_TOKENS:
        raise InvalidSpecError(f"the prompt has {len(ids)} tokens; attention is shown of up to {MAX_TOKENS}", "prompt")
    with model.engine.network.at_home():
        q, k = (_float32(part) for part in _queries_and_keys(model, attn, ids, layer))
    keys = np.repeat(k, q.shape[1] // k.shape[0], axis=0)
    scores = np.einsum("thd,hsd->hts", q, keys) * np.float32(attn.scale)
    if attn.cap is not None:
        scores = np.tanh(scores / np.float32(attn.cap)) * np.float32(attn.cap)
    back = np.arange(len(ids))[:, None] - np.arange(len(ids))
    scores[:, (back < 0) | (back >= (attn.window or len(ids)))] = -np.inf
    if attn.chunk is not None:
        chunk = np.arange(len(ids)) // attn.chunk
        scores[:, chunk[:, None] != chunk] = -np.inf
    sinks = np.full((len(scores), 1, 1), -np.inf, np.float32)
    if attn.sinks is not None:
        sinks[:, 0, 0] = attn.sinks.to_numpy()
    largest = np.maximum(scores.max(axis=2, keepdims=True), sinks)
    weights = np.exp(scores - largest)
    return weights / (weights.sum(axis=2, keepdims=True) + np.exp(sinks - largest))


def routing(model: CausalTransformerModel, prompt: Prompt) -> dict[int, tuple[Any, Any]]:
    """The experts that each token of a prompt goes to, by the number of the layer.

    Parameters
    ----------
    model : CausalTransformerModel
        One with mixtures of experts.
    prompt : str, sequence of int, or messages
        Shorter than the context.

    Returns
    -------
    dict
        Of each layer with a mixture two NumPy arrays (tokens, experts of a token), best first: the experts' numbers,
        int32, and their weights, float32.

    Raises
    ------
    InvalidSpecError
        For a model without mixtures, and for what cannot be a prompt.

    Examples
    --------
    >>> experts, weights = gp.llm.routing(model, "Hello")[0]  # doctest: +SKIP
    """
    import numpy as np

    layers = ((number, getattr(block, "mlp", None)) for number, block in enumerate(model.blocks))
    numbers = {id(layer): number for number, layer in layers if isinstance(layer, MoELayer)}
    if not numbers:
        raise InvalidSpecError(f"{model.name} has no mixtures of experts", "model")
    model.engine.network.attention_blocks(f"{model.name}: routing()", "model")
    ids, _ = model._ids(prompt)
    with watching() as routes:
        model.engine.hidden(ids)
    parts: dict[int, list[Routed]] = {}
    for layer, routed in routes:
        parts.setdefault(numbers[id(layer)], []).append(routed)
    return {
        number: (
            np.concatenate([part.experts.to_numpy() for part in own]),
            np.concatenate([part.weights.to_numpy() for part in own]),
        )
        for number, own in sorted(parts.items())
    }


def _queries_and_keys(
    model: CausalTransformerModel, attn: Attention, ids: list[int], layer: int
) -> tuple[GPUArray, GPUArray]:
    """Rotated queries (tokens, heads, head_dim) and keys (key heads, tokens, head_dim) of a layer."""
    buffers, keys = model.engine.attention(ids, layer)
    config = model.config
    return buffers.qkv[:, : attn.q_dim].clone().reshape(len(ids), config.num_heads, config.head_dim), keys


def _float32(array: GPUArray) -> Any:
    return array.astype("float32").to_numpy()
