"""Tokenizer: text to token ids and back, by Hugging Face's `tokenizers` library; also piece by piece, for streams."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import need
from pygpukit.llm.ending import END_NAMES
from pygpukit.llm.template import ChatTemplate, Message
from pygpukit.models.documents import read_object, read_text

# Names by which a tokenizer.json without a tokenizer_config.json shows its special tokens.
_USUAL = {
    "bos_token": ("<|begin_of_text|>", "<s>", "<|endoftext|>"),
    "eos_token": ("<|eot_id|>", "<|im_end|>", "</s>", "<|endoftext|>"),
    "pad_token": ("<pad>", "<|pad|>", "[PAD]"),
}
_MOST_GROWTH = 64


class Tokenizer:
    """A tokenizer.json, or the folder of one, with the tokenizer_config.json and chat template beside it.

    Raises ModelFileError for a malformed file, OSError where there is none, ModuleNotFoundError without `tokenizers`.
    May be used from several threads.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = Path(path)
        folder = path if path.is_dir() else path.parent
        file = path / "tokenizer.json" if path.is_dir() else path
        if path.is_dir() and not file.is_file():
            raise ModelFileError(f"{path}: it has no tokenizer.json, the only kind of tokenizer file read", str(path))
        settings = folder / "tokenizer_config.json"
        config = read_object(settings) if settings.is_file() else {}
        config.update(_template_beside(folder))
        self._set(_parsed(read_text(file), str(file)), config, str(file))

    @classmethod
    def from_json(cls, json_str: str) -> Tokenizer:
        """The tokenizer that this text of a tokenizer.json describes."""
        return cls.of(_parsed(json_str, "tokenizer"), {}, "tokenizer")

    @classmethod
    def of(cls, tokenizer: Any, config: Mapping[str, Any], where: str) -> Tokenizer:
        """One around a `tokenizers.Tokenizer`; config has the fields of tokenizer_config.json; where names the file."""
        made = cls.__new__(cls)
        made._set(tokenizer, config, where)
        return made

    def _set(self, tokenizer: Any, config: Mapping[str, Any], where: str) -> None:
        with readable(where):
            # A text is as long as it is, whatever the file says.
            tokenizer.no_padding()
            tokenizer.no_truncation()
            _check_growth([_state(tokenizer.normalizer), _state(tokenizer.decoder)], where)
        self._tokenizer = tokenizer
        self._where = where
        self._names = {kind: self._special(kind, config) for kind in _USUAL}
        self.chat_template = _default_template(config.get("chat_template"), where)

    def _special(self, kind: str, config: Mapping[str, Any]) -> str | None:
        named = config.get(kind)
        if isinstance(named, dict):
            named = named.get("content")
        if isinstance(named, str):
            return named
        return None if config else next((name for name in _USUAL[kind] if self.token_to_id(name) is not None), None)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, added ones too."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    @property
    def bos_token(self) -> str | None:
        """The token that begins a text; None where there is none. So eos_token and pad_token."""
        return self._names["bos_token"]

    @property
    def eos_token(self) -> str | None:
        return self._names["eos_token"]

    @property
    def pad_token(self) -> str | None:
        return self._names["pad_token"]

    @property
    def bos_token_id(self) -> int | None:
        return self._id(self.bos_token)

    @property
    def eos_token_id(self) -> int | None:
        return self._id(self.eos_token)

    @property
    def pad_token_id(self) -> int | None:
        return self._id(self.pad_token)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of the tokens that are no text: begin, end, roles."""
        added = self._tokenizer.get_added_tokens_decoder()
        return frozenset(number for number, token in added.items() if token.special)

    @cached_property
    def end_ids(self) -> frozenset[int]:
        """Ids of the tokens that end a text, a turn or a message: eos_token, and those of a name that is known."""
        added = self._tokenizer.get_added_tokens_decoder()
        named = {number for number, token in added.items() if token.content in END_NAMES}
        return frozenset(named if self.eos_token_id is None else named | {self.eos_token_id})

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text; add_special_tokens puts what the model wants at its begin and end (nothing, for many)."""
        with readable(self._where):  # a pattern of the file may need more steps than patterns get
            return list(self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, token_ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """The text of ids. Bytes that are no UTF-8 become U+FFFD, ids that are no tokens nothing."""
        ids = [int(number) for number in token_ids]
        with readable(self._where):
            return str(self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))

    def id_to_token(self, token_id: int) -> str | None:
        """The token as the vocabulary spells it; None for an id that is none."""
        token: str | None = self._tokenizer.id_to_token(token_id) if token_id >= 0 else None
        return token

    def token_to_id(self, token: str) -> int | None:
        """The id of a token as the vocabulary spells it; None where there is none."""
        number: int | None = self._tokenizer.token_to_id(token)
        return number

    def render_chat(self, messages: Iterable[Message], add_generation_prompt: bool = True, **context: Any) -> str:
        """Messages as the text that the model's own template makes of them; see ChatTemplate.render.

        Raises ModelFileError where the model has no template, or the template fails.
        """
        if self.chat_template is None:
            raise ModelFileError(f"{self._where}: the model has no chat template; it completes texts only", self._where)
        tokens = {kind: name for kind, name in self._names.items() if name is not None}
        return ChatTemplate(self.chat_template, tokens).render(messages, add_generation_prompt, **context)

    def encode_chat(self, messages: Iterable[Message], add_generation_prompt: bool = True, **context: Any) -> list[int]:
        """The ids of render_chat()'s text."""
        return self.encode(self.render_chat(messages, add_generation_prompt, **context), add_special_tokens=False)

    def stream(self, skip_special_tokens: bool = True) -> TextStream:
        """Turns ids into text as they come."""
        return TextStream(self, skip_special_tokens)

    def __len__(self) -> int:
        return self.vocab_size

    def _id(self, token: str | None) -> int | None:
        return None if token is None else self.token_to_id(token)

    @cached_property
    def byte_level(self) -> bool:
        """Whether tokens spell bytes, as GPT-2's do."""
        kind = _state(self._tokenizer.decoder)
        return "ByteLevel" in [kind.get("type"), *(one.get("type") for one in kind.get("decoders", ()))][:2]


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
            return self._decoder.decode(_bytes_of(self._tokenizer.id_to_token(token_id) or ""))
        self._ids.append(token_id)
        piece = self._piece()
        # A character has at most four bytes: what still ends so after more tokens will stay so.
        if piece.endswith("\ufffd") and len(self._ids) < 8:
            return ""
        self._before, self._ids = self._ids, []
        return piece

    def _piece(self) -> str:
        told = self._tokenizer.decode(self._before)
        return self._tokenizer.decode(self._before + self._ids)[len(told) :]

    def finish(self) -> str:
        """What is left at the end: U+FFFD for the begin of a character, or nothing."""
        if self._decoder is not None:
            return self._decoder.decode(b"", final=True)
        piece = self._piece()
        self._before, self._ids = [], []
        return piece


@cache
def _byte_of() -> dict[str, int]:
    """GPT-2's spelling of bytes: printable ones as themselves, the others as letters from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


def _bytes_of(token: str) -> bytes:
    table = _byte_of()
    try:
        return bytes([table[letter] for letter in token])
    except KeyError:  # an added token, spelled as it is
        return token.encode()


def _state(part: Any) -> dict[str, Any]:
    """How a tokenizer.json would have a part of a tokenizer; {} for none."""
    state: dict[str, Any] = {} if part is None else json.loads(part.__getstate__())
    return state


def _check_growth(parts: list[dict[str, Any]], where: str) -> None:
    """Raises ModelFileError where replacements, one after the other, could make of a text a much longer one."""
    growth, left = 1, list(parts)
    while left:
        part = left.pop()
        left += [*part.get("normalizers", ()), *part.get("decoders", ())]
        for key in ("content", "prepend"):
            growth *= max(len(part.get(key) or ""), 1)
    if growth > _MOST_GROWTH:
        raise ModelFileError(f"{where}: its replacements could make a text {growth} times as long", where)


def _parsed(text: str, where: str) -> Any:
    library = need("tokenizers", "models", "reading a tokenizer")
    with readable(where):
        return library.Tokenizer.from_str(text)


@contextmanager
def readable(where: str) -> Iterator[None]:
    """What the library says of a malformed tokenizer, its panics too, becomes a ModelFileError."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, ModelFileError):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise ModelFileError(f"{where}: it describes no tokenizer that can be used: {error}", where) from None


def _template_beside(folder: Path) -> dict[str, Any]:
    """The chat template where it is a file of its own."""
    if (folder / "chat_template.jinja").is_file():
        return {"chat_template": read_text(folder / "chat_template.jinja")}
    if (folder / "chat_template.json").is_file():
        return {"chat_template": read_object(folder / "chat_template.json").get("chat_template")}
    return {}


def _default_template(template: Any, where: str) -> str | None:
    """One template of what a tokenizer_config.json may hold: a text, or a list of named ones."""
    if isinstance(template, Sequence) and not isinstance(template, str):
        named = {one.get("name"): one.get("template") for one in template if isinstance(one, dict)}
        template = named.get("default")
    if template is not None and not isinstance(template, str):
        raise ModelFileError(f"{where}: its chat template is a {type(template).__name__}, not a text", where)
    return template
