"""Tokenizer: text to token ids and back, by Hugging Face's `tokenizers` library; also piece by piece, for streams."""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.core.extras import need
from pygpukit.models.documents import read_text
from pygpukit.models.tokenizer import wordpiece
from pygpukit.models.tokenizer.beside import DEFAULT, TOOLS, add_tokens, config_of, surround, templates_of
from pygpukit.models.tokenizer.bounds import check_added, check_cost, check_growth
from pygpukit.models.tokenizer.chat_text import chat_ids
from pygpukit.models.tokenizer.ending import END_NAMES
from pygpukit.models.tokenizer.template import ChatTemplate, Message
from pygpukit.models.tokenizer.text_stream import TextStream, byte_of, bytes_of

THINKING = ("<think>", "</think>")  # what models that think write around it

# Names by which a tokenizer.json without a tokenizer_config.json shows its special tokens.
_USUAL = {
    "bos_token": ("<|begin_of_text|>", "<s>", "<|endoftext|>"),
    "eos_token": ("<|eot_id|>", "<|im_end|>", "</s>", "<|endoftext|>"),
    "pad_token": ("<pad>", "<|pad|>", "[PAD]"),
}


class Tokenizer:
    """A tokenizer.json, or the folder of one, with the tokenizer_config.json and chat template beside it.
    In a folder that has none, BERT's vocab.txt.

    Raises ModelFileError for a malformed file, OSError where there is none, ModuleNotFoundError without `tokenizers`.
    May be used from several threads.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = Path(path)
        folder = path if path.is_dir() else path.parent
        file = path / "tokenizer.json" if path.is_dir() else path
        config = config_of(folder)
        if path.is_dir() and not file.is_file():
            file = path / wordpiece.FILE
            if not file.is_file():
                raise ModelFileError(f"{path}: it has neither a tokenizer.json nor BERT's vocab.txt", str(path))
            with readable(str(file)):
                pieces = wordpiece.wordpiece(file, config)
            self._set(pieces, config, str(file))
            return
        self._set(_parsed(read_text(file), str(file)), config, str(file))

    @classmethod
    def from_json(cls, json_str: str) -> Tokenizer:
        """The tokenizer that this text of a tokenizer.json describes."""
        return cls.of(_parsed(json_str, "tokenizer"), {}, "tokenizer")

    @classmethod
    def of(cls, tokenizer: Any, config: Mapping[str, Any], where: str) -> Tokenizer:
        """One around a `tokenizers.Tokenizer`; config has the fields of tokenizer_config.json; where names the file."""
        instance = cls.__new__(cls)
        instance._set(tokenizer, config, where)
        return instance

    def _set(self, tokenizer: Any, config: Mapping[str, Any], where: str) -> None:
        with readable(where):
            # A text is as long as it is, whatever the file says.
            tokenizer.no_padding()
            tokenizer.no_truncation()
            check_growth([_state(tokenizer.normalizer), _state(tokenizer.decoder)], where)
            check_added(_state(tokenizer.post_processor), where)
            add_tokens(tokenizer, config.get("added_tokens_decoder"), where)
        self._tokenizer = tokenizer
        self._where = where
        self._names = {kind: self._special(kind, config) for kind in _USUAL}
        with readable(where):
            surround(tokenizer, config, self._names)
        templates = templates_of(config.get("chat_template"), where)
        self.chat_template = templates.get(DEFAULT)
        self.tool_template = templates.get(TOOLS)  # of conversations with tools, where they have one of their own

    def _special(self, kind: str, config: Mapping[str, Any]) -> str | None:
        named = config.get(kind)
        if isinstance(named, dict):
            named = named.get("content")
        if isinstance(named, str):
            return named
        return None if config else next((name for name in _USUAL[kind] if self.token_to_id(name) is not None), None)

    @property
    def vocab_size(self) -> int:
        """Number of tokens, added ones too."""
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

    @cached_property
    def control_tokens(self) -> tuple[str, ...]:
        """The texts of the tokens that are no text: begin, end, roles. Those of one letter are not told from it."""
        ids = self.special_ids | self.end_ids
        named = (self.id_to_token(number) for number in sorted(ids))
        return tuple(token for token in named if token is not None and len(token) > 1)

    @cached_property
    def thinks(self) -> bool:
        """True if the model thinks between tags: its template knows them, or they are tokens of their own."""
        if any(tag in (self.chat_template or "") for tag in THINKING):
            return True
        added = {token.content for token in self._tokenizer.get_added_tokens_decoder().values()}
        return added.issuperset(THINKING)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text; add_special_tokens puts what the model wants at its begin and end (nothing, for many).

        Raises InvalidSpecError for a text with half a character (a lone surrogate).
        """
        if not isinstance(text, str):
            raise TypeError(f"text={reprlib.repr(text)}; give a text")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidSpecError(
                f"the text has half a character, {text[error.start]!r}, at {error.start}; give whole ones", "text"
            ) from None
        with readable(self._where):  # a pattern of the file may need more steps than patterns get
            return list(self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, token_ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """The text of ids. Bytes that are no UTF-8 become U+FFFD, ids that are no tokens nothing."""
        ids = [int(number) for number in token_ids]
        with readable(self._where):
            return str(self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token, which may be a part of a character; b"" for an id that is none."""
        token = self.id_to_token(token_id)
        if token is None:
            return b""
        if token_id in self.special_ids:
            return token.encode()
        if self.byte_level:
            return bytes_of(token)
        byte = byte_of(token) if self.byte_fallback else None
        if byte is not None:
            return bytes([byte])
        # A decoder may take a space off the begin of a text: not off this token's.
        return self.decode([token_id, token_id]).encode()[len(self.decode([token_id]).encode()) :]

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
        template = (self.tool_template if context.get("tools") else None) or self.chat_template
        if template is None:
            raise ModelFileError(f"{self._where}: the model has no chat template; it completes texts only", self._where)
        tokens = {kind: name for kind, name in self._names.items() if name is not None}
        return ChatTemplate(template, tokens).render(messages, add_generation_prompt, **context)

    def encode_chat(
        self,
        messages: Iterable[Message],
        add_generation_prompt: bool = True,
        *,
        control_tokens: bool = False,
        **context: Any,
    ) -> list[int]:
        """The ids of render_chat()'s text. Control tokens in messages and variables are text like any other, unless
        control_tokens says that they count."""
        return chat_ids(self, messages, add_generation_prompt, control_tokens, context)[0]

    def stream(self, skip_special_tokens: bool = True) -> TextStream:
        """Turns ids into text as they come."""
        return TextStream(self, skip_special_tokens)

    def __len__(self) -> int:
        return self.vocab_size

    def _id(self, token: str | None) -> int | None:
        return None if token is None else self.token_to_id(token)

    @cached_property
    def byte_level(self) -> bool:
        """True if tokens spell bytes, as GPT-2's do."""
        return "ByteLevel" in self._decoders[:2]

    @cached_property
    def byte_fallback(self) -> bool:
        """True if there are tokens of single bytes beside those of text, as SentencePiece has them."""
        return "ByteFallback" in self._decoders

    @cached_property
    def _decoders(self) -> list[Any]:
        kind = _state(self._tokenizer.decoder)
        return [kind.get("type"), *(decoder.get("type") for decoder in kind.get("decoders", ()))]


def _state(part: Any) -> dict[str, Any]:
    """A part of a tokenizer as tokenizer.json stores it; {} for none."""
    state: dict[str, Any] = {} if part is None else json.loads(part.__getstate__())
    return state


def _parsed(text: str, where: str) -> Any:
    library = need("tokenizers", "models", "reading a tokenizer")
    check_cost(text, where)
    with readable(where):
        return library.Tokenizer.from_str(text)


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Turns the library's errors about a malformed tokenizer, panics too, into a ModelFileError."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, ModelFileError):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise ModelFileError(f"{where}: it describes no tokenizer that can be used: {error}", where) from None
