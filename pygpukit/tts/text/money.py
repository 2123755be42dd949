"""Amounts of money in words: "$5.50", "5 EUR", "US$1.2 million", "$5-10", "20p" not."""

from __future__ import annotations

import re

from pygpukit.tts.text.integers import cardinal, whole
from pygpukit.tts.text.numbers import NUMBER, number

# One, several, and the hundredth part of one.
_NAMES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "US$": ("U.S. dollar", "U.S. dollars", "cent", "cents"),
    "A$": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "C$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "HK$": ("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "NZ$": ("New Zealand dollar", "New Zealand dollars", "cent", "cents"),
    "R$": ("real", "reais", "centavo", "centavos"),
    "\u00a3": ("pound", "pounds", "penny", "pence"),
    "\u20ac": ("euro", "euros", "cent", "cents"),
    "\u00a5": ("yen", "yen", "", ""),
    "\u20b9": ("rupee", "rupees", "paisa", "paise"),
    "\u20a9": ("won", "won", "", ""),
    "\u20bd": ("ruble", "rubles", "kopeck", "kopecks"),
    "\u20ba": ("lira", "lira", "kurush", "kurush"),
    "\u20aa": ("shekel", "shekels", "agora", "agorot"),
    "\u20b4": ("hryvnia", "hryvnias", "kopeck", "kopecks"),
    "\u20bf": ("bitcoin", "bitcoins", "", ""),
    "\u00a2": ("cent", "cents", "", ""),
}
_CODES = {
    "USD": "$",
    "EUR": "\u20ac",
    "GBP": "\u00a3",
    "JPY": "\u00a5",
    "INR": "\u20b9",
    "KRW": "\u20a9",
    "RUB": "\u20bd",
    "BTC": "\u20bf",
    "AUD": "A$",
    "CAD": "C$",
    "Rs.": "\u20b9",
    "Rs": "\u20b9",
    "CHF": "CHF",
    "CNY": "CNY",
}
_NAMES |= {"CHF": ("Swiss franc", "Swiss francs", "", ""), "CNY": ("yuan", "yuan", "", "")}
_LARGE = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion", "t": "trillion"}
_LARGE |= {"tn": "trillion", "tr": "trillion", "trn": "trillion", "mio": "million"}

_SIGN = "|".join(sorted(map(re.escape, (*_NAMES, *_CODES)), key=len, reverse=True))
_SCALE = r"(?:[\s-]?(hundred|thousand|million|billion|trillion|quadrillion|[kKmMbBtT]|[mb]n|tr?n|mio)\b)?"
_BEFORE = re.compile(
    rf"(?<![\w.])({_SIGN})\s?(minus )?({NUMBER}){_SCALE}(?:(?:\s?[-\u2013]\s?| to )\1\s?({NUMBER}){_SCALE}"
    rf"|[-\u2013]({NUMBER}){_SCALE}(?![\w-]))?(?: (?:{'|'.join(_CODES)}|dollars?|euros?)\b)?"
)
_AFTER = re.compile(rf"(?<![\w.,])({NUMBER}){_SCALE}\s?({_SIGN})(?![\w$])")
_ONE_THING = re.compile(r"(?= (?:bill|bills|note|notes|coin|coins)\b)")
_PER = re.compile(rf"((?:{_SIGN})\s?{NUMBER}{_SCALE})\s?/\s?(?=[a-z])")


def money(text: str, british: bool = False) -> str:
    """The text with amounts of money in words."""
    text = _PER.sub(lambda m: m[1] + " per ", text)
    text = _BEFORE.sub(lambda m: _before(m, british), text)
    return _AFTER.sub(lambda m: _ended(m, _amount(m[3], m[1], m[2], british)), text)


def _before(match: re.Match[str], british: bool) -> str:
    sign, minus, first, scale = match[1], match[2] or "", match[3], match[4]
    last, last_scale = match[5] or match[7], match[6] or match[8]
    if last is None:
        return _ended(match, minus + _amount(sign, first, scale, british))
    begin = number(first, british) + (f" {_scale(scale)}" if scale else "")
    return _ended(match, f"{minus}{begin} to {_amount(sign, last, last_scale, british)}")


def _ended(match: re.Match[str], words: str) -> str:
    """ "five dollar bill" of "$5 bill"."""
    if _ONE_THING.match(match.string, match.end()):
        return re.sub(r"s$", "", words)
    return words + (" " if match.string[match.end() : match.end() + 1].isalnum() else "")


def _scale(scale: str) -> str:
    return _LARGE.get(scale.lower(), scale)


def _amount(sign: str, digits: str, scale: str | None, british: bool) -> str:
    singular, plural, part, parts = _NAMES[_CODES.get(sign, sign)]
    if scale:
        return f"{number(digits, british)} {_scale(scale)} {plural}"
    major, _, minor = digits.partition(".")
    if len(minor) > 2 or (minor and not part):
        return f"{number(digits, british)} {plural}"
    units = whole(major, british) if major else "zero"
    said = f"{units} {singular if units == 'one' else plural}"
    hundredths = int(minor.ljust(2, "0")) if minor else 0
    if not hundredths:
        return said
    small = f"{cardinal(hundredths)} {part if hundredths == 1 else parts}"
    return small if units == "zero" else f"{said} and {small}"
