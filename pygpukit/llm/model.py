"""CausalTransformerModel: a language model as it is asked, over the engine that runs it."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.device import current_device
from pygpukit.core.elsewhere import Elsewhere
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.engine.engine import Engine
from pygpukit.llm.engine.room import check_room
from pygpukit.llm.generating import Generating
from pygpukit.nn.block import Layer
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.kv_cache import check_kv_dtype
from pygpukit.nn.norm import Norm
from pygpukit.nn.transformer import Transformer

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.llm.describing import Description
    from pygpukit.llm.models.spec import ModelSpec
    from pygpukit.llm.perplexity import TextError
    from pygpukit.llm.scoring import Pooling
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.linear.adapters import Adapter
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.streaming import LayerStreaming
    from pygpukit.nn.transformer import Cache
    from pygpukit.plugins.operation import Operation

_BY_HAND = "pygpukit.compat.decoding.model"


class CausalTransformerModel(Generating):
    """A causal language model on the device.

    embed_tokens: (vocabulary, hidden). lm_head: the same shape, or None where it is embed_tokens. All weights are of
    one type, float32, float16 or bfloat16; what layers add to is float32. load() and load_model_from_safetensors()
    make models from files; this constructor takes layers.

    context: positions a sequence can have; slots: sequences of the whole context that the KV cache has room for, which
    shorter ones share, as many as it holds, or kv_memory: its bytes, or a share of the device's memory ("40%"). It is
    made on first use. kv_dtype: of keys and values, "fp8" or, by default, the weights'. tokenizer: for text in and out;
    without one, token ids only. streaming: of the layers whose weights are on the host.
    """

    def __init__(
        self,
        config: TransformerConfig,
        embed_tokens: GPUArray | Blocks,
        blocks: Sequence[Layer],
        final_norm: Norm,
        lm_head: GPUArray | Blocks | None = None,
        position_embed: GPUArray | None = None,
        spec: ModelSpec | None = None,
        *,
        name: str = "model",
        tokenizer: Tokenizer | None = None,
        generation: dict[str, Any] | None = None,
        context: int | None = None,
        slots: int = 1,
        kv_memory: str | SupportsIndex | None = None,
        kv_dtype: str | None = None,
        streaming: LayerStreaming | None = None,
    ) -> None:
        check_room(context, slots, kv_memory)
        positions = None if context is None else operator.index(context)
        network = Transformer(config, embed_tokens, blocks, final_norm, lm_head, position_embed, positions, streaming)
        self._answer_by(network, spec, name, tokenizer, generation, slots, kv_memory, kv_dtype)

    @classmethod
    def over(
        cls,
        network: Transformer,
        spec: ModelSpec | None,
        *,
        name: str,
        tokenizer: Tokenizer | None,
        generation: dict[str, Any] | None,
        slots: int,
        kv_memory: str | SupportsIndex | None,
        kv_dtype: str | None,
    ) -> CausalTransformerModel:
        """The model of a network that is there already."""
        model = cls.__new__(cls)
        model._answer_by(network, spec, name, tokenizer, generation, slots, kv_memory, kv_dtype)
        return model

    def _answer_by(
        self,
        network: Transformer,
        spec: ModelSpec | None,
        name: str,
        tokenizer: Tokenizer | None,
        generation: dict[str, Any] | None,
        slots: int,
        kv_memory: str | SupportsIndex | None,
        kv_dtype: str | None,
    ) -> None:
        check_room(None, slots, kv_memory)
        check_kv_dtype(kv_dtype)
        self.engine = Engine(network, operator.index(slots), kv_memory=kv_memory, kv_dtype=kv_dtype, name=name)
        self.config, self.spec, self.name = network.config, spec, name
        self.embed_tokens, self.position_embed = network.embed_tokens, network.position_embed
        self.blocks, self.final_norm, self.tokenizer = network.blocks, network.final_norm, tokenizer
        self.generation = dict(generation or {})
        self.adapters: dict[str, Adapter] = {}
        self.quantisation_errors: dict[str, float] = {}  # by tensor that load() rounded: relative, root mean square
        self.load_reference: Callable[[], CausalTransformerModel] | None = None  # of what load() rounded, as it was
        self.replaced: dict[
            str, Operation
        ] = {}  # by the built-in operation's name: what load(replace=) put in its place
        self.expanded: dict[str, tuple[int, int]] = {}  # by kind of few bits: bytes in the file, and on the device
        self.reordered = 0  # bytes of weights whose columns lie by their groups of scales, not as in the file

    @classmethod
    def from_pretrained(cls, model: str | os.PathLike[str], **options: Any) -> CausalTransformerModel:
        """gp.llm.load(), with its options."""
        from pygpukit.llm.weights import load

        return load(model, **options)

    @property
    def lm_head(self) -> GPUArray | Blocks:
        """The weight that gives logits; embed_tokens itself where they are tied."""
        return self.engine.network.lm_head

    @property
    def dtype(self) -> str:
        """The weights' type."""
        return self.engine.network.dtype

    @property
    def context(self) -> int:
        """Positions that a sequence can have."""
        return self.engine.context

    @property
    def cache(self) -> Cache:
        """Keys and values of all open sequences, or their states."""
        return self.engine.loop.cache

    def describe(self, context: int = 0) -> Description:
        """Weights by layer and kind, bytes and operations of a token, and the least time that it can take.

        Parameters
        ----------
        context : int
            Positions whose keys and values the token reads.

        Returns
        -------
        Description
            Printed as a table; `lines`, `nbytes`, `bytes_by_kind`, `expanded`, `token_bytes` (of one answer),
            `token_operations`, and `floor_s`, seconds by the bandwidth of the device's memory.

        Raises
        ------
        InvalidSpecError
            Where context is no whole number of 0 or more.

        Examples
        --------
        >>> print(model.describe(context=1024))  # doctest: +SKIP
        """
        from pygpukit.llm.describing import describe

        expected = "a whole number of 0 or more"
        if whole(context, "context", expected) < 0:
            raise InvalidSpecError(f"context={context!r}; give {expected}", "context")
        return describe(self, operator.index(context))

    def get_logits(self, hidden: GPUArray) -> GPUArray:
        """The float32 logits (R, vocabulary) of rows (R, hidden) of the last layer's output."""
        network = self.engine.network
        with network.at_home():
            logits = factory.empty((hidden.shape[0], self.config.vocab_size), "float32")
            network.head(hidden if hidden.dtype.name == "float32" else hidden.astype("float32"), logits)
            return logits

    def __call__(
        self,
        input_ids: Sequence[int],
        position_ids: None = None,
        past_key_values: None = None,
        use_cache: bool = False,
    ) -> tuple[GPUArray, None]:
        """The last layer's output for token ids, float32 (tokens, hidden), before the final norm; and None.

        get_logits() turns it into logits. Positions count from 0, and keys and values stay the model's own:
        position_ids and past_key_values must be None, use_cache False; generate() and stream() have a cache.
        Raises InvalidSpecError.
        """
        for name, value in (("position_ids", position_ids), ("past_key_values", past_key_values)):
            if value is not None:
                raise InvalidSpecError(f"{name} must be None; generate() and stream() keep positions and cache", name)
        if use_cache:
            raise InvalidSpecError("use_cache must be False here; generate() and stream() have a cache", "use_cache")
        ids = [whole(token, "input_ids", "token ids, whole numbers") for token in input_ids]
        return self.engine.hidden(ids), None

    def embed(self, prompts: Sequence[str | Sequence[int]], pooling: Pooling = "mean") -> np.ndarray[Any, Any]:
        """Vectors of texts: what the last layer makes of them, after the final norm, pooled and scaled to length 1.

        Parameters
        ----------
        prompts : sequence of str or of token ids
            Each fits the context.
        pooling : str
            "mean" of all tokens, or the "last" token, which alone has seen the whole text.

        Returns
        -------
        ndarray
            float32 (prompts, hidden).

        Raises
        ------
        InvalidSpecError
            For another pooling, or what cannot be a prompt.
        """
        from pygpukit.llm.scoring import embed

        return embed(self, prompts, pooling)

    def load_adapter(self, name: str, folder: str | os.PathLike[str]) -> None:
        """Load a LoRA adapter, which answers then have that name it: model.generate(text, adapter=name).

        Parameters
        ----------
        name : str
            What requests call it; as "model:name" for the endpoint. Another one of that name is replaced; answers that
            go on keep theirs.
        folder : str or path
            In PEFT's layout: adapter_config.json and adapter_model.safetensors.

        Raises
        ------
        InvalidSpecError
            For a name that is empty or has a colon, another method than LoRA, and modules that the model has not.
        ModelFileError, TensorShapeError
            For files that are damaged, or of another model.

        Examples
        --------
        >>> model.load_adapter("pirate", "adapters/pirate")  # doctest: +SKIP
        >>> print(model.chat("Where is the harbour?", adapter="pirate").complete())  # doctest: +SKIP
        """
        from pygpukit.llm.adapters import load_adapter

        if not isinstance(name, str) or not name or ":" in name:
            raise InvalidSpecError(f"name={name!r}; give a text without a colon", "name")
        blocks = self.engine.network.attention_blocks(f"{self.name}: load_adapter()", "name")
        if self.spec is None:
            raise InvalidSpecError(f"{self.name} has no spec=, which names the products of its layers in files", "spec")
        with self.engine.network.at_home():
            self.adapters[name] = load_adapter(name, folder, self.name, vars(self.spec), blocks)

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter; its memory is free when the last answer with it has ended. Raises InvalidSpecError for a
        name that there is not."""
        self._adapter(name)
        del self.adapters[name]

    def perplexity(self, text: str | Sequence[int] | None = None) -> float:
        """The perplexity of a text: e to the mean surprise at its tokens, each after those before it.

        Parameters
        ----------
        text : str or token ids, optional
            Of two tokens or more; without it a passage of plain English that comes with the package. A text beyond the
            context, or 2048 tokens, is read in windows one after the other.

        Returns
        -------
        float
            1 for a text that is foreseen exactly; summed in float64.

        Raises
        ------
        InvalidSpecError
            For what cannot be a prompt, or has one token.

        Examples
        --------
        >>> model.perplexity("The ferry leaves at seven in the morning.")  # doctest: +SKIP
        """
        from pygpukit.llm.perplexity import perplexity

        return perplexity(self, text)

    def text_error(
        self, text: str | Sequence[int] | None = None, reference: CausalTransformerModel | None = None
    ) -> TextError:
        """The error that few bits make on a text: both perplexities, divergence, and how often the best token stays.

        Parameters
        ----------
        text : str or token ids, optional
            As perplexity() takes it.
        reference : CausalTransformerModel, optional
            The model with its own weights. After load(quantize=...) it may be left out: the same files are loaded
            without quantize=, and let go of afterwards.

        Returns
        -------
        TextError
            Printed as a sentence; `tokens`, `perplexity`, `reference`, `divergence`, `agreement`.

        Raises
        ------
        InvalidSpecError
            Where there is no reference, for one of other tokens or another context, or as perplexity() does.

        Examples
        --------
        >>> gp.llm.load("smollm2-135m-instruct", quantize="int4").text_error()  # doctest: +SKIP
        """
        from pygpukit.llm.perplexity import text_error

        if reference is None and self.load_reference is None:
            raise InvalidSpecError(
                f"text_error: {self.name} was not rounded when it was loaded; give reference=, what to compare it with",
                "reference",
            )
        return text_error(self, reference or self.load_reference(), text)  # type: ignore[misc]

    def run_until(self, ready: Callable[[], bool]) -> None:
        """Run steps of all answers that go on, or wait for those that others run, until ready() is true: it is asked
        again after each. Generation.has_news is what it may look at."""
        self.engine.loop.run_until(ready)

    def init_decode_graph(self, max_seq_len: int | None = None) -> None:
        """Capture the step of one greedy sequence now, not at its first token. max_seq_len: at most the context.

        Raises InvalidSpecError for a longer one, and for a model of which layers are streamed: its steps are no graphs.
        """
        if max_seq_len is not None and max_seq_len > self.context:
            raise InvalidSpecError(f"max_seq_len is {max_seq_len}, the context {self.context}", "max_seq_len")
        if self.engine.network.streaming is not None:
            raise InvalidSpecError(
                f"{self.name} streams layers, whose steps are launched, not captured; load it without weights_memory=",
                "weights_memory",
            )
        with self.engine.network.at_home():
            self.engine.loop.steps.capture()

    def snapshot_kv_cache(self) -> list[tuple[np.ndarray[Any, Any], ...]]:
        """Keys and values of every layer, copied to the host, (blocks, key heads, positions, head_dim) each; of fp8 the
        codes, and after them the scales of both."""
        with self.engine.loop.paused():
            return [tuple(array.to_numpy() for array in layer.arrays) for layer in self.cache.layers]

    def restore_kv_cache(self, snapshot: Sequence[tuple[np.ndarray[Any, Any], ...]]) -> None:
        """Put back what snapshot_kv_cache() gave. Raises InvalidSpecError for another model's."""
        layers = [layer.arrays for layer in self.cache.layers]
        shapes = [[array.shape for array in arrays] for arrays in snapshot]
        if shapes != [[array.shape for array in layer] for layer in layers]:
            raise InvalidSpecError("the snapshot is of a cache of another shape", "snapshot")
        with self.engine.loop.paused():
            self.engine.loop.clear()
            for layer, arrays in zip(layers, snapshot, strict=True):
                for array, values in zip(layer, arrays, strict=True):
                    with current_device(array.device):
                        native.copy_from_host(array, values)

    # Decoding by hand, documented
    init_jacobi_decode = Elsewhere(_BY_HAND)
    decode_step_self_speculative_lookahead = Elsewhere(_BY_HAND)
    decode_step_jacobi_lookahead = Elsewhere(_BY_HAND)
    set_lookahead_confirmed_pos = Elsewhere(_BY_HAND)
    reset_lookahead_all = Elsewhere(_BY_HAND)
    commit_lookahead_all = Elsewhere(_BY_HAND)
    get_lookahead_confirmed_pos = Elsewhere(_BY_HAND)

    def __repr__(self) -> str:
        c = self.config
        return (
            f"CausalTransformerModel({self.name!r}, layers={c.num_layers}, hidden={c.hidden_size}, "
            f"heads={c.num_heads}/{c.kv_heads}, vocabulary={c.vocab_size}, dtype={self.dtype}, context={self.context}"
            f"{''.join(f', {name} by {one}' for name, one in self.replaced.items())})"
        )


GPT2Model = LlamaModel = CausalTransformerModel
