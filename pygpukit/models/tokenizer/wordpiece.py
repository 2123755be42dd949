"""WordPiece, BERT's tokenizer, from a vocab.txt: a token a line, its number that of the line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import need
from pygpukit.models.documents import read_text
from pygpukit.models.tokenizer.bounds import check_tokens

FILE = "vocab.txt"
_SPECIAL = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
_MASK = "mask_token", "[MASK]"
_LONGEST_WORD = 100  # letters; a longer word is unknown


def wordpiece(path: Path, config: Mapping[str, Any]) -> Any:
    """A `tokenizers.Tokenizer` of a vocab.txt; config has the fields of tokenizer_config.json, which say of how text is
    cleaned: do_lower_case, strip_accents, tokenize_chinese_chars. Raises ModelFileError."""
    where = str(path)
    lines = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    if lines[-1] == "":
        lines.pop()
    check_tokens(len(lines), where)
    numbers = {token: number for number, token in enumerate(lines)}  # of one that is there twice the last counts
    names = {kind: _name(config, kind, usual, where) for kind, usual in _SPECIAL.items()}
    missing = next((name for name in names.values() if name not in numbers), None)
    if missing is not None:
        raise ModelFileError(f"{where}: the token {missing!r} is not among its {len(lines)}", where)
    if config.get("do_basic_tokenize") is False:
        raise ModelFileError(f"{where}: do_basic_tokenize of tokenizer_config.json is false: not there yet", where)
    library = need("tokenizers", "models", "reading a tokenizer")
    tokenizer = library.Tokenizer(
        library.models.WordPiece(numbers, unk_token=names["unk_token"], max_input_chars_per_word=_LONGEST_WORD)
    )
    lowers = _flag(config, "do_lower_case", True, where)
    tokenizer.normalizer = library.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=_flag(config, "tokenize_chinese_chars", True, where),
        strip_accents=_flag(config, "strip_accents", lowers, where),
        lowercase=lowers,
    )
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    cls, sep = names["cls_token"], names["sep_token"]
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single=f"{cls} $A {sep}", special_tokens=[(cls, numbers[cls]), (sep, numbers[sep])]
    )
    tokenizer.decoder = library.decoders.WordPiece()
    mask = _name(config, *_MASK, where)
    special = [*names.values(), *([mask] if mask in numbers else [])]
    tokenizer.add_special_tokens([library.AddedToken(name, special=True, normalized=False) for name in special])
    return tokenizer


def _name(config: Mapping[str, Any], kind: str, usual: str, where: str) -> str:
    """A special token by the file's own name for it, or the usual one."""
    named = config.get(kind)
    if isinstance(named, Mapping):
        named = named.get("content")
    if named is None:
        return usual
    if not isinstance(named, str) or not named:
        raise ModelFileError(f"{where}: {kind} of tokenizer_config.json is {named!r:.80}, no token", where)
    return named


def _flag(config: Mapping[str, Any], name: str, usual: bool, where: str) -> bool:
    value = config.get(name)
    if value is not None and not isinstance(value, bool):
        raise ModelFileError(f"{where}: {name} of tokenizer_config.json is {value!r:.80}, must be true or false", where)
    return usual if value is None else value
