"""Voices: a table each, with a style of 256 numbers for every length of an utterance; found, read and mixed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.core.regular import opened
from pygpukit.models.safetensors import load_safetensors

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Array = np.ndarray[Any, Any]

DEFAULT = "jm_kumo"
ROWS, WIDTH = 510, 256
_ZIP = b"PK\x03\x04"


class Voices:
    """The voices that lie in a folder, each read when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Array] = {}
        self._files = _files(folder)

    @property
    def names(self) -> list[str]:
        """All voices."""
        return sorted({*self._files, *self._read})

    @property
    def default(self) -> str | None:
        """jm_kumo, or the first there is."""
        names = self.names
        return DEFAULT if DEFAULT in names else names[0] if names else None

    def add(self, name: str, table: Array) -> None:
        """Take a voice in, under a name."""
        self._read[name] = _checked(table, name)

    def table(self, voice: str | Mapping[str, float]) -> Array:
        """The table (510, 256), float32: of a name, or of several mixed: "a+b", "a:0.7+b:0.3", {"a": 0.7, "b": 0.3}.

        Shares are divided by their sum. Raises InvalidSpecError for an unknown name or shares that are no mixture.
        """
        import numpy as np

        shares = _shares(voice) if isinstance(voice, str) else dict(voice)
        total = sum(shares.values())
        if not shares or not total > 0 or min(shares.values()) < 0 or total == float("inf"):
            raise InvalidSpecError(f"voice {voice!r}: shares must be numbers from 0, not all of them 0", "voice")
        mixed = np.zeros((ROWS, WIDTH), np.float64)
        for name, share in shares.items():
            mixed += self._single(name).astype(np.float64) * (share / total)
        return mixed.astype(np.float32)

    def _single(self, name: str) -> Array:
        if name not in self._read:
            if name not in self._files:
                raise InvalidSpecError(
                    f"there is no voice {name!r}; the voices of {self._folder} are {', '.join(self.names) or 'none'}",
                    "voice",
                )
            self._read[name] = _checked(_loaded(self._files[name], name), name)
        return self._read[name]


def list_available_voices(model_path: str | os.PathLike[str]) -> list[str]:
    """The names of the voices in a model's folder, and in `voices` in it."""
    path = Path(model_path)
    return Voices(path if path.is_dir() else path.parent).names


def load_voice_embedding(voice_path: str | os.PathLike[str]) -> GPUArray:
    """A voice's table, (510, 1, 256) float32: a raw .bin, a .npy, a .safetensors or an .npz with one voice.

    Raises ModelFileError for what is none of these. PyTorch's .pt is refused: opening it can run any code.
    """
    path = Path(voice_path)
    return factory.from_numpy(_checked(_loaded(path, path.stem), path.stem).reshape(ROWS, 1, WIDTH))


def _shares(voice: str) -> dict[str, float]:
    shares: dict[str, float] = {}
    for part in voice.split("+"):
        name, _, share = part.strip().partition(":")
        try:
            shares[name.strip()] = shares.get(name.strip(), 0.0) + (float(share) if share else 1.0)
        except ValueError:
            raise InvalidSpecError(f"voice {voice!r}: {share!r} is no share of a voice", "voice") from None
    return shares


def _files(folder: Path) -> dict[str, Path]:
    """The file of each voice. A packed file has several."""
    files: dict[str, Path] = {}
    for place in (folder, folder / "voices"):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if path.suffix == ".npz" or (path.suffix == ".bin" and _is_zip(path)):
                files |= dict.fromkeys(_packed(path), path)
            elif (path.suffix == ".bin" and path.stat().st_size == ROWS * WIDTH * 4) or (
                place.name == "voices" and path.suffix in (".npy", ".safetensors")
            ):
                files[path.stem] = path
    return files


def _is_zip(path: Path) -> bool:
    with opened(path) as file:
        return file.read(4) == _ZIP


def _packed(path: Path) -> list[str]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            return list(archive.files)
    except (ValueError, OSError, KeyError) as error:
        raise ModelFileError(f"{path}: it cannot be read as NumPy's archive: {error}", str(path)) from None


def _loaded(path: Path, name: str) -> Array:
    import numpy as np

    if path.suffix == ".pt":
        raise ModelFileError(
            f"{path}: this is a pickle (of PyTorch), which can run any code when it is opened, so it is not; take the "
            "voice's .bin, .npy, .npz or .safetensors file",
            str(path),
        )
    try:
        if path.suffix == ".safetensors":
            file = load_safetensors(path)
            names = list(file.tensor_names)
            return np.array(file.array(name if name in names else names[0]))
        if path.suffix == ".bin" and not _is_zip(path):
            return np.fromfile(path, "<f4")
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return np.array(loaded[name if name in loaded.files else loaded.files[0]])
    except (ValueError, OSError, KeyError, IndexError) as error:
        raise ModelFileError(f"{path}: it holds no voice that can be read: {error}", str(path)) from None


def _checked(table: Array, name: str) -> Array:
    import numpy as np

    if table.size != ROWS * WIDTH or table.dtype.kind != "f" or not np.isfinite(table).all():
        raise ModelFileError(
            f"the voice {name!r} has shape {table.shape} and type {table.dtype}; a voice is {ROWS} x 1 x {WIDTH} "
            "finite numbers"
        )
    return table.reshape(ROWS, WIDTH).astype(np.float32)
