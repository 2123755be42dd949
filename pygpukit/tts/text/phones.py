"""Numbers that are dialled or copied, digit by digit: telephones, cards, account and book numbers."""

from __future__ import annotations

import re

from pygpukit.tts.text.integers import digits

_PHONE = re.compile(
    r"(?<![\w.,/-])(?:(\+)\s?(\d{1,3})[\s.-]?|(1)[\s.-])?(?:\((\d{2,5})\)\s?|(\d{3})[\s.-])?"
    r"(\d{3})[-.](\d{4})(?![\w/]|[-.,]\d)"
)
_ABROAD = re.compile(r"(?<![\w.,/-])\+(\d{1,3}(?:[\s().-]{1,2}\d{2,5}){2,6})(?![\w/]|[-.,]\d)")
_GROUPS = re.compile(r"(?<![\w.,/$\u00a3\u20ac-])(\d{1,7}(?:-\d{1,7}){2,8}(?:-[xX])?)(?![\w/]|-\d|[.,]\d)")
_CARD = re.compile(r"(?<![\w.,/-])(\d{4}(?: \d{4}){2,4})(?![\w/]|[-., ]\d)")
_DIALLED = re.compile(
    r"(?i)\b((?:call|dial|phone|pin|code|zip code|zip|extension|flight|room)\b(?: is| number| at)?:? )"
    r"(\d{3,})(?![\w,.]?\d)"
)


def phones(text: str) -> str:
    """The text with such numbers in words."""
    text = _ABROAD.sub(lambda m: "plus " + _grouped(m[1]), text)
    text = _PHONE.sub(lambda m: ("plus " if m[1] else "") + _grouped(m[0]), text)
    text = _CARD.sub(lambda m: _grouped(m[1]), text)
    text = _GROUPS.sub(lambda m: _grouped(m[1]), text)
    return _DIALLED.sub(lambda m: m[1] + digits(m[2]), text)


def _grouped(text: str) -> str:
    """Groups with a pause between them."""
    return ", ".join(digits(group) if group.isdigit() else group for group in re.findall(r"\d+|[xX]", text))
