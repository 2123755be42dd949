"""WordPiece from a vocab.txt beside the published algorithm, on texts of every kind of letter; damaged vocabularies."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pygpukit.core.errors import GPUError, ModelFileError
from pygpukit.models.tokenizer.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["a", "b", "ab", "##a", "##b", "##ab", "##aba", "ba", "e", "##e", "A", "##A", "1", "##12", "-", "!", "."]
PIECES += ["\u00e9", "\u00c9"]
PIECES += ["\u4e2d", "\u6587", "\u2028", "\u0301", "##\u0301", "\u3002", "\u0436", "##\u0436", "\U0001f680"]
LETTERS = [*"aabbeA1-!.  \t\n\u00e9\u00c9\u0301\u4e2d\u6587\u3002\u0436\u0416\U0001f680"]
LETTERS += [*"\u00a0\u3000\u200b\ufffd\0\u2028"]
SETTINGS = ({}, {"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False})


def folder(path: Path, pieces: list[str], **settings: Any) -> Path:
    path.mkdir(exist_ok=True)
    (path / "vocab.txt").write_text("\n".join([*SPECIAL, *pieces]) + "\n", newline="")
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path


def words(text: str, lowers: bool, strips: bool, splits_chinese: bool) -> list[str]:
    """A text's words, as BERT's paper and code split it."""
    kept = []
    for letter in text:
        kind = unicodedata.category(letter)
        if letter in "\t\n\r" or kind == "Zs":
            kept.append(" ")
        elif letter in "\0\ufffd" or kind.startswith("C"):
            continue
        elif splits_chinese and "\u4e00" <= letter <= "\u9fff":
            kept.append(f" {letter} ")
        else:
            kept.append(letter)
    found = []
    for word in "".join(kept).split():
        word = word.lower() if lowers else word
        if strips:
            word = "".join(one for one in unicodedata.normalize("NFD", word) if unicodedata.category(one) != "Mn")
        current = ""
        for letter in word:
            if unicodedata.category(letter).startswith("P") or (letter.isascii() and not letter.isalnum()):
                found += [current, letter]
                current = ""
            else:
                current += letter
        found.append(current)
    return [word for word in found if word]


def tokens(word: str, vocabulary: set[str]) -> list[str]:
    """The longest piece first, again and again; a word without one is unknown as a whole."""
    if len(word) > 100:
        return ["[UNK]"]
    found, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        ends = [end for end in range(len(word), start, -1) if mark + word[start:end] in vocabulary]
        if not ends:
            return ["[UNK]"]
        found.append(mark + word[start : ends[0]])
        start = ends[0]
    return found


@pytest.mark.parametrize("settings", SETTINGS)
def test_tokens_are_those_of_the_published_algorithm(tmp_path: Path, settings: dict[str, Any]) -> None:
    tokenizer = Tokenizer(folder(tmp_path / "model", PIECES, **settings))
    lowers = settings.get("do_lower_case", True)
    strips = settings.get("strip_accents", lowers)
    numbers = {piece: number for number, piece in enumerate([*SPECIAL, *PIECES])}
    seed = np.random.SeedSequence().generate_state(1)[0].item()
    draw = np.random.default_rng(seed)
    known = 0
    for _ in range(1500):
        text = "".join(LETTERS[n] for n in draw.integers(0, len(LETTERS), draw.integers(0, 30)))
        split = words(text, lowers, strips, settings.get("tokenize_chinese_chars", True))
        expected = [token for word in split for token in tokens(word, set(numbers))]
        assert tokenizer.encode(text, add_special_tokens=False) == [numbers[token] for token in expected], (seed, text)
        assert tokenizer.encode(text) == [2, *(numbers[token] for token in expected), 3]
        known += len(expected) - expected.count("[UNK]")
    assert known > 3000


def test_long_words_and_special_tokens(tmp_path: Path) -> None:
    tokenizer = Tokenizer(folder(tmp_path / "model", PIECES, unk_token={"content": "[UNK]"}))
    numbers = {piece: number for number, piece in enumerate([*SPECIAL, *PIECES])}
    assert tokenizer.encode("ab" * 50, False) == [numbers[one] for one in tokens("ab" * 50, set(numbers))]
    assert tokenizer.encode("ab" * 50 + "a", False) == [1]
    assert tokenizer.encode("a [SEP] b", False) == [5, 3, 6]
    assert tokenizer.decode([2, 7, 9, 3], skip_special_tokens=True) == "abb"
    assert tokenizer.special_ids == {0, 1, 2, 3, 4} and tokenizer.vocab_size == len(numbers)


def test_a_vocabulary_as_files_have_it(tmp_path: Path) -> None:
    path = folder(tmp_path / "model", ["a", "b", "a"])
    assert Tokenizer(path).encode("a b", False) == [7, 6]  # of one that is there twice the last counts
    (path / "vocab.txt").write_bytes("\r\n".join([*SPECIAL, "a", "b"]).encode())
    assert Tokenizer(path).encode("a b", False) == [5, 6]
    named = {"cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": None}
    (path / "vocab.txt").write_text("<s>\n</s>\n<unk>\n<pad>\na\n")
    (path / "tokenizer_config.json").write_text(json.dumps(named))
    assert Tokenizer(path).encode("a c") == [0, 4, 2, 1]


@pytest.mark.parametrize(
    "vocabulary, settings, message",
    [
        ("a\nb\n", {}, r"the token '\[UNK\]' is not among its 2"),
        ("", {}, "is not among its 0"),
        ("\n".join(SPECIAL), {"do_lower_case": "yes"}, "do_lower_case .* must be true or false"),
        ("\n".join(SPECIAL), {"cls_token": 3}, "cls_token .* is 3"),
        ("\n".join(SPECIAL), {"do_basic_tokenize": False}, "do_basic_tokenize"),
        ("\n".join([*SPECIAL, *map(str, range(600_000))]), {}, "at most are read"),
    ],
)
def test_what_is_no_vocabulary(tmp_path: Path, vocabulary: str, settings: dict[str, Any], message: str) -> None:
    path = folder(tmp_path / "model", [], **settings)
    (path / "vocab.txt").write_text(vocabulary)
    with pytest.raises(ModelFileError, match=message):
        Tokenizer(path)
    (path / "vocab.txt").unlink()
    with pytest.raises(ModelFileError, match=r"neither a tokenizer\.json nor BERT's vocab\.txt"):
        Tokenizer(path)


def test_damaged_vocabularies(tmp_path: Path) -> None:
    path = folder(tmp_path / "model", PIECES)
    whole = {name: (path / name).read_bytes() for name in ("vocab.txt", "tokenizer_config.json")}
    whole["tokenizer_config.json"] = b'{"cls_token": "[CLS]", "do_lower_case": true, "strip_accents": null}'
    draw = np.random.default_rng()
    for _ in range(400):
        for name, raw in whole.items():
            damaged = bytearray(raw)
            for _ in range(draw.integers(0, 4)):
                damaged[draw.integers(len(damaged))] = draw.integers(256)
            (path / name).write_bytes(damaged[: draw.integers(1, 2 * len(damaged))])
        try:
            tokenizer = Tokenizer(path)
            tokenizer.decode(tokenizer.encode("ab \u4e2d b! [SEP]"))
        except GPUError as error:
            assert str(error)
