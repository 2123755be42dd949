"""Times of day in words: "3:30 pm", "17:05", "9am-5pm", "at 10:00:30"."""

from __future__ import annotations

import re

from pygpukit.tts.text.integers import cardinal

_HALF = r"(?:\s?([AaPp])(?:\.\s?[Mm]\.?|[Mm]\b\.?(?=\.|(?![\w.]))|[Mm]\b))"
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?"
_TO = re.compile(
    rf"(?<![\w:.])((?:{_CLOCK}{_HALF}?)|(?:\d{{1,2}}{_HALF}))\s?[-\u2013]\s?(?=\d{{1,2}}(?:(?::\d\d)|\s?[AaPp]\.?[Mm]))"
)
_FROM = re.compile(r"(?<![\w:.])(\d{1,2})\s?[-\u2013]\s?(?=\d{1,2}(?::\d\d)?\s?[AaPp]\.?[Mm]\b)")
_TIME = re.compile(rf"(?<![\w:.]){_CLOCK}{_HALF}?(?:(?P<zulu>Z)\b|(?![\w:]))")
_HOUR = re.compile(rf"(?<![\w:.])(\d{{1,2}}){_HALF}")
_O_CLOCK = re.compile(r"(?i)\b(\d{1,2})(?= ?o['\u2019]clock)")


def times(text: str) -> str:
    """The text with its times of day in words."""
    text = _TO.sub(lambda m: m[1] + " to ", text)
    text = _FROM.sub(lambda m: m[1] + " to ", text)
    text = _TIME.sub(_time, text)
    text = _HOUR.sub(_hour, text)
    return _O_CLOCK.sub(lambda m: cardinal(int(m[1])), text)


def _time(match: re.Match[str]) -> str:
    hour, minute, second, half = match[1], match[2], match[3], match[4]
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59:
        return match[0]
    words = cardinal(int(hour))
    if int(minute):
        words += f" {'oh ' if int(minute) < 10 else ''}{cardinal(int(minute))}"
    elif not half and not second:
        words += " o'clock" if int(hour) <= 12 and hour != "00" else " hundred"
    if second and int(second):
        words += f" and {cardinal(int(second))} second{'' if int(second) == 1 else 's'}"
    return words + _meridiem(half, match) + (" U.T.C." if match["zulu"] else "")


def _hour(match: re.Match[str]) -> str:
    if not 1 <= int(match[1]) <= 12:
        return match[0]
    return cardinal(int(match[1])) + _meridiem(match[2], match)


def _meridiem(half: str | None, match: re.Match[str]) -> str:
    """With full stops, for then it is read in letters."""
    if half is None:
        return ""
    return f" {half.lower()}.m" + ("" if match.string[match.end() : match.end() + 1] == "." else ".")
