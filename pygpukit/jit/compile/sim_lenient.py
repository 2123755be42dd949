"""Faults that g++ finds and NVRTC's front end passes over: in templates that nobody instantiates, and in
a member's name that hides a type's.

g++ takes them, too, when it is told to be permissive, and then much else. So it is told only where its first run found
nothing but these, and a source without a fault is compiled once.
"""

from __future__ import annotations

import re

FLAG = "-fpermissive"
_ERROR = re.compile(r"^[^\s:][^\n]*?:\d+:(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_LENIENT = re.compile(
    r"(?:there are no arguments to '[^']*' that depend on a template parameter"
    r"|declaration of '[^\n]*' changes meaning of)[^\n]* \[-fpermissive\]$"
)
_MAX_ERRORS = 20  # g++ is told to stop there: what it would have said next is not known


def only_lenient(log: str) -> bool:
    """True where g++ refused a source for nothing but what NVRTC takes."""
    errors = [match["text"] for match in _ERROR.finditer(log)]
    return 0 < len(errors) < _MAX_ERRORS and all(map(_LENIENT.match, errors))
