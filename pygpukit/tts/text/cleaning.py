"""Removal of what cannot be spoken from a text."""

from __future__ import annotations

import re
import unicodedata

_SPACE = re.compile(r"\s+")
SPOKEN_SYMBOLS = frozenset("$+<=>^|~\u00a3\u20ac\u00a5\u00a2\u00b0\u00b1\u00d7\u00f7\u2116")
_WHOLE = str.maketrans({"\u2103": "\u00b0C", "\u2109": "\u00b0F"})  # signs that are one character


def normalize_text(text: str) -> str:
    """The text without emoji, control and invisible characters, in composed form (NFC), with single spaces."""
    kept = []
    for character in unicodedata.normalize("NFC", text).translate(_WHOLE):
        kind = unicodedata.category(character)
        if character.isspace() or (kind in ("So", "Sk") and character not in SPOKEN_SYMBOLS):
            kept.append(" ")
        elif kind[0] != "C" and not 0xFE00 <= ord(character) <= 0xFE0F:
            kept.append(character)
    return _SPACE.sub(" ", "".join(kept)).strip()
