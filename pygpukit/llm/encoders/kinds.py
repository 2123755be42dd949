"""The kinds of encoders that are read, by the model_type of config.json, and the error that tells of one."""

from __future__ import annotations

from pygpukit.core.errors import InvalidSpecError

KINDS = ("bert", "roberta", "xlm-roberta", "camembert")


class EncoderError(InvalidSpecError):
    """A model that was to write is an encoder."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"models of the type {kind!r} are encoders, which make vectors of texts and write none: "
            "gp.llm.load_encoder(...) reads them",
            "model_type",
        )
