"""Limits of a tokenizer.json: its cost, and the growth of a text."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pygpukit.core.errors import ModelFileError

_MAX_GROWTH = 64  # times a text's length
_MAX_ADDED = 64  # tokens beside those of a text
_TEXTS = {"A", "B"}
_TOKEN_BYTES, _PART_BYTES, _ROOM = 280, 60, 150 << 20  # of memory, for a token of a vocabulary and a part of a merge


def check_growth(parts: list[dict[str, Any]], where: str) -> None:
    """Raises ModelFileError where replacements, one after the other, could make of a text a much longer one."""
    growth, left = 1, list(parts)
    while left:
        part = left.pop()
        left += [*part.get("normalizers", ()), *part.get("decoders", ())]
        for key in ("content", "prepend"):
            growth *= max(len(part.get(key) or ""), 1)
        if part.get("precompiled_charsmap"):
            growth *= _longest(part["precompiled_charsmap"], where)
    if growth > _MAX_GROWTH:
        raise ModelFileError(f"{where}: its replacements could make a text {growth} times as long", where)


def check_cost(text: str, where: str) -> None:
    """Raises ModelFileError where the tokens of a tokenizer.json would take far more memory than the file has bytes."""
    cost = text.count(":") * _TOKEN_BYTES + text.count(",") * _PART_BYTES
    if cost > 3 * len(text) + _ROOM:
        raise ModelFileError(f"{where}: it is too large: reading it could take {cost >> 20} MiB of memory", where)


def check_tokens(count: int, where: str) -> None:
    """Raises ModelFileError where so many tokens would take more memory than those of any file that is read."""
    if count * _TOKEN_BYTES > _ROOM:
        raise ModelFileError(f"{where}: it has {count} tokens; {_ROOM // _TOKEN_BYTES} at most are read", where)


def check_added(post_processor: dict[str, Any], where: str) -> None:
    """Raises ModelFileError where the steps after the tokenizer repeat a text's tokens, or add many."""
    repeats, added, left = 1, 0, [post_processor]
    while left:
        part = left.pop()
        left += part.get("processors", ())
        ids = {name: len(special.get("ids") or ()) for name, special in (part.get("special_tokens") or {}).items()}
        for form in ("single", "pair"):
            pieces = part.get(form) or ()
            if not isinstance(pieces, list):
                continue
            texts = [special["Sequence"].get("id") for special in pieces if "Sequence" in special]
            repeats *= max([texts.count(text) for text in _TEXTS] + [1])
            added += sum(
                ids.get(special["SpecialToken"].get("id"), 0) for special in pieces if "SpecialToken" in special
            )
    if repeats > 1 or added > _MAX_ADDED:
        raise ModelFileError(
            f"{where}: its post-processor gives a text {repeats} times, with {added} tokens beside it; it may give it "
            f"once, with up to {_MAX_ADDED}",
            where,
        )


def _longest(charsmap: Any, where: str) -> int:
    """Characters of the longest replacement in a table of SentencePiece's: a trie, then texts that end with zeros."""
    try:
        raw = base64.b64decode(charsmap, validate=True) if isinstance(charsmap, str) else bytes(charsmap)
    except (ValueError, TypeError, binascii.Error):
        raise ModelFileError(f"{where}: its precompiled_charsmap is no table", where) from None
    texts = raw[4 + int.from_bytes(raw[:4], "little") :]
    return max((len(text.decode("utf-8", "replace")) for text in texts.split(b"\0")), default=1) or 1
