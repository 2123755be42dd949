"""Addresses of pages, mail and files, names with @ and #, in words."""

from __future__ import annotations

import re

from pygpukit.tts.text.tables import words

_DOMAINS = "|".join(
    words("""
com org net edu gov mil int info io ai dev app co me tv uk us de fr eu jp ca au in it es nl ch at be se no fi dk
pl br cn ru kr nz ie xyz tech cloud blog shop
""")
)
_FILES = "|".join(
    words("""
py js ts rs cu cpp hpp txt pdf md csv json yaml yml toml xml html htm css png jpg jpeg gif svg mp3 mp4 wav ogg
flac zip tar gz exe dll so sh bat doc docx xls xlsx ppt pptx ipynb log cfg ini sql java go rb php onnx gguf
safetensors
""")
)
_MAIL = re.compile(r"(?<![\w.+-])(?:mailto:)?([\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+)")
_PAGE = re.compile(
    rf"(?i)(?<![\w@.])((?:(?:https?|ftp|file|ssh|git)://|www\.)[^\s<>\"'\u201d)\]]+"
    rf"|(?:[a-z0-9-]{{1,63}}\.){{1,8}}(?:{_DOMAINS})(?![\w-]|\.\w)(?::\d+)?(?:/[^\s<>\"'\u201d)\]]*)?)"
)
_FILE = re.compile(
    rf"(?<![\w.@])((?:[\w~.-]{{0,60}}/){{0,8}}[\w-]{{1,80}}(?:\.[\w-]{{1,40}}){{0,4}}\.(?:{_FILES}))(?![\w.-]*\w)"
)
_AT = re.compile(r"(?<![\w.])@(?=\w)")
_TAG = re.compile(r"(?<![\w&])#(?=[^\W\d])")
_NUMBER = re.compile(r"(?<![\w&])#\s?(?=\d)|\u2116\s?(?=\d)")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SAID = {
    ".": "dot",
    "@": "at",
    "/": "slash",
    "-": "dash",
    "_": "underscore",
    ":": "colon",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "#": "hash",
    "%": "percent",
    "+": "plus",
    "~": "tilde",
    "*": "star",
    "$": "dollar",
}
_WORD = re.compile(r"[^\W_]+|[\W_]")


def addresses(text: str) -> str:
    """The text with addresses in words; their digits stay."""
    text = _MAIL.sub(lambda m: _spoken(m[1]), text)
    text = _PAGE.sub(_page, text)
    text = _FILE.sub(lambda m: _spoken(m[1]), text)
    text = _TAG.sub("hashtag ", _NUMBER.sub("number ", text))
    return _AT.sub("at ", text)


def _page(match: re.Match[str]) -> str:
    address = match[1].rstrip(".,;:!?")
    left = match[1][len(address) :]
    plain = re.sub(r"(?i)^(?:https?|ftp|file|ssh|git)://", "", address).rstrip("/")
    return _spoken(plain) + left


def _spoken(address: str) -> str:
    said = []
    for piece in _WORD.findall(address):
        if piece.lower() == "www":
            said.append("W.W.W.")
        elif piece.isdigit():
            said.append(piece)
        elif piece.isalnum():
            said.append(_CAMEL.sub(" ", piece))
        elif piece in _SAID:
            said.append(_SAID[piece])
    return " ".join(said)
