"""A text in sentences."""

from __future__ import annotations

import re

from pygpukit.tts.text.abbreviations import BEFORE_NUMBERS, CLOSING, NEVER_LAST, TITLES
from pygpukit.tts.text.cleaning import SPOKEN_SYMBOLS, normalize_text
from pygpukit.tts.text.tables import words

_END = re.compile(r"(?:[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s)|\n\s*\n)")
_NEXT = re.compile(r"\s*([(\"'\u201c\u2018\[]*)(\w*)(\.?)")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_NUMBER = re.compile(r"\d{1,3}")
# Words that begin sentences and no names: after an abbreviation they say that it was the last word of its sentence.
_STARTERS = frozenset(
    words("""
    a after all also although an and another any are as at because before but by can could did do does each even every
    everyone finally first for from have he her here his how however i if in is it its just last later let many maybe
    meanwhile more most my never no nobody not nothing now on once one only or other our people perhaps please she
    should since so some sometimes soon still such that the their then there therefore these they this those though
    thus to today tomorrow until was we were what when where whether which while who why will with would yes yesterday
    yet you your
    """)
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order: cut after . ! ? where a space follows, and at empty lines.

    Abbreviations ("Dr. Smith", "Jan. 5", "the U.S. Army"), initials and "3.5" are not cut. What has nothing to speak
    is left out.
    """
    return [
        sentence
        for sentence in map(normalize_text, cut(text))
        if any(c.isalnum() or c in SPOKEN_SYMBOLS for c in sentence)
    ]


def cut(text: str) -> list[str]:
    """The text as it is, in sentences: one after the other they are the text."""
    sentences, start = [], 0
    for match in _END.finditer(text):
        if match.group() != "." or not _inside(text, start, match.start()):
            sentences.append(text[start : match.end()])
            start = match.end()
    return [*sentences, text[start:]]


def _inside(text: str, start: int, stop: int) -> bool:
    """True if the full stop of a sentence that began at start does not end it."""
    begin = stop
    while begin > start and stop - begin < 40 and not text[begin - 1].isspace():
        begin -= 1
    last = text[begin:stop].lstrip("(\"'\u201c\u2018[")
    following = _NEXT.match(text, stop + 1)
    assert following is not None
    quote, word, dot = following.groups()
    if word[:1].islower():
        return True
    if _NUMBER.fullmatch(last) and not text[start:begin].strip():
        return True  # "1. The first of a list"
    lower = last.lower()
    if lower in NEVER_LAST:
        return True
    if lower in BEFORE_NUMBERS and word[:1].isdigit():
        return True
    initial = len(last) == 1 and last.isalpha() and last.isupper()
    if initial and len(word) == 1 and dot:
        return True  # "J. K. Rowling"
    if last == "I" or quote or not word:
        return False
    short = initial or last in TITLES or lower in CLOSING or _DOTTED.fullmatch(last) is not None
    return short and word.lower() not in _STARTERS
