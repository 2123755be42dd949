"""Whole numbers in English words."""

from __future__ import annotations

import re

from pygpukit.tts.text.tables import words

_ONES = words("""zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""")
_TENS = ["", "", *words("twenty thirty forty fifty sixty seventy eighty ninety")]
_SCALES = [
    "",
    *words("""thousand million billion trillion quadrillion quintillion sextillion septillion octillion nonillion
decillion
    """),
]
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
LONGEST = 3 * len(_SCALES)  # digits of a number that has a name


def cardinal(number: int, british: bool = False) -> str:
    """42 as "forty-two". british: with "and" before the last two digits. Numbers of at most LONGEST digits."""
    if number < 0:
        return "minus " + cardinal(-number, british)
    if number < 1000:
        return _hundreds(number, british)
    groups = []
    rest, scale = number, 0
    while rest:
        rest, group = divmod(rest, 1000)
        if group:
            groups.append(f"{_hundreds(group, british)} {_SCALES[scale]}".strip())
        scale += 1
    if british and 0 < number % 1000 < 100:
        groups[0] = "and " + groups[0]
    return " ".join(reversed(groups))


def _hundreds(number: int, british: bool) -> str:
    hundreds, rest = divmod(number, 100)
    if rest < 20:
        words = _ONES[rest]
    else:
        words = _TENS[rest // 10] + (f"-{_ONES[rest % 10]}" if rest % 10 else "")
    if not hundreds:
        return words
    return f"{_ONES[hundreds]} hundred" + (f" {'and ' if british else ''}{words}" if rest else "")


def ordinal(number: int, british: bool = False) -> str:
    """42 as "forty-second"."""
    words = cardinal(number, british)
    last = re.split(r"[ -]", words)[-1]
    if last in _ORDINALS:
        special = _ORDINALS[last]
    else:
        special = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return words[: len(words) - len(last)] + special


def digits(text: str) -> str:
    """Each digit as a word."""
    return " ".join(_ONES[int(digit)] for digit in text if digit.isdigit())


def year(number: int) -> str:
    """1984 as "nineteen eighty-four", 1905 "nineteen oh five", 2000 to 2009 and whole thousands as cardinals."""
    if not 1000 <= number <= 9999 or number % 1000 < 10:
        return cardinal(number)
    century, rest = divmod(number, 100)
    if not rest:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def label(text: str) -> str:
    """Digits that count nothing, as the numbers of models and rooms: 404 as "four oh four", 4090 as "forty ninety"."""
    if text[0] == "0" or len(text) > 4:
        return digits(text)
    number = int(text)
    if len(text) < 3 or number % 100 == 0:
        return cardinal(number) if len(text) < 4 or number % 1000 == 0 else year(number)
    head, rest = divmod(number, 100)
    return f"{cardinal(head)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def whole(text: str, british: bool = False) -> str:
    """Digits with or without commas. Read one by one: those that begin with 0, that are longer than any name, and ten
    or more that nothing parts, unless they end in zeros."""
    plain = text.replace(",", "")
    counted = "," in text or len(plain) < 10 or plain.endswith("000000")
    if (plain[0] == "0" and len(plain) > 1) or len(plain) > LONGEST or not counted:
        return digits(plain)
    return cardinal(int(plain), british)
