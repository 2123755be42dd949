"""spoken_text(): what is not written as words, as it is said; each family of tables with its neighbours."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit.tts.text.integers import cardinal, label, ordinal, year
from pygpukit.tts.text.roman import value

spoken = gp.tts.spoken_text


def _cases() -> dict[str, list[tuple[str, str]]]:
    """words_of_text.txt: under a heading for each family a text, and in the line below what is said."""
    families: dict[str, list[tuple[str, str]]] = {}
    written = Path(__file__).with_name("words_of_text.txt").read_bytes().decode("unicode_escape")
    for line, following in pairwise(written.splitlines()):
        if line.startswith("# "):
            cases = families[line[2:]] = []
        elif following.startswith("    "):
            cases.append((line, following.strip()))
    return families


@pytest.mark.parametrize("family", _cases())
def test_what_is_written_is_said(family: str) -> None:
    cases = _cases()[family]
    assert cases
    for text, words in cases:
        assert spoken(text) == words


def test_british_says_and_and_puts_the_day_first() -> None:
    assert spoken("105 of 2,003 on 3/4/2020", "b") == (
        "one hundred and five of two thousand and three on the third of April, twenty twenty"
    )


@pytest.mark.parametrize(
    "sentence",
    [
        "He came on Oct. 3 and left.",
        "The U.K. Parliament met.",
        "Ask Mrs. Hill, Sgt. Green or J. R. Stone.",
        "See No. 7 and fig. 2.",
        "It ends at 4 p.m. today.",
        "Nuts, figs etc. were sold by Stone Inc. of York.",
    ],
)
def test_abbreviations_end_no_sentence(sentence: str) -> None:
    assert gp.tts.split_sentences(sentence) == [sentence]
    assert gp.tts.split_sentences(f"One. {sentence} Then more.") == ["One.", sentence, "Then more."]


@pytest.mark.parametrize(
    "first", ["Say no.", "It ends at 4 p.m.", "He lives in the U.K.", "We sell nuts etc.", "Plan B."]
)
def test_sentences_may_end_with_an_abbreviation(first: str) -> None:
    assert gp.tts.split_sentences(f"{first} The rest follows.") == [first, "The rest follows."]


def test_integers() -> None:
    assert cardinal(10**33) == "one decillion" and cardinal(-1) == "minus one"
    assert [ordinal(n) for n in (0, 8, 9, 40, 100, 1000)] == [
        *("zeroth", "eighth", "ninth", "fortieth", "one hundredth", "one thousandth")
    ]
    assert [year(n) for n in (1066, 1100, 1901, 2000, 2010)] == [
        *("ten sixty-six", "eleven hundred", "nineteen oh one", "two thousand", "twenty ten")
    ]
    assert [label(n) for n in ("7", "500", "501", "1000", "4070", "01")] == [
        *("seven", "five hundred", "five oh one", "one thousand", "forty seventy", "zero one")
    ]
    assert [value(n) for n in ("IV", "IX", "XL", "MCMXCIV")] == [4, 9, 40, 1994]


def test_any_text_becomes_words() -> None:
    """No digit is left, nothing raises, and cutting loses nothing."""
    pieces = (
        "1|12|1,234|.5|-|\u2013|$|\u20ac|%|/|:|.|,|Jan|May|IV|I|Chapter|Dr.|e.g.|U.S.|@|http://|a|AB|km|\xb0|\xbd|\xb2|"
        "\u0662|\u2163|\u2460|'|\"|(|)|[|](/x/)|^|x|\xd7|=|+|&|#|s|th|pm|a.m.|2024|00|e|\ud800|\u4e94|<|>|*|_|Henry|King|to"
    )
    rng = random.Random(5)
    for _ in range(3000):
        text = "".join(rng.choice(pieces.split("|")) + rng.choice(["", "", " "]) for _ in range(rng.randrange(1, 14)))
        words = re.sub(r"\[[^\]\[]+\]\(/[^)]+/\)", "", spoken(text, rng.choice("ab")))
        assert not any(character.isdecimal() for character in words), text
        assert "".join(gp.tts.text.cut(text)) == text


def test_long_digits_and_deep_marks_are_spoken_too() -> None:
    assert len(spoken("8" * 20000).split()) == 20000
    for text in ("1.", "A.", "a/", "[", "1-", "$1", '5" ', "<a"):
        assert isinstance(spoken(text * 3000), str)


def test_words_in_other_letters_are_told() -> None:
    tokenizer = gp.tts.KokoroTokenizer()
    for text, words in (
        ("Hello \u4f60\u597d, \u041f\u0440\u0438", "\u4f60\u597d, \u041f\u0440\u0438"),
        ("\u0395\u03bb\u03b1", "\u0395\u03bb\u03b1"),
    ):
        with pytest.warns(UserWarning, match=f"^{words}: words in letters"):
            tokenizer.text_to_phonemes(text)
    tokenizer.text_to_phonemes("stra\xdfe na\xefve \u03c0 [Ann](/\u02c8\u03b8n/) 5\u2103 \u0141\xf3d\u017a \U0001f600")
