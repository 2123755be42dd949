"""Roman numerals where they are numerals: "Chapter IV", "Henry VIII", "the XIX century"; no pronouns or letters."""

from __future__ import annotations

import re

from pygpukit.tts.text.integers import cardinal, ordinal
from pygpukit.tts.text.tables import words

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_NUMERAL = r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_PARTS = words("""
Chapter Part Act Scene Section Volume Book Phase Article Type Level Stage Class Grade Episode Round Mark Title Appendix
Schedule Table Figure Canto Psalm Movement Symphony Opus Division Tier Season Lesson Unit Exhibit Amendment
Rule Category
""")
_RULERS = words("""
Pope King Queen Emperor Empress Tsar Czar Sultan Shah Pharaoh Prince Duke Kaiser Henry Louis Edward George
William Charles James Richard Elizabeth Napoleon Pius Benedict Leo Paul Ramses Ramesses Thutmose Amenhotep
Frederick Philip Alexander
Nicholas Peter Catherine Ivan Umberto Emmanuel Gustav Christian Ferdinand Francis Innocent Clement Gregory Urban Sixtus
Julius Boniface Xerxes Darius Cyrus Ptolemy Constantine Theodosius Justinian Otto Heinrich Wilhelm Friedrich Karl Joseph
Leopold Maximilian Alfonso Felipe Carlos Juan Isabella Mary Margaret Harald Haakon Olaf Robert David John Mehmed
Suleiman Selim Murad Rama Akbar Humbert Albert Andrew Thomas Michael Edgar Ludwig Stephen Victor Zog Baldwin Theodore
""")
_TITLES = "Pope|King|Queen|Emperor|Empress|Tsar|Czar|Sultan|Pharaoh|Prince|Kaiser"
# What may follow a lonely I that is a number.
_ENDED = r"(?=\s*(?:$|[.,:;!?)\]\"\u2014\u2013-])|\s+(?:of|of\s|error|errors|diabetes|trial|trials)\b)"

_PART = re.compile(
    rf"\b((?:{'|'.join(_PARTS)}|(?<![.!?] )(?<!^)(?:{'|'.join(map(str.lower, _PARTS))}))s?) "
    rf"({_NUMERAL})(?!\w|['\u2019.]\w)"
)
_WARS = re.compile(r"\bWorld Wars I (and|or|to) II\b")
_WAR = re.compile(
    rf"\b(World War|Super Bowl|Apollo|Gemini|Final Fantasy|Rocky|WrestleMania|Vatican|Saturn|Star Wars|Windows NT) "
    rf"({_NUMERAL})\b"
)
_RULER = re.compile(rf"\b((?:[A-Z][\w'.-]{{0,30}}[a-z.] ){{0,3}})([A-Z][a-z]{{1,30}}) ({_NUMERAL})\b")
_CENTURY = re.compile(rf"\b({_NUMERAL})(?:th|st|nd|rd)? (?=(?:century|centuries|dynasty|Olympiad|Corps|Legion)\b)")
_ORDINAL = re.compile(rf"\b({_NUMERAL})(?:th|st|nd|rd)\b")
_ALLIES = re.compile(r"\bWW(I{1,2})\b")


def roman(text: str) -> str:
    """The text with its Roman numerals in words."""
    text = _ALLIES.sub(lambda m: f"World War {cardinal(value(m[1]))}", text)
    text = _WARS.sub(r"World Wars one \1 two", text)
    text = _WAR.sub(lambda m: f"{m[1]} {cardinal(value(m[2]))}", text)
    text = _CENTURY.sub(lambda m: m[0] if m[1] == "I" else ordinal(value(m[1])) + " ", text)
    text = _ORDINAL.sub(lambda m: ordinal(value(m[1])), text)
    text = _PART.sub(lambda m: f"{m[1]} {cardinal(value(m[2]))}" if _counts(m, m[2]) else m[0], text)
    return _RULER.sub(_ruler, text)


def value(numeral: str) -> int:
    """The value of a numeral."""
    total = 0
    for place, letter in enumerate(numeral):
        following = _VALUES.get(numeral[place + 1 : place + 2], 0)
        total += -_VALUES[letter] if following > _VALUES[letter] else _VALUES[letter]
    return total


def _counts(match: re.Match[str], numeral: str) -> bool:
    """An I is the pronoun unless it ends what it belongs to, after a word with a capital."""
    if numeral != "I":
        return True
    return match[1][0].isupper() and re.compile(_ENDED).match(match.string, match.end()) is not None


def _ruler(match: re.Match[str]) -> str:
    before, name, numeral = match[1], match[2], match[3]
    names = {name, *before.split()}
    if not names & set(_RULERS) or set(numeral) - set("IVXL") or (numeral in ("L", "V", "X") and name not in _RULERS):
        if len(numeral) > 1 and not set(numeral) - set("IVX") and name not in _PARTS:
            return match[0].replace(f" {numeral}", " " + cardinal(value(numeral)))
        return match[0]
    titled = re.search(rf"\b(?:{_TITLES})\b", before) is not None
    if numeral == "I" and not titled and not re.compile(_ENDED).match(match.string, match.end()):
        return match[0]
    if numeral == "I" and name in ("Book", *_PARTS):
        return match[0]
    said = ordinal(value(numeral))
    return match[0].replace(f" {numeral}", f" the {said}")
