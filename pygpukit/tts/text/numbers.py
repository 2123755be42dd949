"""Numbers in running text: cardinals, ordinals, decimals, years, fractions, ranges, signs, letters beside digits."""

from __future__ import annotations

import re
import unicodedata

from pygpukit.tts.text.integers import cardinal, digits, label, ordinal, whole, year
from pygpukit.tts.text.tables import words

NUMBER = r"(?:(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)(?:\.\d+)?|\.\d+)"
_SUFFIX = {"k": "thousand", "K": "K", "M": "million", "B": "billion", "bn": "billion"}

_MINUS = re.compile(r"(?<![\w)\].,%\u00b0'\"^-])[-\u2212\u2013](?=(?:[$\u00a3\u20ac\u00a5\u20b9]\s?)?\.?\d)")
_PLUS = re.compile(r"(?<![\w)+])\+(?=[$\u00a3\u20ac\u00a5\u20b9]?\s?\.?\d)")
_SUBTRACTED = re.compile(r"(?<=[\d)]) [-\u2212\u2013] (?=[\d(][^=]{0,40}=)")
_EXPONENT = re.compile(
    rf"(?<![\w.])({NUMBER})\s?[\u00d7x*]\s?10(?:\^|\*\*)([-\u2212]?)(\d+)"
    rf"|(?<![\w.])({NUMBER})[eE]([-+\u2212]?)(\d+)(?!\w)"
)
_RANGE = re.compile(
    rf"(?<![\w.,/-])({NUMBER}(?:st|nd|rd|th)?)\s?(?:-|\u2013|\u2014|\u2212)\s?(?=({NUMBER}))(?![\d.,]*[-/\u2013]\d)"
)
_LABELS = re.compile(r"\b([A-Z])(\d{1,4})[-\u2013](?:\1)(?=\d)")
_OPEN_RANGE = re.compile(r"(?<=[\w%\u00b0])\u2013(?=[$\u00a3\u20ac]?\d)")
_TIMES = re.compile(rf"(?<![\w.])(?!0[xX])({NUMBER})(\s?)[x\u00d7*](\s?)(?={NUMBER})")
_FOLD = re.compile(rf"(?<![\w.])({NUMBER})[x\u00d7](?!\w)")
_RATIO = re.compile(r"(?<![\w:])(\d+):(?=\d+(?![\w:]))")
_MIXED = re.compile(r"(?<![\w./,])(\d+)(?:\s|-)(\d{1,3})[/\u2044](\d{1,3})(?:rds?|ths?|nds?)?(?![\w/])")
_FRACTION = re.compile(r"(?<![\w./])(\d+)[/\u2044](\d+)(?:rds?|ths?|nds?)?(?![\w/])")
_OUT_OF = re.compile(r"(?i)\b(page|slide|step|part|question|level|item|chapter) (\d+)/(?=\d)")
_DECADE = re.compile(
    r"(?<!\w)'(?P<late>\d0)'?s\b|(?<![\w'])'?(\d\d?)(\d0)'?s\b|(?:(?<=\bthe )|(?<=\bmid-)|(?<=early )|(?<=late )|"
    r"(?<=\bhis )|(?<=\bher )|(?<=\bmy )|(?<=their ))'?(\d0)'?s\b"
)
_ORDINAL = re.compile(r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d{1,30})(?:st|nd|rd|th|ST|ND|RD|TH)\b")
_SEVERAL = re.compile(r"(?<![\w.,])(\d{1,4})'?s\b")
_VERSION = re.compile(r"(?<![\w.])([vV]?)(\d+(?:\.\d+){2,})(?![\w])")
_BIG = re.compile(rf"(?<![\w.])({NUMBER})\s?(k|K|M|B|bn)(?![\w/])")
_GLUED = re.compile(r"(?<=[^\W\d_])-?(?=\d)|(?<=\d)-?(?=[^\W\d_])")
_AFTER_LETTERS = re.compile(
    r"(?<![\w.])([A-Z]{2,}|[^\W\d_]*[A-Z][^\W\d_]*[A-Z][^\W\d_]*)([ -])(\d{3,4})(?![\w,.]\d|\d)"
)
_YEAR = re.compile(r"(?<![\w.,])(1[1-9]\d\d|20\d\d)(?![\w,.-]?\d)(?=( [a-z]+)?)")
_YEAR_BEFORE = re.compile(
    r"(?i)\b(?:in|since|until|till|before|after|by|from|of|year|years|during|around|circa|early|late|mid|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|spring|summer|autumn|fall|"
    r"winter)[ ,-]*$"
)
_COUNTED = frozenset(words("people men women children feet teeth mice sheep fish percent degrees dollars euros"))
_NO_PLURAL = frozenset(words("is was as has his this thus its us yes always perhaps does"))
_NUMBER = re.compile(rf"(?<![\d])({NUMBER})")
_SPACED = re.compile(r"(?<![\w.,+-])\d{1,3}(?:(?: \d{3}){2,8}|(?: \d{3})? 000)(?![\w,]| \d)")
_LAKHS = re.compile(r"(?<![\w.,])\d{1,2}(?:,\d\d)+,\d{3}(?![\w]|,\d)")  # as India groups digits
_RAISED_SIGNS = {"\u207a": "^", "\u207b": "^-"}
_SHORT_YEAR = re.compile(r"(?<!\w)['\u2019](\d\d)(?!\w)")
_CALLED = {"24/7": "twenty-four seven", "9/11": "nine eleven", "7/11": "seven eleven"}


def number(text: str, british: bool = False) -> str:
    """A number as digits, commas and a decimal point write it, in words."""
    before, point, after = text.partition(".")
    words = whole(before, british) if before else ""
    return f"{words} point {digits(after)}".strip() if point else words


def signs(text: str) -> str:
    """Minus and plus in words; the numbers stay digits, for what counts things comes later."""
    text = _SUBTRACTED.sub(" minus ", text)
    return _PLUS.sub("plus ", _MINUS.sub("minus ", text))


def ranges(text: str) -> str:
    """ "5-10" as "5 to 10"."""
    text = _LABELS.sub(r"\1\2 to \1", text)
    text = _RANGE.sub(lambda m: m[1] + (" " if m[1] == m[2] else " to "), text)
    return _OPEN_RANGE.sub(" to ", text)


def unfolded(text: str) -> str:
    """Numbers in plain digits: of other scripts, full-width ones, halves and powers as 1/2 and ^2, "1 000 000"."""
    text = _SPACED.sub(lambda m: m[0].replace(" ", ","), text)
    text = _LAKHS.sub(lambda m: f"{int(m[0].replace(',', '')):,}", text)
    text = _SHORT_YEAR.sub(lambda m: f"oh {m[1][1]}" if m[1][0] == "0" else m[1], text)
    if text.isascii():
        return text
    parts: list[str] = []
    for character in text:
        kind = unicodedata.category(character)
        if character in _RAISED_SIGNS:
            parts.append(_RAISED_SIGNS[character])
        elif kind == "Nd":
            parts.append(str(unicodedata.decimal(character)))
        elif kind in ("No", "Nl"):
            plain = unicodedata.normalize("NFKD", character)
            if "\u2044" in plain:
                parts.append((" " if parts and parts[-1].isdigit() else "") + plain.replace("\u2044", "/"))
            elif plain.isdigit() and unicodedata.decomposition(character).startswith("<super>"):
                parts.append(plain if parts and parts[-1].startswith("^") else "^" + plain)
            else:
                value = unicodedata.numeric(character)
                parts.append(f" {int(value) if value == int(value) else value} ")
        else:
            parts.append(character)
    return "".join(parts)


def scientific(text: str, british: bool = False) -> str:
    """ "1.5e-3" and "2 x 10^5" in words."""
    return _EXPONENT.sub(lambda m: _scientific(m, british), text)


def numbers(text: str, british: bool = False) -> str:
    """All that is left of digits, in words."""
    text = _OUT_OF.sub(lambda m: f"{m[1]} {m[2]} of ", text)
    text = _MIXED.sub(lambda m: f"{whole(m[1], british)} and {_a_fraction(m[2], m[3], british)}", text)
    text = _FRACTION.sub(lambda m: _CALLED.get(m[0]) or _fraction(m[1], m[2], british), text)
    text = _TIMES.sub(
        lambda m: f"{m[1]} {'times' if m[2] and '=' in m.string[m.end() : m.end() + 40] else 'by'} ", text
    )
    text = _FOLD.sub(lambda m: f"{m[1]} times", text)
    text = _RATIO.sub(lambda m: f"{m[1]} to ", text)
    text = _DECADE.sub(_decade, text)
    text = _ORDINAL.sub(lambda m: ordinal(int(m[1].replace(",", "")), british), text)
    text = _SEVERAL.sub(lambda m: _plural(label(m[1])), text)
    text = _VERSION.sub(lambda m: _dotted(m, british), text)
    text = _BIG.sub(lambda m: f"{m[1]} {_SUFFIX[m[2]]}", text)
    text = _GLUED.sub(" ", text)
    text = _AFTER_LETTERS.sub(_model, text)
    text = _YEAR.sub(_year, text)
    text = _NUMBER.sub(lambda m: _apart(m, number(m[1], british)), text)
    return re.sub(r"\d+", lambda m: f" {digits(m[0])} ", text)


def _apart(match: re.Match[str], words: str) -> str:
    """Words that touch no letter or other number."""
    before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return (" " if before.isalnum() or before in (",", ".") else "") + words + (" " if after.isalnum() else "")


def _a_fraction(top: str, bottom: str, british: bool) -> str:
    words = _fraction(top, bottom, british)
    return "a " + words[4:] if words.startswith("one ") else words


def _fraction(top: str, bottom: str, british: bool) -> str:
    if top == bottom:
        return f"{whole(top, british)} {whole(bottom, british)}"
    if len(top) > 3 or len(bottom) > 4 or bottom[0] == "0":
        return f"{whole(top, british)} over {whole(bottom, british)}"
    above, below = int(top), int(bottom)
    if below == 1 or not above or (above > below and below > 20):
        return f"{whole(top, british)} over {whole(bottom, british)}"
    singular, plural = {2: ("half", "halves"), 4: ("quarter", "quarters")}.get(below, ("", ""))
    singular = singular or ordinal(below, british)
    return f"{cardinal(above, british)} {singular if above == 1 else plural or singular + 's'}"


def _scientific(match: re.Match[str], british: bool) -> str:
    base, sign, power = match[1] or match[4], match[2] or match[5], match[3] or match[6]
    return f"{number(base, british)} times ten to the {'minus ' if sign and sign != '+' else ''}{whole(power, british)}"


def _decade(match: re.Match[str]) -> str:
    century, tens = match[2] or "", match["late"] or match[3] or match[4]
    if not century:
        return _plural(cardinal(int(tens))) if tens != "00" else "hundreds"
    if tens == "00":
        return _plural(year(int(century + tens)))
    return f"{cardinal(int(century))} {_plural(cardinal(int(tens)))}"


def _plural(words: str) -> str:
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def _dotted(match: re.Match[str], british: bool) -> str:
    """Parts of a version, an address of the internet, or thousands as they are parted on the continent."""
    mark, parts = f"{match[1]} " if match[1] else "", match[2].split(".")
    address = len(parts) == 4 and all(int(part[:4]) < 256 for part in parts)
    if not address and parts[0][0] != "0" and all(len(part) == 3 for part in parts[1:]):
        return mark + whole(",".join(parts), british)
    return mark + (" dot " if len(parts) == 4 else " point ").join(whole(part) for part in parts)


def _model(match: re.Match[str]) -> str:
    if match[2] == " " and len(match[3]) == 4 and 1100 <= int(match[3]) < 2100:
        return match[0]
    return f"{match[1]} {label(match[3])}"


def _year(match: re.Match[str]) -> str:
    """A number of 1100 to 2099 is a year, unless it counts what follows."""
    after = (match[2] or "").strip()
    counts = after in _COUNTED or (after.endswith("s") and after not in _NO_PLURAL)
    if counts and not _YEAR_BEFORE.search(match.string[max(0, match.start() - 20) : match.start()]):
        return match[0]
    return _apart(match, year(int(match[1])))
