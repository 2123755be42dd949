"""A text as it is spoken: numbers, dates, money, units, abbreviations and signs in words."""

from __future__ import annotations

import re
import unicodedata

from pygpukit.tts.text.abbreviations import abbreviations
from pygpukit.tts.text.addresses import addresses
from pygpukit.tts.text.cleaning import normalize_text
from pygpukit.tts.text.dates import dates
from pygpukit.tts.text.measures import measures
from pygpukit.tts.text.money import money
from pygpukit.tts.text.numbers import numbers, ranges, scientific, signs, unfolded
from pygpukit.tts.text.phones import phones
from pygpukit.tts.text.roman import roman
from pygpukit.tts.text.symbols import before_numbers, powers, symbols
from pygpukit.tts.text.times import times

# "[word](/phonemes/)" says how a word is spoken, for the libraries that make phonemes; "[word](address)" is a link.
_PRONUNCIATION = re.compile(r"(\[[^\]\[]{1,200}\]\(/[^)]{1,400}/\))")
_LINK = re.compile(r"!?\[([^\]\[]{1,500})\]\([^)\s]{1,2000}\)")
_FOLDED = str.maketrans(
    {
        "\u2019": "'",
        "\u2018": "'",
        "\u2032": "'",
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u00a0": " ",
        "\u2015": "\u2014",
    }
)
_DASHES = re.compile(r"(?<=[\w\s])-{2,3}(?=[\w\s])")
_CLIPPED = re.compile(r"(?i)(?<!\w)'(tis|twas|twere|em)\b")  # no quotation begins here
_AND = re.compile(r"(?<=\w) '[nN]'? (?=\w)")
_WORD = re.compile(r"[^\W\d_]+")
_SPACES = re.compile(r"\s+")
_SPACE_BEFORE = re.compile(r" +(?=[,.;:!?](?:\s|$))")
_COMMAS = re.compile(r"(?:, ?){2,}")


def spoken_text(text: str, lang: str = "a") -> str:
    """The text as words: "Dr. Lee paid $5 on Jan. 3." as "Doctor Lee paid five dollars on January third."

    What is left has no digits and no signs but punctuation. Numbers without a name are read digit by digit; a Roman
    numeral counts only where one can be; [word](/phonemes/) stays. lang: "a" American, "b" British English (day before
    month, "one hundred and five"). Never raises.
    """
    british = lang == "b"
    parts = _PRONUNCIATION.split(normalize_text(text))
    return _SPACES.sub(" ", "".join(p if n % 2 else _words(p, british) for n, p in enumerate(parts))).strip()


def unread_words(text: str) -> list[str]:
    """The words of spoken_text() that have letters beside the Latin ones, without those whose phonemes it names."""
    return [word for word in _WORD.findall(_PRONUNCIATION.sub(" ", text)) if not all(map(_is_read, word))]


def _is_read(letter: str) -> bool:
    return unicodedata.category(letter) not in ("Lu", "Ll", "Lt", "Lo") or "LATIN" in unicodedata.name(letter, "")


def _words(text: str, british: bool) -> str:
    text = unfolded(_DASHES.sub("\u2014", _LINK.sub(r"\1", text)).translate(_FOLDED))
    text = _AND.sub(" and ", _CLIPPED.sub(r"\1", text))
    text = phones(dates(addresses(text), british))
    text = times(before_numbers(text))
    text = money(signs(text), british)
    text = measures(ranges(text), british)
    text = roman(abbreviations(text))
    text = numbers(powers(scientific(text, british)), british)
    text = symbols(text)
    return _SPACE_BEFORE.sub("", _COMMAS.sub(", ", _SPACES.sub(" ", text)))
