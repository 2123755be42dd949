"""Tokens that end an answer: by the files beside a model, and by the names that they have in many vocabularies."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError

if TYPE_CHECKING:
    from pygpukit.models.checkpoint import Checkpoint

# Files often name one end only, that of a text; these end turns and messages.
END_NAMES = frozenset(
    (
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|end_of_turn|>",
        "<|eot|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<turn|>",
        "<EOT>",
        "< EOT >",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|EOT|>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    )
)


def generation_of(checkpoint: Checkpoint, vocabulary: int) -> dict[str, Any]:
    """generation_config.json's fields, with every end token that it and config.json name.

    Raises InvalidSpecError where one of them is no token id; one beyond the vocabulary cannot come, and is left out.
    """
    ends: list[int] = []
    for fields, where in ((checkpoint.generation, "generation_config.json"), (checkpoint.config, "config.json")):
        end = fields.get("eos_token_id")
        several = end if isinstance(end, list) else [] if end is None else [end]
        for token in several:
            if type(token) is not int or token < -1:
                raise InvalidSpecError(
                    f"{checkpoint.name}: eos_token_id of {where} is {reprlib.repr(end)}, must be token ids",
                    "eos_token_id",
                )
            if 0 <= token < vocabulary and token not in ends:
                ends.append(token)
    return {**checkpoint.generation, "eos_token_id": ends}
