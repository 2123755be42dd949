"""Text before it is turned into phonemes: what nobody can speak taken out, and sentences."""

from __future__ import annotations

import re
import unicodedata

_SPACE = re.compile(r"\s+")
_END = re.compile(r"(?:[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s)|\n\s*\n)")
# What a full stop stands after without ending a sentence.
_SHORT = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "sr",
        "jr",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "a.m",
        "p.m",
        "no",
        "fig",
        "vol",
        "gen",
        "capt",
    ]
)
_SPOKEN_SYMBOLS = frozenset("$+<=>^|~\u00a3\u20ac\u00a5\u00a2\u00b0\u00b1\u00d7\u00f7")


def normalize_text(text: str) -> str:
    """The text without emoji, control and invisible characters, in composed form (NFC), with single spaces."""
    kept = []
    for character in unicodedata.normalize("NFC", text):
        kind = unicodedata.category(character)
        if character.isspace() or (kind in ("So", "Sk") and character not in _SPOKEN_SYMBOLS):
            kept.append(" ")
        elif kind[0] != "C" and not 0xFE00 <= ord(character) <= 0xFE0F:
            kept.append(character)
    return _SPACE.sub(" ", "".join(kept)).strip()


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order: cut after . ! ? where a space follows, and at empty lines.

    "Dr. Smith", initials and "3.5" are not cut. What has nothing to speak is left out.
    """
    return [
        sentence
        for sentence in map(normalize_text, cut(text))
        if any(c.isalnum() or c in _SPOKEN_SYMBOLS for c in sentence)
    ]


def cut(text: str) -> list[str]:
    """The text as it is, in sentences: one after the other they are the text."""
    found, start = [], 0
    for match in _END.finditer(text):
        if not _inside(text[start : match.end()], text[match.end() :]):
            found.append(text[start : match.end()])
            start = match.end()
    return [*found, text[start:]]


def _inside(sentence: str, rest: str) -> bool:
    """Whether the full stop at the end of what there is so far does not end the sentence."""
    if not sentence.endswith(".") or sentence.endswith(".."):
        return False
    words = sentence[:-1].split()
    last = words[-1].lstrip("(\"'\u201c\u2018") if words else ""
    initial = len(last) == 1 and last.isalpha() and last.isupper() and last != "I"
    return initial or last.lower() in _SHORT or rest.lstrip()[:1].islower()
