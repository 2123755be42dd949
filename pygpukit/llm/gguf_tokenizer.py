"""A Tokenizer from the metadata of a GGUF file: byte-level BPE with the pre-tokenizers of the models that are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import need
from pygpukit.llm.tokenizer import Tokenizer, readable

_CONTROL, _USER_DEFINED = 3, 4  # kinds of tokens
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def from_fields(fields: Mapping[str, Any], where: str) -> Tokenizer:
    """The tokenizer that the metadata describe; where names the file in errors.

    Raises ModelFileError for metadata that lack something or describe another kind of tokenizer.
    """
    library = need("tokenizers", "models", "reading a tokenizer")
    kind = fields.get("tokenizer.ggml.model")
    if kind != "gpt2":
        what = "it has no tokenizer" if kind is None else f"its tokenizer is of the kind {kind!r}"
        raise ModelFileError(f"{where}: {what}; what is read is 'gpt2', byte-level BPE", where)
    name = fields.get("tokenizer.ggml.pre", "default")
    if not isinstance(name, str) or name not in _PRE_TOKENIZERS:
        raise ModelFileError(
            f"{where}: its pre-tokenizer is {name!r}; what is known is {', '.join(_PRE_TOKENIZERS)}", where
        )
    tokens, kinds, merges = _lists(fields, where)
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise ModelFileError(f"{where}: its vocabulary has {len(tokens) - len(vocabulary)} tokens twice", where)
    pairs = [tuple(merge.split(" ")) for merge in merges]
    wrong = next((merge for merge, pair in zip(merges, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None:
        raise ModelFileError(f"{where}: its merge {wrong!r} is no pair of tokens", where)
    with readable(where):
        made = library.Tokenizer(library.models.BPE(vocabulary, pairs, ignore_merges=name == "llama-bpe"))
        made.normalizer = library.normalizers.NFC() if name == "qwen2" else None
        made.pre_tokenizer = _PRE_TOKENIZERS[name](library)
        made.decoder = library.decoders.ByteLevel()
        for special, wanted in ((True, _CONTROL), (False, _USER_DEFINED)):
            made.add_tokens(
                [
                    library.AddedToken(token, special=special, normalized=False)
                    for token, kind in zip(tokens, kinds, strict=True)
                    if kind == wanted
                ]
            )
        config = _config(fields, tokens, where)
        if fields.get("tokenizer.ggml.add_bos_token") is True and "bos_token" in config:
            begin = config["bos_token"]
            made.post_processor = library.processors.TemplateProcessing(
                single=[begin, "$A"], pair=[begin, "$A", begin, "$B"], special_tokens=[(begin, vocabulary[begin])]
            )
    return Tokenizer.of(made, config, where)


def _lists(fields: Mapping[str, Any], where: str) -> tuple[list[str], list[int], list[str]]:
    tokens, merges = fields.get("tokenizer.ggml.tokens"), fields.get("tokenizer.ggml.merges")
    for key, value in (("tokens", tokens), ("merges", merges)):
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ModelFileError(f"{where}: its tokenizer.ggml.{key} is no list of texts", where)
    assert isinstance(tokens, list) and isinstance(merges, list)
    kinds = fields.get("tokenizer.ggml.token_type", [1] * len(tokens))
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise ModelFileError(f"{where}: its tokenizer.ggml.token_type is no list of {len(tokens)} kinds", where)
    return tokens, kinds, merges


def _config(fields: Mapping[str, Any], tokens: list[str], where: str) -> dict[str, Any]:
    """The fields that tokenizer_config.json would have."""
    config: dict[str, Any] = {"chat_template": fields.get("tokenizer.chat_template")}
    for ours, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        number = fields.get(f"tokenizer.ggml.{key}_token_id")
        if number is None:
            continue
        if type(number) is not int or not 0 <= number < len(tokens):
            raise ModelFileError(f"{where}: its {key}_token_id is {number!r}; it has {len(tokens)} tokens", where)
        config[f"{ours}_token"] = tokens[number]
    return config


def _byte_level(library: Any) -> Any:
    return library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _digits_first(library: Any) -> Any:
    parts = [library.pre_tokenizers.Digits(individual_digits=True), _byte_level(library)]
    return library.pre_tokenizers.Sequence(parts)


def _split_by(numbers: str) -> Callable[[Any], Any]:
    def make(library: Any) -> Any:
        words = library.pre_tokenizers.Split(library.Regex(_WORDS + numbers + _REST), "isolated")
        spelled = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return library.pre_tokenizers.Sequence([words, spelled])

    return make


_PRE_TOKENIZERS: dict[str, Callable[[Any], Any]] = {
    "default": _byte_level,
    "gpt-2": _byte_level,
    "gpt2": _byte_level,
    "smollm": _digits_first,
    "llama-bpe": _split_by(r"\p{N}{1,3}"),
    "qwen2": _split_by(r"\p{N}"),
}
