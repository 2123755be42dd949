"""TextEncoder: texts to vectors, by BERT and its kin; load_encoder() reads one from its folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array.factory import from_numpy
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import DTypeError, InvalidSpecError
from pygpukit.core.extras import require
from pygpukit.core.sizes import whole
from pygpukit.kernels.needed import Coming
from pygpukit.llm.encoders.bert import BertEncoder, BertLoader, read_config
from pygpukit.llm.encoders.kinds import KINDS
from pygpukit.llm.encoders.pooling import MODES, Mode, Pooling, pooled, pooling_of
from pygpukit.llm.scoring import unit

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.reads import OnProgress

_TYPES = ("float32", "float16", "bfloat16")
_ROWS = 4096  # tokens, padding too, that are computed at a time


def load_encoder(
    model: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    name: str | None = None,
    progress: bool | OnProgress = True,
    revision: str | None = None,
) -> TextEncoder:
    """An encoder of texts by name ("all-minilm-l6-v2"), folder, or owner and name on the Hugging Face hub.

    Parameters
    ----------
    model : str or path
        BERT, RoBERTa or XLM-RoBERTa in Hugging Face's layout, with sentence-transformers' files where it has them.
    dtype : str, optional
        Of the weights: float32 on the simulation and float16 on a GPU by default; or bfloat16.
    name : str, optional
        What its memory is called.
    progress : bool or function
        A bar, or a function (bytes done, bytes in all, tensor).
    revision : str, optional
        Of a repository of the hub: a branch, a tag or a commit.

    Returns
    -------
    TextEncoder
        `embed(texts)` gives their vectors.

    Raises
    ------
    ModelNotFoundError, ModelFileError
        Where there is no such model, or its files are malformed.
    InvalidSpecError
        For another kind of model, and what its files ask for that is not there.
    ModuleNotFoundError
        Without the extra `models`.

    Examples
    --------
    >>> encoder = gp.llm.load_encoder("all-minilm-l6-v2")  # doctest: +SKIP
    >>> encoder.embed(["A cat sleeps.", "A kitten naps."]).shape  # doctest: +SKIP
    (2, 384)
    """
    from pygpukit.models.checkpoint import open_checkpoint

    if dtype is not None and dtype not in _TYPES:
        raise DTypeError(f"load_encoder: dtype is {dtype!r}, must be {', '.join(_TYPES)}")
    require("models", "an encoder of texts", "tokenizers")
    coming = Coming(str(model))
    checkpoint = open_checkpoint(model, progress=bool(progress), revision=revision)
    try:
        encoder = _from_checkpoint(checkpoint, dtype, name or checkpoint.name, progress)
        coming.wait(progress is True)
        return encoder
    finally:
        checkpoint.close()


class TextEncoder:
    """Vectors of texts. load_encoder() makes one; the constructor takes its parts. May be used from several threads."""

    def __init__(
        self, network: BertEncoder, tokenizer: Tokenizer, pooling: Pooling | None = None, *, name: str = "encoder"
    ) -> None:
        self.network, self.tokenizer, self.name = network, tokenizer, name
        self.pooling = pooling or Pooling()
        self._lock = threading.Lock()  # held while a batch is computed

    @classmethod
    def from_pretrained(cls, model: str | os.PathLike[str], **options: Any) -> TextEncoder:
        """load_encoder(), with its options."""
        return load_encoder(model, **options)

    @property
    def context(self) -> int:
        """Tokens that a text can have, those that begin and end it too."""
        positions = self.network.config.positions
        return positions if self.pooling.tokens is None else min(self.pooling.tokens, positions)

    @property
    def dimensions(self) -> int:
        """Numbers of a vector."""
        return self.network.config.hidden_size

    @property
    def dtype(self) -> str:
        """The weights' type."""
        return self.network.words.dtype.name

    def token_ids(self, text: str | Sequence[int], truncate: bool = False) -> list[int]:
        """The tokens of a text, with those that begin and end it; token ids as they are.

        truncate: leave out what does not fit. Raises InvalidSpecError for one that is too long otherwise, or empty, and
        for ids that are no tokens.
        """
        closing: list[int] = []
        if isinstance(text, str):
            ids, closing = self.tokenizer.encode(text), self.tokenizer.encode("")[1:]
        else:
            ids = [whole(token, "prompt", "token ids, whole numbers") for token in text]
        wrong = next((token for token in ids if not 0 <= token < self.network.config.vocab_size), None)
        if wrong is not None:
            raise InvalidSpecError(
                f"{wrong} is no token of {self.name}, which has {self.network.config.vocab_size}", "prompt"
            )
        if not ids:
            raise InvalidSpecError("a text without tokens has no vector; leave it out", "prompt")
        if len(ids) > self.context:
            if not truncate:
                raise InvalidSpecError(
                    f"a text has {len(ids)} tokens, {self.name} takes {self.context}; cut it, or give truncate=True",
                    "prompt",
                )
            ids = ids[: self.context - len(closing)] + closing
        return ids

    def embed(
        self,
        prompts: Sequence[str | Sequence[int]],
        pooling: Mode | None = None,
        *,
        normalize: bool | None = None,
        truncate: bool = False,
    ) -> np.ndarray[Any, Any]:
        """Vectors of texts, many computed together; each has the bits that it has alone.

        Parameters
        ----------
        prompts : sequence of str or of token ids
            Of token ids, those that begin and end a text are among them.
        pooling : str, optional
            "mean" of all tokens, the first one ("cls"), the "max" of each number, or the "last" token; by default as
            the model's files say.
        normalize : bool, optional
            Whether vectors are scaled to length 1; by default as the model's files say.
        truncate : bool
            Leave out what does not fit into `context` tokens, instead of refusing it.

        Returns
        -------
        ndarray
            float32 (prompts, dimensions).

        Raises
        ------
        InvalidSpecError
            For another pooling, or what cannot be embedded.
        """
        import numpy as np

        mode = self.pooling.mode if pooling is None else pooling
        if mode not in MODES:
            raise InvalidSpecError(f"pooling={pooling!r}; give one of {', '.join(MODES)}", "pooling")
        if isinstance(prompts, str):
            raise InvalidSpecError("prompts is one text; give a list of texts", "prompt")
        encoded = [self.token_ids(prompt, truncate) for prompt in prompts]
        scales = self.pooling.normalises if normalize is None else normalize
        vectors = np.zeros((len(encoded), self.dimensions), np.float32)
        for places in _batches([len(ids) for ids in encoded]):
            lengths = np.array([len(encoded[place]) for place in places], np.int32)
            ids = np.zeros((len(places), lengths.max()), np.int32)
            for row, place in enumerate(places):
                ids[row, : lengths[row]] = encoded[place]
            with self._lock:
                states = self.network(from_numpy(ids), from_numpy(lengths)).to_numpy()
            for row, place in enumerate(places):
                vector = pooled(states[row, : lengths[row]], mode)
                vectors[place] = unit(vector) if scales else vector
        return vectors

    def __repr__(self) -> str:
        c = self.network.config
        return (
            f"TextEncoder({self.name!r}, layers={c.num_layers}, hidden={c.hidden_size}, heads={c.num_heads}, "
            f"vocabulary={c.vocab_size}, dtype={self.dtype}, context={self.context}, pooling={self.pooling.mode!r})"
        )


def _from_checkpoint(checkpoint: Checkpoint, dtype: str | None, title: str, progress: bool | OnProgress) -> TextEncoder:
    from pygpukit.models.folder import FolderCheckpoint

    kind = checkpoint.config.get("model_type")
    if kind not in KINDS or not isinstance(checkpoint, FolderCheckpoint):
        raise InvalidSpecError(
            f"{title}: its model_type is {kind!r}; encoders are folders of {', '.join(KINDS)}", "model_type"
        )
    config = read_config(checkpoint.config, f"{title}: config.json")
    pooling, tokenizer = pooling_of(checkpoint.folder, config.hidden_size), checkpoint.tokenizer()
    loader = BertLoader(checkpoint, config, dtype or ("float32" if is_sim() else "float16"), title, progress)
    with loader:
        network = loader.encoder()
    return TextEncoder(network, tokenizer, pooling, name=title)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of texts that are computed together: of like length, so that little is padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > _ROWS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
