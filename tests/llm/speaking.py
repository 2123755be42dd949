"""Small random models that read and write text: a tokenizer of bytes, with further control tokens and a template."""

from __future__ import annotations

from typing import Any

import model_files
from llm import tiny
from tokenizers import Tokenizer as Library

from pygpukit.llm.model import CausalTransformerModel
from pygpukit.models.tokenizer.template import CHATML_TEMPLATE
from pygpukit.models.tokenizer.tokenizer import Tokenizer


def tokenizer(template: str = CHATML_TEMPLATE, control: tuple[str, ...] = (), words: tuple[str, ...] = ()) -> Tokenizer:
    """control: further tokens that are no text; words: further ones that are."""
    library = Library.from_str(model_files.tokenizer_json())
    library.add_special_tokens(list(control))
    library.add_tokens(list(words))
    return Tokenizer.of(library, {"chat_template": template, "eos_token": "<|b|>"}, "made here")


def model(own: Tokenizer | None = None, seed: int = 0, padding: int = 5, **changes: Any) -> CausalTransformerModel:
    """A llama whose embedding has some rows more than there are tokens."""
    own = own or tokenizer()
    made = tiny.model("llama", seed, vocab_size=own.vocab_size + padding, **changes)
    made.tokenizer = own
    return made
