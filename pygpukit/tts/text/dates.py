"""Dates in words: "Jan. 5, 2024", "5 May", "12/25/2024", "2024-12-25", "25.12.2024"."""

from __future__ import annotations

import re

from pygpukit.tts.text.integers import ordinal, year
from pygpukit.tts.text.tables import words

_MONTHS = words("""January February March April May June July August September October November December""")
_NUMBER_OF = {name[:3]: place for place, name in enumerate(_MONTHS)}
_MONTH = rf"((?:{'|'.join(_MONTHS)})\b|(?:{'|'.join(name[:3] for name in _MONTHS)}|Sept)\b\.?)"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_STOP = r"(?![\w%:]|[.,/-]?\d)"

_ISO = re.compile(r"(?<![\w./-])(\d{4})([-/])(\d{1,2})\2(\d{1,2})(?=T\d|(?![\w/-]))T?")
_NUMERIC = re.compile(r"(?<![\w./-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d\d)(?![\w/-]|\.\d)")
_SHORT = re.compile(r"(?i)\b(on|by|since|until|before|after|due|from|till) (\d{1,2})/(\d{1,2})(?![\w/]|\.\d)")
_MONTH_DAY = re.compile(rf"\b{_MONTH} {_DAY}(?:\s?[-\u2013]\s?{_DAY})?(?:(,?) (\d{{4}}))?{_STOP}")
_DAY_MONTH = re.compile(
    rf"(?<![\w.,/:$\u00a3\u20ac-])(the )?{_DAY}(?:\s?[-\u2013]\s?{_DAY})?(?: of)? {_MONTH}(?:(,?) (\d{{4}}))?{_STOP}"
)
_MONTH_YEAR = re.compile(rf"\b{_MONTH},? (\d{{4}}){_STOP}")
_ERA = re.compile(r"(?<![\w.,])(\d{3,4})(?= ?(?:BCE?|AD|CE|B\.C\.|A\.D\.)(?!\w))|(?<=\bAD )(\d{3,4})(?![\w,.]?\d)")


def dates(text: str, british: bool = False) -> str:
    """The text with its dates in words. british: day before month where the numbers leave it open."""
    text = _ISO.sub(lambda m: _named(m, m[4], m[3], m[1], british) + (" at " if m[0][-1] == "T" else ""), text)
    text = _NUMERIC.sub(lambda m: _numeric(m, british), text)
    text = _SHORT.sub(lambda m: f"{m[1]} {_ordered(m, m[2], m[3], None, british)}", text)
    text = _MONTH_DAY.sub(lambda m: _month_day(m, british), text)
    text = _DAY_MONTH.sub(lambda m: _day_month(m, british), text)
    text = _MONTH_YEAR.sub(lambda m: f"{_full(m[1])} {year(int(m[2]))}", text)
    return _ERA.sub(lambda m: year(int(m[1] or m[2])), text)


def _full(month: str) -> str:
    return _MONTHS[_NUMBER_OF[month[:3]]]


def _named(match: re.Match[str], day: str, month: str, of: str | None, british: bool) -> str:
    """In words, or as it stands where there is no such date."""
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return match[0]
    name, number = _MONTHS[int(month) - 1], ordinal(int(day))
    said = f"the {number} of {name}" if british else f"{name} {number}"
    return said if of is None else f"{said}, {year(int(of))}"


def _ordered(match: re.Match[str], first: str, second: str, of: str | None, day_first: bool) -> str:
    day, month = (first, second) if day_first else (second, first)
    if int(month) > 12:
        day, month = month, day
    return _named(match, day, month, of, day_first)


def _numeric(match: re.Match[str], british: bool) -> str:
    first, mark, second, of = match.groups()
    if len(of) == 2:
        if mark != "/":
            return match[0]  # "1.2.34" and "12-34-56" are no dates more often than they are
        of = ("19" if int(of) >= 70 else "20") + of
    return _ordered(match, first, second, of, british or mark == ".")


def _days(first: str, last: str | None) -> str | None:
    numbers = [int(day) for day in (first, last) if day is not None]
    return " to ".join(map(ordinal, numbers)) if all(1 <= day <= 31 for day in numbers) else None


def _month_day(match: re.Match[str], british: bool) -> str:
    month, first, last, comma, of = match.groups()
    days = _days(first, last)
    if days is None:
        return match[0]
    said = f"{_full(month)} {'the ' if british else ''}{days}"
    return said if of is None else f"{said}{comma} {year(int(of))}"


def _day_month(match: re.Match[str], british: bool) -> str:
    _, first, last, month, comma, of = match.groups()
    days = _days(first, last)
    if days is None:
        return match[0]
    said = f"the {days} of {_full(month)}"
    return said if of is None else f"{said}{comma} {year(int(of))}"
