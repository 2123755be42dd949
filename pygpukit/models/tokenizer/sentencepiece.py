"""SentencePiece's tokenizers from the metadata of a GGUF file: pieces with scores, a space spelled as U+2581."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit.models.tokenizer.gguf import Vocabulary

_SPACE = "\u2581"
_UNKNOWN, _BYTE = 2, 6  # kinds of tokens
_LONGEST = 64  # characters of a piece that is looked at for the pairs that make it


def pairs(library: Any, vocabulary: Vocabulary) -> tuple[Any, bool, bool]:
    """(tokenizer, whether a text begins, and ends, with a token for that): of LLaMA 2, Mistral and Gemma.

    Of neighbouring pieces those are joined first whose whole has the best score; letters without a piece become bytes.
    """
    unknown = _unknown(vocabulary)
    tokenizer = library.Tokenizer(
        library.models.BPE(
            vocabulary.numbers,
            _merges(vocabulary.numbers, _scores(vocabulary)),
            unk_token=None if unknown is None else vocabulary.tokens[unknown],
            fuse_unk=True,
            byte_fallback=_BYTE in vocabulary.kinds,
        )
    )
    _spell(library, tokenizer, vocabulary, [])
    return tokenizer, True, False


def unigrams(library: Any, vocabulary: Vocabulary) -> tuple[Any, bool, bool]:
    """As pairs(), of T5 and its kin: the most probable pieces by the sum of their scores."""
    scored = list(zip(vocabulary.tokens, _scores(vocabulary), strict=True))
    tokenizer = library.Tokenizer(library.models.Unigram(scored, _unknown(vocabulary), _BYTE in vocabulary.kinds))
    normalizers = []
    table = vocabulary.field("precompiled_charsmap")
    if table is not None:
        normalizers.append(library.normalizers.Precompiled(bytes(bytearray(int(byte) & 255 for byte in table))))
    if vocabulary.flag("remove_extra_whitespaces", False):
        normalizers += [library.normalizers.Strip(), library.normalizers.Replace(library.Regex(" {2,}"), " ")]
    _spell(library, tokenizer, vocabulary, normalizers)
    return tokenizer, False, True


def _spell(library: Any, tokenizer: Any, vocabulary: Vocabulary, normalizers: list[Any]) -> None:
    """Spaces as SentencePiece spells them, one before each text too unless the file says no; and back."""
    prefix = vocabulary.flag("add_space_prefix", True)
    before = [library.normalizers.Prepend(_SPACE)] if prefix else []
    tokenizer.normalizer = library.normalizers.Sequence(
        [*normalizers, *before, library.normalizers.Replace(" ", _SPACE)]
    )
    stripping = [library.decoders.Strip(" ", 1, 0)] if prefix else []
    parts = library.decoders.Replace(_SPACE, " "), library.decoders.ByteFallback(), library.decoders.Fuse()
    tokenizer.decoder = library.decoders.Sequence([*parts, *stripping])


def _merges(numbers: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Every pair of pieces whose whole is a piece, the best whole first, of one whole the longest first part."""
    merges = []
    for token, number in numbers.items():
        if not 1 < len(token) <= _LONGEST:
            continue
        for at in range(len(token) - 1, 0, -1):
            if token[:at] in numbers and token[at:] in numbers:
                merges.append((-scores[number], number, token[:at], token[at:]))
    merges.sort(key=lambda merge: merge[:2])  # stable: the order of the parts stays
    return [(first, second) for _, _, first, second in merges]


def _scores(vocabulary: Vocabulary) -> list[float]:
    stored = vocabulary.field("scores")
    if isinstance(stored, str) or not hasattr(stored, "__len__") or len(stored) != len(vocabulary.tokens):
        raise vocabulary.error(f"its tokenizer.ggml.scores is no list of {len(vocabulary.tokens)} numbers")
    scores = [float(score) for score in stored]
    if not all(map(math.isfinite, scores)):
        raise vocabulary.error("its tokenizer.ggml.scores has one that is no finite number")
    return scores


def _unknown(vocabulary: Vocabulary) -> int | None:
    """The token of what has no piece: the one that the file names, or marks as that."""
    number = vocabulary.field("unknown_token_id")
    if number is None:
        return next((place for place, kind in enumerate(vocabulary.kinds) if kind == _UNKNOWN), None)
    if type(number) is not int or not 0 <= number < len(vocabulary.tokens):
        raise vocabulary.error(f"its unknown_token_id is {number!r:.80}; it has {len(vocabulary.tokens)} tokens")
    return number
