"""Signs that are words: & and @, of arithmetic, and marks that are only for the eye."""

from __future__ import annotations

import re
import unicodedata

_WORDS = {
    "&": "and",
    "@": "at",
    "+": "plus",
    "=": "equals",
    "\u00b1": "plus or minus",
    "\u00d7": "times",
    "\u00f7": "divided by",
    "\u2212": "minus",
    "\u2248": "is about",
    "\u2260": "is not equal to",
    "\u2264": "is at most",
    "\u2265": "is at least",
    "<": "is less than",
    ">": "is greater than",
    "\u2192": "to",
    "\u221e": "infinity",
    "\u221a": "the square root of",
    "\u2211": "the sum of",
    "\u00a7": "section",
    "\u00b6": "paragraph",
    "\u00b0": "degrees",
    "#": "hash",
    "$": "dollar",
    "\u00a3": "pound",
    "\u20ac": "euro",
    "\u00a5": "yen",
    "\u00a2": "cent",
    "~": "about",
    "\u2122": "",
    "\u00ae": "",
    "\u2022": ",",
    "\u00b7": " ",
    "|": ",",
    "\\": " ",
    "^": "to the power of",
    "*": " ",
    "_": " ",
    "`": " ",
    "{": " ",
    "}": " ",
    "[": " ",
    "]": " ",
    "\u2044": " over ",
}
_GREEK = re.compile(r"(?<![\u0370-\u03ff])[\u0391-\u03a9\u03b1-\u03c9](?![\u0370-\u03ff])")  # a letter, no word
_COMPARED = re.compile(r"[<>]=|!=|==|->|=>|<-")
_TWO = {"<=": "\u2264", ">=": "\u2265", "!=": "\u2260", "==": "=", "->": "\u2192", "=>": "\u2192", "<-": "\u2192"}
_AMPERSAND = re.compile(r"\b([A-Z])([A-Z])&([A-Z])\b")
_LANGUAGES = re.compile(r"(?<![\w+#])([A-Z])(#|\+\+)(?!\w)")
_POWER = re.compile(r"\^(2|3)(?!\d)")
_TO_THE = re.compile(r"\^\{?([-\u2212]?)(\d+)\}?")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3}|~~|`+)(?=\S)(.{1,500}?)(?<=\S)\1")
_SLASH = re.compile(r"(?<=\w)\s?/\s?(?=\w)")
_OTHER = re.compile("[" + re.escape("".join(_WORDS)) + "]")


def before_numbers(text: str) -> str:
    """Symbols as words, or removed, where a number may follow."""
    text = _TAG.sub(" ", text)
    text = _EMPHASIS.sub(lambda m: m[2], text)
    text = _LANGUAGES.sub(lambda m: m[1] + (" sharp" if m[2] == "#" else " plus plus"), text)
    text = _AMPERSAND.sub(r"\1.\2. and \3", text)
    text = _COMPARED.sub(lambda m: f" {_TWO[m[0]]} ", text)
    text = re.sub(r"\band/or\b", "and or", text)
    text = re.sub(r"(?<![\w<])~\s?(?=[$\u00a3\u20ac]?\d)|\u2248\s?(?=[$\u00a3\u20ac]?\d)", " about ", text)
    return re.sub(r"\u00b1\s?(?=[$\u00a3\u20ac]?\d)", "plus or minus ", text)


def powers(text: str) -> str:
    """x^2 as "x squared"."""
    text = _POWER.sub(lambda m: " squared" if m[1] == "2" else " cubed", text)
    return _TO_THE.sub(lambda m: f" to the power of {'minus ' if m[1] else ''}{m[2]}", text)


def symbols(text: str) -> str:
    """All that is left of signs, as words."""
    text = _SLASH.sub(" slash ", text)
    text = _GREEK.sub(lambda m: f" {_letter(m[0])} ", text)
    return _OTHER.sub(lambda m: f" {_WORDS[m[0]]} ", text)


def _letter(character: str) -> str:
    """The name of a Greek letter."""
    return unicodedata.name(character).rpartition(" ")[2].lower().replace("lamda", "lambda")
