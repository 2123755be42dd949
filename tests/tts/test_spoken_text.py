"""Sentences, what is taken out of a text, chunks of phonemes, tokens."""

from __future__ import annotations

import importlib.util
import random
import re

import pytest

import pygpukit as gp
from pygpukit.core.extras import install_command
from pygpukit.tts import phonemes
from pygpukit.tts.vocabulary import DEFAULT_VOCAB

tts = gp.tts


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("... !!! \U0001f600", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met J. K. Rowling, e.g. at 3.5 km.", ["Dr. Smith met J. K. Rowling, e.g. at 3.5 km."]),
        ("It was I. He left.", ["It was I.", "He left."]),
        ('She said "Go." Then she left.', ['She said "Go."', "Then she left."]),
        ("Wait... what? Yes", ["Wait...", "what?", "Yes"]),
        ("A title\n\nand  a\ttext", ["A title", "and a text"]),
        ("a smile \U0001f600\ufe0f here\u200d", ["a smile here"]),
        ("caf\u0065\u0301 $5 + 3", ["caf\u00e9 $5 + 3"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert tts.split_sentences(text) == sentences


def test_chunks_keep_everything_and_cut_at_the_strongest_mark() -> None:
    assert phonemes.chunks("abc. def, ghi", 7) == ["abc.", "def,", "ghi"]
    assert phonemes.chunks("abc, def ghi", 8) == ["abc,", "def ghi"]
    assert phonemes.chunks("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert phonemes.chunks("") == [] and phonemes.chunks("  ") == []
    rng = random.Random(3)
    for _ in range(300):
        text = "".join(rng.choice("aaab ,.;:!?\u2014\u2026") for _ in range(rng.randrange(200)))
        parts = phonemes.chunks(text, 17)
        assert all(0 < len(part) <= 17 for part in parts)
        assert "".join(parts).replace(" ", "") == text.replace(" ", "")


def test_tokens_and_back() -> None:
    assert len(DEFAULT_VOCAB) == 115 and max(DEFAULT_VOCAB.values()) == 177
    tokenizer = tts.KokoroTokenizer()
    tokens = tokenizer.phonemes_to_tokens("h\u0259l\u02c8O, \U0001f600$w")
    assert tokenizer.decode([0, *tokens, 0]) == "h\u0259l\u02c8O, w"
    assert tokenizer.pad_id == 0 and 0 not in tokens
    with pytest.raises(KeyError):
        tokenizer.decode([7])


def test_text_needs_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phonemes, "find_spec", lambda name: None)
    with pytest.raises(gp.InvalidSpecError, match=re.escape(install_command("tts"))):
        tts.KokoroTokenizer().encode("hello")
    with pytest.raises(gp.InvalidSpecError, match=r"language 'z'.*phonemes="):
        tts.KokoroTokenizer(lang="z").encode("hello")


@pytest.mark.skipif(importlib.util.find_spec("hibari") is None, reason="hibari-tts is not installed")
def test_numbers_money_and_unknown_words_become_phonemes() -> None:
    tokenizer = tts.KokoroTokenizer()
    said = tokenizer.encode("It costs $3.50.")
    assert "d\u02c8\u0251l\u0259\u0279z" in said.phonemes and len(said) == len(said.tokens) > 10
    assert set(tokenizer("Zxqvly 12/5 \U0001f600!").phonemes) <= set(DEFAULT_VOCAB)


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tts.nothing
