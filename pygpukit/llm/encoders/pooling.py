"""Pooling: the states of a text's tokens as one vector, by sentence-transformers' files in an encoder's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.models.documents import parse_object, read_object, read_text
from pygpukit.models.fields import Fields

if TYPE_CHECKING:
    import numpy as np

Mode: TypeAlias = Literal["mean", "cls", "max", "last"]
MODES: tuple[Mode, ...] = get_args(Mode)
_FLAG = "pooling_mode_"
_FLAGS: dict[str, Mode] = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max", "lasttoken": "last"}
_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class Pooling:
    """The way from states to a vector. mode: what it is made of. normalises: whether it gets length 1. tokens: the most
    of a text, None where the folder does not say."""

    mode: Mode = "mean"
    normalises: bool = True
    tokens: int | None = None


def pooling_of(folder: Path, width: int) -> Pooling:
    """Pooling as the folder has it; the mean, of length 1, where it has no modules.json.

    Raises InvalidSpecError for what is not there yet, ModelFileError for files that hold something else.
    """
    tokens = _tokens(folder)
    path = folder / "modules.json"
    if not path.is_file():
        return Pooling(tokens=tokens)
    modules = parse_object(f'{{"modules": {read_text(path)}}}', str(path))["modules"]
    if not isinstance(modules, list) or not all(
        isinstance(module, dict) and isinstance(module.get("type"), str) and isinstance(module.get("path"), str)
        for module in modules
    ):
        raise InvalidSpecError(f"{path}: it is no list of modules with a type and a path", "modules.json")
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    if kinds not in (list(_MODULES[:2]), list(_MODULES)) or modules[0]["path"]:
        raise InvalidSpecError(
            f"{path}: the modules {', '.join(kinds)} are not there yet; those of a vector are "
            f"{', '.join(_MODULES[:2])} and perhaps {_MODULES[2]}, the first in the folder itself",
            "modules.json",
        )
    place = Path(modules[1]["path"])
    if place.is_absolute() or ".." in place.parts:
        raise InvalidSpecError(f"{path}: the path {str(place)!r} is outside of the folder", "modules.json")
    config = folder / place / "config.json"
    if not config.is_file():
        raise ModelFileError(f"{config} is not there, but {path} names its folder", str(config))
    return Pooling(_mode(config, width), len(kinds) == 3, tokens)


def pooled(states: np.ndarray[Any, Any], mode: Mode) -> np.ndarray[Any, Any]:
    """The float64 (hidden,) vector of the states (tokens, hidden) of one text."""
    import numpy as np

    if mode in ("cls", "last"):
        return states[0 if mode == "cls" else -1].astype(np.float64)
    return states.max(axis=0).astype(np.float64) if mode == "max" else states.mean(axis=0, dtype=np.float64)


def _mode(path: Path, width: int) -> Mode:
    values = read_object(path)
    fields = Fields(values, str(path))
    stated = fields.integer("word_embedding_dimension", "embedding_dimension")
    if stated not in (None, width):
        raise fields.error(f"must be the {width} of hidden_size", "word_embedding_dimension", "embedding_dimension")
    named = values.get("pooling_mode")
    chosen = [named] if isinstance(named, str) else []
    chosen += [name.removeprefix(_FLAG) for name, value in values.items() if name.startswith(_FLAG) and value is True]
    modes = [_FLAGS.get(name, name) for name in chosen]
    mode = next((mode for mode in MODES if modes == [mode]), None)
    if mode is None:
        raise InvalidSpecError(
            f"{path}: pooling by {' and '.join(modes) or 'nothing'} is not there yet; it can be one of "
            f"{', '.join(MODES)}",
            "pooling_mode",
        )
    return mode


def _tokens(folder: Path) -> int | None:
    """The most tokens of a text. Raises InvalidSpecError where texts are to be changed before they are split."""
    path = folder / "sentence_bert_config.json"
    fields = Fields(read_object(path) if path.is_file() else {}, str(path))
    if fields.flag("do_lower_case"):
        raise fields.error("must be false: texts are lowered by the tokenizer's own files", "do_lower_case")
    path = folder / "config_sentence_transformers.json"
    named = Fields(read_object(path) if path.is_file() else {}, str(path))
    if named.text("default_prompt_name") is not None:
        raise named.error("must be null: put the prompt before your texts yourself", "default_prompt_name")
    return fields.integer("max_seq_length")
