"""Numbers with units, percent and degrees, in words."""

from __future__ import annotations

import re

from pygpukit.tts.text.numbers import NUMBER, number
from pygpukit.tts.text.tables import words

_PREFIXED = {
    "m": "meter",
    "g": "gram",
    "L": "liter",
    "l": "liter",
    "s": "second",
    "W": "watt",
    "Wh": "watt hour",
    "V": "volt",
    "A": "amp",
    "Ah": "amp hour",
    "J": "joule",
    "N": "newton",
    "Hz": "hertz",
    "Pa": "pascal",
    "cal": "calorie",
    "B": "byte",
    "bit": "bit",
    "b": "bit",
    "bps": "bit per second",
    "Bps": "byte per second",
    "mol": "mole",
    "eV": "electronvolt",
    "F": "farad",
    "\u03a9": "ohm",
    "FLOPS": "flops",
    "px": "pixel",
}
_PREFIXES = {
    "n": "nano",
    "\u00b5": "micro",
    "\u03bc": "micro",
    "m": "milli",
    "c": "centi",
    "d": "deci",
    "h": "hecto",
    "k": "kilo",
    "K": "kilo",
    "M": "mega",
    "G": "giga",
    "T": "tera",
    "P": "peta",
    "Ki": "kibi",
    "Mi": "mebi",
    "Gi": "gibi",
    "Ti": "tebi",
}
_SPOKEN_PREFIXED = words("""
nm \u00b5m \u03bcm mm cm dm km Mm mg \u00b5g \u03bcg kg ml mL cl cL dl dL hl ns \u00b5s \u03bcs ms mW kW MW GW TW kWh
MWh GWh
TWh mV kV mA mAh kJ MJ kN kHz MHz GHz THz hPa kPa MPa GPa kcal kB KB MB GB TB PB KiB MiB GiB TiB kbit Mbit Gbit Kb Mb Gb
kbps Kbps Mbps Gbps Tbps MBps GBps mmol keV MeV GeV TeV nF \u00b5F \u03bcF k\u03a9 M\u03a9 GFLOPS TFLOPS PFLOPS Mpx
""")
_PLAIN = {
    "in": ("inch", "inches"),
    "ft": ("foot", "feet"),
    "yd": ("yard", "yards"),
    "yds": ("yard", "yards"),
    "mi": ("mile", "miles"),
    "oz": ("ounce", "ounces"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "t": ("ton", "tons"),
    "gal": ("gallon", "gallons"),
    "pt": ("point", "points"),
    "tbsp": ("tablespoon", "tablespoons"),
    "tsp": ("teaspoon", "teaspoons"),
    "h": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "hrs": ("hour", "hours"),
    "min": ("minute", "minutes"),
    "mins": ("minute", "minutes"),
    "sec": ("second", "seconds"),
    "secs": ("second", "seconds"),
    "d": ("day", "days"),
    "wk": ("week", "weeks"),
    "wks": ("week", "weeks"),
    "yr": ("year", "years"),
    "yrs": ("year", "years"),
    "mo": ("month", "months"),
    "mph": ("mile per hour", "miles per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "kmh": ("kilometer per hour", "kilometers per hour"),
    "mpg": ("mile per gallon", "miles per gallon"),
    "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "bpm": ("beat per minute", "beats per minute"),
    "dpi": ("dot per inch", "dots per inch"),
    "psi": ("pound per square inch", "pounds per square inch"),
    "ppm": ("part per million", "parts per million"),
    "sqft": ("square foot", "square feet"),
    "sq ft": ("square foot", "square feet"),
    "sq mi": ("square mile", "square miles"),
    "sq km": ("square kilometer", "square kilometers"),
    "sq m": ("square meter", "square meters"),
    "cc": ("cubic centimeter", "cubic centimeters"),
    "ha": ("hectare", "hectares"),
    "ac": ("acre", "acres"),
    "dB": ("decibel", "decibels"),
    "K": ("kelvin", "kelvins"),
    "bar": ("bar", "bars"),
    "mcg": ("microgram", "micrograms"),
    "pct": ("percent", "percent"),
    "tok": ("token", "tokens"),
}
_SAME = ("hertz", "flops")


def _many(singular: str) -> str:
    """The plural: "bits per second" of "bit per second"."""
    head, per, rest = singular.partition(" per ")
    return (head if head.endswith(_SAME) else head + "s") + per + rest


def _units() -> dict[str, tuple[str, str]]:
    names = dict(_PLAIN)
    names |= {unit: (name, _many(name)) for unit, name in _PREFIXED.items() if unit not in ("b", "l", "bit")}
    for unit in _SPOKEN_PREFIXED:
        prefix = next(
            p for p in sorted(_PREFIXES, key=len, reverse=True) if unit.startswith(p) and unit[len(p) :] in _PREFIXED
        )
        name = _PREFIXES[prefix] + _PREFIXED[unit[len(prefix) :]]
        names[unit] = name, _many(name)
    return names


_UNITS = _units()
_ALTERNATIVES = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
# Without a number they are words or letters.
_ALONE = "|".join(
    sorted((unit for unit in _SPOKEN_PREFIXED if unit not in ("ms", "dm", "Mm", "MA")), key=len, reverse=True)
)
_POWER = r"(?:\^?([23]))?"
_MEASURE = re.compile(
    rf"(?<![\w.])({NUMBER})(\s?|-)({_ALTERNATIVES}){_POWER}"
    rf"(?:\s?/\s?({_ALTERNATIVES}|day|week|month|year|hour|minute|second|person){_POWER})?"
    r"(?!\w|'\w)(\.(?=\s?[a-z,;:)]))?"
)
_UNCOUNTED = re.compile(rf"(?<![\w/.^-])({_ALONE})(?:/({_ALTERNATIVES}))?(?![\w/]|\.\w)")
_PERCENT = re.compile(r"\s?%")
_DEGREES = re.compile(rf"(?<![\w.])({NUMBER})\s?[\u00b0\u00ba](?:\s?([CFKNSEW])\b)?")
_FEET = re.compile(r"(?<![\w.])(\d+)['\u2032]\s?(\d+)(?:\"|''|\u2033)")
_INCHES = re.compile(rf"(?<![\w.])({NUMBER})(?:\"|\u2033)(?:(x)(?=\d)|(?!\w))")
_TALL = re.compile(r"(?<![\w.])(\d+)['\u2032](?= (?:tall|high|wide|long|deep|x|by)\b)")
_SCALES = {"C": "Celsius", "F": "Fahrenheit", "K": "Kelvin", "N": "north", "S": "south", "E": "east", "W": "west"}
_SQUARED = {"2": "square ", "3": "cubic "}


def measures(text: str, british: bool = False) -> str:
    """The text with its measures in words."""
    text = _FEET.sub(lambda m: f"{m[1]} {_named('ft', m[1])} {m[2]} {_named('in', m[2])}", text)
    text = _TALL.sub(lambda m: f"{m[1]} {_named('ft', m[1])}", text)
    text = _INCHES.sub(_inches, text)
    text = _DEGREES.sub(lambda m: _degrees(m, british), text)
    text = _MEASURE.sub(lambda m: _measure(m, british), text)
    text = _UNCOUNTED.sub(lambda m: _UNITS[m[1]][1] + (f" per {_UNITS[m[2]][0]}" if m[2] else ""), text)
    return _PERCENT.sub(" percent", text.replace("\u2030", " per mille"))


def _named(unit: str, count: str) -> str:
    return _UNITS[unit][0 if count == "1" else 1]


def _inches(match: re.Match[str]) -> str:
    """The mark after a number is no unit where it ends a quotation."""
    if match.string.count('"', max(0, match.start() - 1000), match.end() - 1) % 2:
        return match[0]
    return f"{match[1]} {_named('in', match[1])}" + (" by " if match[2] else "")


def _degrees(match: re.Match[str], british: bool) -> str:
    scale = f" {_SCALES[match[2]]}" if match[2] else ""
    after = " " if match.string[match.end() : match.end() + 1].isalnum() else ""
    return f"{number(match[1], british)} degree{'' if match[1] == '1' else 's'}{scale}{after}"


def _measure(match: re.Match[str], british: bool) -> str:
    count, gap, unit, power, per, per_power, dot = match.groups()
    feet = unit == "in" and match.string[: match.start()].rstrip().endswith(("ft", "feet", "foot"))
    if gap == " " and not feet and unit in ("in", "d", "t", "pt", "mo", "ac", "K") and not (dot or per):
        return match[0]  # "5 in a row"
    if not gap and unit in ("K", "B", "M", "T") and not per:
        return match[0]  # "4K", "5B"
    if unit == "s" and not gap and not per and _several(match):
        return match[0]
    singular, plural = _UNITS[unit]
    name = singular if count == "1" or gap == "-" else plural
    if power and (per is None or unit not in ("s", "h")):
        name = _SQUARED[power] + name
    if per:
        name += f" per {_per(per, per_power)}"
    return f"{number(count, british)} {name}"


def _several(match: re.Match[str]) -> bool:
    """ "1990s", "the 80s", "F-16s" and "747s" are no seconds."""
    count, before = match[1], match.string[max(0, match.start() - 8) : match.start()].lower()
    if before.endswith("-") or len(count) == 4 or (len(count) == 3 and count[1:] not in ("00", "20", "50", "80")):
        return True
    return count.endswith("0") and before.endswith(("the ", "'", "early ", "late ", "his ", "her ", "my ", "their "))


def _per(unit: str, power: str | None) -> str:
    name = _UNITS[unit][0] if unit in _UNITS else unit
    if power and unit in ("s", "h", "min"):
        return name + (" squared" if power == "2" else " cubed")
    return (_SQUARED[power] if power else "") + name
