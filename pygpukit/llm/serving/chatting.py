"""Chatting: which models can answer in a conversation, told before they are loaded, and by which template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.models.catalogue import ENTRIES
from pygpukit.models.tokenizer.beside import has_chat_template


def source_chats(source: str) -> bool | None:
    """True for a model that writes and has a chat template, by its name or folder; None where only loading it tells."""
    if source in ENTRIES:
        return ENTRIES[source].chats
    folder = Path(source).expanduser()
    if not folder.is_dir() or any(folder.glob("*.gguf")):
        return None
    try:
        return has_chat_template(folder)
    except (ModelFileError, OSError):  # who asks for the model is told
        return None


def template_of(tokenizer: Any, has_tools: bool) -> str | None:
    """The chat template of a conversation: some models have one of its own for one that has tools."""
    own = getattr(tokenizer, "tool_template", None) if has_tools else None
    return own or getattr(tokenizer, "chat_template", None)
