"""A model's files as one thing: configuration, tensors under Hugging Face's names, tokenizer; whatever the format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import ModelFileError
from pygpukit.core.regular import opened
from pygpukit.models.fetch import get

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.models.stored import Stored
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

_PICKLES = (b"PK\x03\x04", *(b"\x80" + bytes([protocol]) for protocol in range(6)))


@runtime_checkable
class Checkpoint(Protocol):
    """An opened model. Nothing of its weights is read before read() is called; close() lets go of its files.

    name: what to call it. config: the fields of Hugging Face's config.json ({} where there is none).
    generation: those of generation_config.json ({} where there is none).
    """

    name: str
    config: dict[str, Any]
    generation: dict[str, Any]

    def names(self) -> tuple[str, ...]:
        """The tensors, by Hugging Face's names: model.layers.0.self_attn.q_proj.weight, or h.0.attn.c_attn.weight."""
        ...

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape. Raises KeyError for a name that is not there."""
        ...

    def dtype(self, name: str) -> DataType:
        """The type a tensor is stored as; float32 where it is quantised."""
        ...

    def read(self, name: str, dtype: DataType | None = None) -> np.ndarray[Any, Any]:
        """A tensor's values in dtype, or in its own (bfloat16 as uint16 bits); possibly a read-only view of the file.

        Raises KeyError for a name that is not there. Rounds to nearest even. May be called from several threads.
        """
        ...

    def stored(self, name: str) -> Stored | None:
        """A matrix as the file has it. None where it is no matrix, or of another type than those of blocks. Raises
        KeyError as read() does."""
        ...

    def quantised_weight(self, name: str) -> tuple[str, int] | None:
        """The kind of a quantised weight, and its bytes in the file; None for others. Raises KeyError."""
        ...

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, made on the first call. Raises ModelFileError where the model has none."""
        ...

    def close(self) -> None:
        """Let go of the files. What was read stays valid."""
        ...


def open_checkpoint(
    path_or_name: str | os.PathLike[str], *, progress: bool = True, revision: str | None = None
) -> Checkpoint:
    """Open a model: a folder, a .safetensors or .gguf file, or a name that `gp.models.get` knows (fetched if need be).

    A folder is in Hugging Face's layout, or in CTranslate2's (Whisper only).

    Raises ModelNotFoundError where there is no such file and no such name, ModelFileError for a file that is malformed
    or of another kind. Pickles are refused by their content, whatever they are called: they run code when opened.
    """
    path = get(path_or_name, progress, revision)
    if not Path(path_or_name).expanduser().exists():
        return open_path(path, str(path_or_name))
    return open_path(path, _called(path) if path.is_dir() else path.stem)


def open_path(path: Path, name: str) -> Checkpoint:
    """open_checkpoint() for what is on this machine; name is what to call it."""
    from pygpukit.models.ctranslate2_whisper import CTranslate2Checkpoint
    from pygpukit.models.folder import FolderCheckpoint
    from pygpukit.models.gguf_checkpoint import GGUFCheckpoint
    from pygpukit.models.gguf_parts import first_part
    from pygpukit.models.safetensors import visible

    if path.is_dir():
        if (path / "model.bin").is_file() and not visible(path, "*.safetensors"):
            return CTranslate2Checkpoint(path, name)
        files = visible(path, "*.gguf")
        if len(files) > 1:  # beside the model of a picture's or a sound's encoder
            files = [file for file in files if "mmproj" not in file.name.lower()] or files
        if not files or visible(path, "*.safetensors"):
            return FolderCheckpoint(path, name)
        first = files[0] if len(files) == 1 else first_part(files)
        if first is None:
            names = ", ".join(file.name for file in files)
            raise ModelFileError(f"{path}: it has several GGUF files; give one of them: {names}", str(path))
        path = first
    kind = kind_of(path)
    return GGUFCheckpoint(path, name) if kind == "gguf" else FolderCheckpoint(path, name)


def _called(folder: Path) -> str:
    """A folder's name; of one in the hub's cache, whose own is a commit, the owner's and the model's."""
    folder = folder.resolve()
    above = folder.parent.parent.name
    if folder.parent.name == "snapshots" and above.startswith("models--"):
        return above.removeprefix("models--").replace("--", "/")
    return folder.name


def kind_of(path: Path) -> str:
    """ "gguf" or "safetensors", by content. Raises ModelFileError for anything else, a pickle above all."""
    with opened(path) as file:
        begin = file.read(9)
        size = file.seek(0, os.SEEK_END)
    if begin.startswith(b"GGUF"):
        return "gguf"
    if begin[8:] == b"{" and int.from_bytes(begin[:8], "little") <= size - 8:
        return "safetensors"
    if begin.startswith(_PICKLES):
        raise ModelFileError(
            f"{path}: this is a pickle (of PyTorch), which can run any code when it is opened, so it is not. "
            "Take the model's .safetensors or .gguf file",
            str(path),
        )
    what = (
        "a table beside a model; give its folder" if path.suffix == ".json" else "neither a safetensors nor a GGUF file"
    )
    raise ModelFileError(f"{path}: this is {what}", str(path))
