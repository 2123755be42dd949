"""Abbreviations: what they stand for, and which of them a full stop follows without ending a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pygpukit.tts.text.tables import words

# Before a name.
TITLES = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Dr": "Doctor",
    "Prof": "Professor",
    "St": "Saint",
    "Mt": "Mount",
    "Ft": "Fort",
    "Gen": "General",
    "Gov": "Governor",
    "Sen": "Senator",
    "Rep": "Representative",
    "Capt": "Captain",
    "Lt": "Lieutenant",
    "Col": "Colonel",
    "Sgt": "Sergeant",
    "Cmdr": "Commander",
    "Cpl": "Corporal",
    "Maj": "Major",
    "Adm": "Admiral",
    "Rev": "Reverend",
    "Hon": "Honorable",
    "Pres": "President",
    "Supt": "Superintendent",
    "Msgr": "Monsignor",
    "Fr": "Father",
    "Messrs": "Messieurs",
}
# Before a number, where they are words themselves otherwise.
BEFORE_NUMBERS = {
    "no": "number",
    "nos": "numbers",
    "fig": "figure",
    "figs": "figures",
    "vol": "volume",
    "vols": "volumes",
    "ch": "chapter",
    "chap": "chapter",
    "sec": "section",
    "sect": "section",
    "art": "article",
    "eq": "equation",
    "tab": "table",
    "p": "page",
    "pp": "pages",
    "pg": "page",
    "ca": "circa",
    "c": "circa",
    "est": "established",
    "max": "maximum",
    "min": "minimum",
    "avg": "average",
    "ext": "extension",
    "tel": "telephone",
    "apt": "apartment",
    "rm": "room",
    "op": "opus",
}
# Always followed by more of the sentence.
NEVER_LAST = {
    "e.g": "for example",
    "eg": "for example",
    "i.e": "that is",
    "ie": "that is",
    "vs": "versus",
    "v.s": "versus",
    "cf": "compare",
    "approx": "approximately",
    "appt": "appointment",
    "viz": "namely",
    "incl": "including",
    "excl": "excluding",
    "resp": "respectively",
    "mr": "Mister",
    "mrs": "Missus",
    "ms": "Miz",
    "messrs": "Messieurs",
    "prof": "Professor",
}
# At the end of a sentence or inside it.
CLOSING = {
    "etc": "et cetera",
    "al": "al",
    "jr": "Junior",
    "sr": "Senior",
    "inc": "Incorporated",
    "ltd": "Limited",
    "corp": "Corporation",
    "co": "Company",
    "bros": "Brothers",
    "dept": "Department",
    "univ": "University",
    "assn": "Association",
    "govt": "Government",
    "est": "established",
    "ave": "Avenue",
    "blvd": "Boulevard",
    "rd": "Road",
    "hwy": "Highway",
    "pkwy": "Parkway",
    "ln": "Lane",
    "sq": "Square",
    "bldg": "Building",
    "esq": "Esquire",
    "ed": "edition",
    "eds": "editors",
    "misc": "miscellaneous",
    "temp": "temperature",
    "ph.d": "Ph.D.",
    "a.m": "a.m.",
    "p.m": "p.m.",
    "a.k.a": "also known as",
    "jan": "January",
    "feb": "February",
    "mar": "March",
    "apr": "April",
    "jun": "June",
    "jul": "July",
    "aug": "August",
    "sep": "September",
    "sept": "September",
    "oct": "October",
    "nov": "November",
    "dec": "December",
    "mon": "Monday",
    "tue": "Tuesday",
    "tues": "Tuesday",
    "wed": "Wednesday",
    "thu": "Thursday",
    "thur": "Thursday",
    "thurs": "Thursday",
    "fri": "Friday",
    "sat": "Saturday",
    "sun": "Sunday",
}
# Only with a capital: "he sat.", "art.", "a big sun." are words.
_CAPITAL = frozenset(
    words(
        "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun ave rd ln "
        "sq co ed inc"
    )
)
# Words as well as abbreviations: left alone where a sentence may end with them.
_WORDS = frozenset(words("Sun Sat Mar Dec Fri Mon Wed Co Ed Al al temp Temp ed"))
_PLAIN = {"vs": "versus", "approx": "approximately", "aka": "also known as", "w/o": "without", "w/": "with "}
_AFTER_NAME = {"St": "Street", "Dr": "Drive", "Ft": "Feet", "Mt": "Mountain"}


_DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_MONTHS = words("January February March April May June July August September October November December")
_FULL = {name[:3]: name for name in (*_DAYS, *_MONTHS)}


def _one_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_TITLE = re.compile(
    rf"(?<![\w.])(?:({_one_of(TITLES)})\. ?|(Mr|Mrs|Ms|Dr|Prof|St|Mt) )(?=[A-Z])(?!(?:I|The|He|She|It|We|They|In|At)\b)"
)
_SPAN = re.compile(rf"\b({_one_of(_FULL)})\.?\s?[-\u2013]\s?({_one_of(_FULL)})\b\.?")
_STREET = re.compile(r"\b([A-Z]\w+ )(St|Dr)\.? (?=(?:and|in|at|near|on|to|is|was|for)\b)")
_BEFORE_NUMBER = re.compile(rf"(?i)(?<![\w.])({_one_of(BEFORE_NUMBERS)})\. ?(?=\d|(?-i:[IVXLC]{{2,}})\b)")
_DOTTED = re.compile(rf"(?<![\w.])((?i:{_one_of((*NEVER_LAST, *CLOSING))})|{_one_of(TITLES)})\.(?!\w)")
_UNDOTTED = re.compile(r"(?<![\w/.])(?:(vs|approx|aka)(?![\w.])|(w/o)(?!\w)|(w/)(?=\s?\w))")


def abbreviations(text: str) -> str:
    """The text with abbreviations in full. A full stop that ends the text stays."""
    text = _SPAN.sub(lambda m: f"{_FULL[m[1]]} to {_FULL[m[2]]}", text)
    text = _STREET.sub(lambda m: m[1] + _AFTER_NAME[m[2]] + " ", text)
    text = _TITLE.sub(lambda m: TITLES[m[1] or m[2]] + " ", text)
    text = _BEFORE_NUMBER.sub(lambda m: BEFORE_NUMBERS[m[1].lower()] + " ", text)
    text = _DOTTED.sub(_in_full, text)
    return _UNDOTTED.sub(lambda m: _PLAIN[m[0]], text)


def _in_full(match: re.Match[str]) -> str:
    short, lower = match[1], match[1].lower()
    last = not match.string[match.end() : match.end() + 8].strip(" \"')\u2019\u201d")
    if short in _AFTER_NAME:
        full = _AFTER_NAME[short]
    elif short in TITLES:
        full = TITLES[short]
    elif (lower in _CAPITAL and short[0].islower()) or (last and short in _WORDS):
        return match[0]
    else:
        full = NEVER_LAST.get(lower) or CLOSING[lower]
    return full if full.endswith(".") or not last else full + "."
