"""The files beside a tokenizer.json: tokenizer_config.json, the special tokens of older folders, chat templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import need
from pygpukit.models.documents import read_object, read_text

DEFAULT, TOOLS = "default", "tool_use"  # names of chat templates: for a conversation, and for one that has tools
SPECIAL = ("bos_token", "eos_token", "pad_token")


def config_of(folder: Path) -> dict[str, Any]:
    """The settings of tokenizer_config.json, the special tokens that only special_tokens_map.json names, and the chat
    templates that are files of their own."""
    file, older = folder / "tokenizer_config.json", folder / "special_tokens_map.json"
    named = read_object(older) if older.is_file() else {}
    tokens = {kind: named[kind] for kind in SPECIAL if kind in named}
    config = tokens | (read_object(file) if file.is_file() else {})
    more = _templates_in(folder)
    return config | {"chat_template": templates_of(config.get("chat_template"), str(folder)) | more} if more else config


def has_chat_template(folder: Path) -> bool:
    """True if a model's folder has a chat template, told without its tokenizer. Raises ModelFileError, OSError."""
    return DEFAULT in templates_of(config_of(folder).get("chat_template"), str(folder))


def templates_of(stored: Any, where: str) -> dict[str, str]:
    """Chat templates by name, of what files hold: one text, a list of named ones, or an object of them.

    Raises ModelFileError for a template that is no text; where names the file.
    """
    if isinstance(stored, Sequence) and not isinstance(stored, str):
        stored = {str(one.get("name")): one.get("template") for one in stored if isinstance(one, dict)}
    named = stored if isinstance(stored, Mapping) else {} if stored is None else {DEFAULT: stored}
    for name in (DEFAULT, TOOLS):
        template = named.get(name)
        if template is not None and not isinstance(template, str):
            raise ModelFileError(f"{where}: its chat template is a {type(template).__name__}, not a text", where)
    return {name: named[name] for name in (DEFAULT, TOOLS) if named.get(name) is not None}


def _templates_in(folder: Path) -> dict[str, str]:
    """The chat templates that are files of their own."""
    more = folder / "additional_chat_templates" / f"{TOOLS}.jinja"
    templates = {TOOLS: read_text(more)} if more.is_file() else {}
    if (folder / "chat_template.jinja").is_file():
        return templates | {DEFAULT: read_text(folder / "chat_template.jinja")}
    if (folder / "chat_template.json").is_file():
        file = folder / "chat_template.json"
        return templates | templates_of(read_object(file).get("chat_template"), str(file))
    return templates


def add_tokens(tokenizer: Any, entries: Any, where: str) -> None:
    """The tokens of tokenizer_config.json that tokenizer.json lacks, at the ids that it gives them."""
    if entries is None:
        return
    if not isinstance(entries, dict) or not all(
        key.isascii()
        and key.isdigit()
        and len(key) < 10
        and isinstance(entry, dict)
        and isinstance(entry.get("content"), str)
        for key, entry in entries.items()
    ):
        raise ModelFileError(f"{where}: added_tokens_decoder of tokenizer_config.json is no object of tokens", where)
    library = need("tokenizers", "models", "reading a tokenizer")
    have = tokenizer.get_added_tokens_decoder()
    flags = ("special", "lstrip", "rstrip", "normalized", "single_word")
    for number, entry in sorted((int(key), entry) for key, entry in entries.items()):
        if number in have and have[number].content == entry["content"]:
            continue
        token = library.AddedToken(entry["content"], **{flag: entry.get(flag) is True for flag in flags})
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
        token_id = tokenizer.token_to_id(entry["content"])
        if token_id != number:
            raise ModelFileError(
                f"{where}: tokenizer_config.json says {entry['content']!r:.80} is token {number}; it is {token_id}",
                where,
            )


def surround(tokenizer: Any, config: Mapping[str, Any], names: Mapping[str, str | None]) -> None:
    """Put bos_token before texts, eos_token after them, or take them away, where add_bos_token and add_eos_token of
    tokenizer_config.json say other than tokenizer.json. names: of these tokens.

    What else stands around a text, such as BERT's marks, stays as it is.
    """
    whole, bare = (tokenizer.encode("a", add_special_tokens=special).ids for special in (True, False))
    start = next((at for at in range(len(whole)) if whole[at : at + len(bare)] == bare), None) if bare else None
    if start is None:
        return
    have = {"bos_token": whole[:start], "eos_token": whole[start + len(bare) :]}
    ids = {kind: [] if names[kind] is None else [tokenizer.token_to_id(names[kind])] for kind in have}
    want = dict(have)
    for kind, there in have.items():
        adds = config.get(f"add_{kind}")
        if isinstance(adds, bool) and None not in ids[kind] and there in ([], ids[kind]):
            want[kind] = ids[kind] if adds else []
    if want == have or any(want[kind] not in ([], ids[kind]) for kind in want):
        return
    library = need("tokenizers", "models", "reading a tokenizer")
    first, last = ([str(names[kind])] if want[kind] else [] for kind in want)
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single=[*first, "$A", *last],
        pair=[*first, "$A", *last, *first, "$B", *last],
        special_tokens=[(str(names[kind]), ids[kind][0]) for kind in want if want[kind]],
    )
