"""From text to phonemes, by a library that is installed: hibari's G2P, or misaki. Both write Kokoro's alphabet."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import install_command

Speak = Callable[[str], str]

LANGUAGES = {"a": "American English", "b": "British English"}
MAX_PHONEMES = 510  # phonemes of an utterance: Kokoro takes 512 tokens, and two of them are its begin and end
_STRONG, _MIDDLE, _WEAK = "!.?\u2026", ":;", ",\u2014"


def converter(lang: str | None = "a", use_misaki: bool = True) -> Speak:
    """The converter from text of a language ("a" American, "b" British English) to phonemes.

    hibari is taken where it is installed, else misaki, if use_misaki. Raises as library().
    """
    return {"hibari": _hibari, "misaki": _misaki}[library(lang, use_misaki)](str(lang))


def library(lang: str | None = "a", use_misaki: bool = True) -> str:
    """Which library converter() takes. Raises InvalidSpecError for another language, and where none is installed,
    saying what to install."""
    if lang not in LANGUAGES:
        known = ", ".join(f"{key!r} ({name})" for key, name in LANGUAGES.items())
        raise InvalidSpecError(
            f"there is no way from text in language {lang!r} to phonemes here, only {known}; give phonemes= instead",
            "lang",
        )
    for name in ("hibari", "misaki"):
        if (name != "misaki" or use_misaki) and find_spec(name) is not None:
            return name
    raise InvalidSpecError(
        f"text needs a library that turns it into phonemes, and none is installed: {install_command('tts')} brings "
        "hibari-tts; or give phonemes= instead",
        "text",
    )


def chunks(phonemes: str, limit: int = MAX_PHONEMES) -> list[str]:
    """Parts of up to `limit`: cut after the end of a sentence, a clause or a word, as late as it can be."""
    parts, phonemes = [], phonemes.strip()
    while len(phonemes) > limit:
        cut = _cut(phonemes[:limit])
        parts.append(phonemes[:cut].strip())
        phonemes = phonemes[cut:].strip()
    return [part for part in (*parts, phonemes) if part]


def _cut(window: str) -> int:
    for marks in (_STRONG, _MIDDLE, _WEAK, " "):
        at = max(window.rfind(mark) for mark in marks)
        if at > 0:
            return at + 1
    return len(window)


@cache
def _hibari(lang: str) -> Speak:
    speak = import_module("hibari.g2p").G2P(british=lang == "b")
    return _as_text(lambda text: speak(text, normalize_text=False))  # ours knows more, and where a numeral is none


@cache
def _misaki(lang: str) -> Speak:
    return _as_text(import_module("misaki.en").G2P(british=lang == "b"))


def _as_text(speak: Callable[[str], Any]) -> Speak:
    """misaki gives phonemes and tokens, hibari phonemes."""

    def phonemes(text: str) -> str:
        result = speak(text)
        return str(result[0] if isinstance(result, tuple) else result)

    return phonemes
