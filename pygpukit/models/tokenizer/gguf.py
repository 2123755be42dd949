"""A Tokenizer from the metadata of a GGUF file: byte-level BPE, or SentencePiece's pieces (sentencepiece.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import need
from pygpukit.models.tokenizer import sentencepiece
from pygpukit.models.tokenizer.beside import DEFAULT, TOOLS
from pygpukit.models.tokenizer.pre_tokenizers import PRE_TOKENIZERS
from pygpukit.models.tokenizer.tokenizer import Tokenizer, readable

_CONTROL, _USER_DEFINED = 3, 4  # kinds of tokens


@dataclass(frozen=True)
class Vocabulary:
    """The fields of every kind of tokenizer. numbers: of tokens; kinds: by GGUF's numbers; where names the file."""

    fields: Mapping[str, Any]
    tokens: list[str]
    numbers: dict[str, int]
    kinds: list[int]
    where: str

    def field(self, name: str) -> Any:
        """A field of tokenizer.ggml."""
        return self.fields.get(f"tokenizer.ggml.{name}")

    def flag(self, name: str, default: bool) -> bool:
        """A field that is true or false."""
        value = self.field(name)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"its {name} is {value!r:.80}, must be true or false")
        return default if value is None else value

    def error(self, problem: str) -> ModelFileError:
        """An error that names the file."""
        return ModelFileError(f"{self.where}: {problem}", self.where)


def from_fields(fields: Mapping[str, Any], where: str) -> Tokenizer:
    """The tokenizer that the metadata describe; where names the file in errors.

    Raises ModelFileError for metadata that lack something or describe another kind of tokenizer.
    """
    library = need("tokenizers", "models", "reading a tokenizer")
    kind = fields.get("tokenizer.ggml.model")
    if not isinstance(kind, str) or kind not in _KINDS:
        what = "it has no tokenizer" if kind is None else f"its tokenizer is of the kind {kind!r:.80}"
        known = ", ".join(f"{name!r} ({description})" for name, (description, _) in _KINDS.items())
        raise ModelFileError(f"{where}: {what}; what is read is {known}", where)
    vocabulary = _vocabulary(fields, where)
    with readable(where):
        tokenizer, begins, ends = _KINDS[kind][1](library, vocabulary)
        for special, token_type in ((True, _CONTROL), (False, _USER_DEFINED)):
            tokenizer.add_tokens(
                [
                    library.AddedToken(token, special=special, normalized=False)
                    for token, kind in zip(vocabulary.tokens, vocabulary.kinds, strict=True)
                    if kind == token_type and (special or "\u2581" not in token)
                ]
            )
        config = _config(vocabulary)
        first = [config["bos_token"]] if vocabulary.flag("add_bos_token", begins) and "bos_token" in config else []
        last = [config["eos_token"]] if vocabulary.flag("add_eos_token", ends) and "eos_token" in config else []
        if first or last:
            tokenizer.post_processor = library.processors.TemplateProcessing(
                single=[*first, "$A", *last],
                pair=[*first, "$A", *last, *first, "$B", *last],
                special_tokens=[(token, vocabulary.numbers[token]) for token in dict.fromkeys(first + last)],
            )
    return Tokenizer.of(tokenizer, config, where)


def _byte_level(library: Any, vocabulary: Vocabulary) -> tuple[Any, bool, bool]:
    """Pieces of bytes, merged by rank."""
    name = vocabulary.field("pre")
    name = "default" if name is None else name
    if not isinstance(name, str) or name not in PRE_TOKENIZERS:
        raise vocabulary.error(f"its pre-tokenizer is {name!r:.80}; what is known is {', '.join(PRE_TOKENIZERS)}")
    pre = PRE_TOKENIZERS[name]
    merges = vocabulary.field("merges")
    if not isinstance(merges, list) or not all(isinstance(entry, str) for entry in merges):
        raise vocabulary.error("its tokenizer.ggml.merges is no list of texts")
    pairs = [tuple(merge.split(" ")) for merge in merges]
    wrong = next((merge for merge, pair in zip(merges, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None:
        raise vocabulary.error(f"its merge {wrong!r:.80} is no pair of tokens")
    tokenizer = library.Tokenizer(library.models.BPE(vocabulary.numbers, pairs, ignore_merges=pre.ignores_merges))
    tokenizer.normalizer = library.normalizers.NFC() if pre.composed else None
    tokenizer.pre_tokenizer = pre.build(library)
    tokenizer.decoder = library.decoders.ByteLevel()
    return tokenizer, pre.begins, False


_KINDS: dict[str, tuple[str, Callable[[Any, Vocabulary], tuple[Any, bool, bool]]]] = {
    "gpt2": ("byte-level BPE", _byte_level),
    "llama": ("SentencePiece's BPE", sentencepiece.pairs),
    "t5": ("SentencePiece's unigrams", sentencepiece.unigrams),
}


def _vocabulary(fields: Mapping[str, Any], where: str) -> Vocabulary:
    tokens = fields.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not all(isinstance(entry, str) for entry in tokens):
        raise ModelFileError(f"{where}: its tokenizer.ggml.tokens is no list of texts", where)
    numbers = {token: number for number, token in enumerate(tokens)}
    if len(numbers) != len(tokens):
        raise ModelFileError(f"{where}: its vocabulary has {len(tokens) - len(numbers)} tokens twice", where)
    kinds = fields.get("tokenizer.ggml.token_type")
    if kinds is None:
        kinds = [1] * len(tokens)
    if not hasattr(kinds, "__len__") or isinstance(kinds, str) or len(kinds) != len(tokens):
        raise ModelFileError(f"{where}: its tokenizer.ggml.token_type is no list of {len(tokens)} kinds", where)
    return Vocabulary(fields, tokens, numbers, list(kinds), where)


def _config(vocabulary: Vocabulary) -> dict[str, Any]:
    """The fields that tokenizer_config.json would have."""
    key = "tokenizer.chat_template"
    templates = {DEFAULT: vocabulary.fields.get(key), TOOLS: vocabulary.fields.get(f"{key}.{TOOLS}")}
    config: dict[str, Any] = {"chat_template": templates}
    count = len(vocabulary.tokens)
    for ours, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        number = vocabulary.field(f"{key}_token_id")
        if number is None:
            continue
        if type(number) is not int or not 0 <= number < count:
            raise vocabulary.error(f"its {key}_token_id is {number!r:.80}; it has {count} tokens")
        config[f"{ours}_token"] = vocabulary.tokens[number]
    return config
