"""Chatting: which models can answer in a conversation, told before they are loaded."""

from __future__ import annotations

from pathlib import Path

from pygpukit.core.errors import ModelFileError
from pygpukit.models.catalogue import ENTRIES
from pygpukit.models.tokenizer.tokenizer import has_chat_template


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
