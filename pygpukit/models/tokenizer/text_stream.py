"""TextStream: ids in, text out as they come; the pieces joined are what decode() says of all."""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # SentencePiece's spelling


class TextStream:
    """Ids in, text out: the pieces joined are what decode() makes of all ids. No piece ends within a character."""

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skipped = tokenizer.special_ids if skip_special_tokens else frozenset()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace") if tokenizer.byte_level else None
        # Without a byte decoder: the tokens of the last piece, which some decoders look at, and those not told yet.
        self._before: list[int] = []
        self._ids: list[int] = []

    def push(self, token_id: int) -> str:
        """The text that this token completes; "" while a character lacks bytes."""
        if token_id in self._skipped:
            return ""
        if self._decoder is not None:
            return self._decoder.decode(bytes_of(self._tokenizer.id_to_token(token_id) or ""))
        self._ids.append(token_id)
        if self._tokenizer.byte_fallback:
            # Bytes that follow each other are text together, or none of them is.
            if byte_of(self._tokenizer.id_to_token(token_id) or "") is not None:
                return ""
            piece = self._piece()
        else:
            piece = self._piece()
            # A character has at most four bytes: what still ends so after more tokens will stay so.
            if piece.endswith("\ufffd") and len(self._ids) < 8:
                return ""
        self._before, self._ids = self._ids, []
        return piece

    def _piece(self) -> str:
        emitted = self._tokenizer.decode(self._before)
        return self._tokenizer.decode(self._before + self._ids)[len(emitted) :]

    def finish(self) -> str:
        """The rest at the end: U+FFFD for the begin of a character, or nothing."""
        if self._decoder is not None:
            return self._decoder.decode(b"", final=True)
        piece = self._piece()
        self._before, self._ids = [], []
        return piece


@cache
def byte_letters() -> dict[str, int]:
    """GPT-2's spelling of bytes: printable ones as themselves, the others as letters from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


@lru_cache(1 << 16)
def bytes_of(token: str) -> bytes:
    """The bytes that a token of a byte-level vocabulary spells."""
    table = byte_letters()
    try:
        return bytes([table[letter] for letter in token])
    except KeyError:  # an added token, spelled as it is
        return token.encode()


def byte_of(token: str) -> int | None:
    """The byte that a token of SentencePiece stands for; None for one of text."""
    match = _BYTE.fullmatch(token)
    return None if match is None else int(match[1], 16)
