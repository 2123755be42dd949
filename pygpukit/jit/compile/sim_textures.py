"""Textures and surfaces on the simulated device: which sources need their header, and legacy references refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

SWITCH = "PK_SIM_TEXTURES"  # pk_sim_end.h includes pk_sim_textures.h where it is defined
_NAMES = re.compile(r"\b(?:tex|surf)(?:[123]D|Cubemap)|\bcuda(?:Texture|Surface|BoundaryMode)")
# What other files than the simulator's own headers hold is not known here.
_QUOTED = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*(?![ \t<])", re.MULTILINE)
_FILES = ("-I", "--include-path", "-include", "--pre-include")
_REFERENCE = re.compile(r"(?<![\w.:>])(?P<kind>texture|surface)\s*<[^<>;{}()]*>\s*\w+\s*(?=[;,=])")


def switches(source: str, command_line: Sequence[str]) -> tuple[str, ...]:
    """The switch, where the source, or a macro or file that the command line names, may use textures."""
    asked = _NAMES.search(source) or _QUOTED.search(source)
    is_named = any(_NAMES.search(word) or word.startswith(_FILES) for word in command_line)
    return (SWITCH,) if asked or is_named else ()


def references(code: str) -> list[tuple[int, str]]:
    """Offsets of legacy references in a source without comments and strings, and what to tell of each. A source that
    has a template of that name means its own."""
    return [
        (
            match.start(),
            f"{match['kind']} references are no part of CUDA since version 12: take a parameter "
            f"cuda{match['kind'].capitalize()}Object_t, and pass gp.{match['kind'].capitalize()}(array)",
        )
        for match in _REFERENCE.finditer(code)
        if not re.search(rf"\b(?:struct|class|union|using)\s+{match['kind']}\b", code)
    ]
