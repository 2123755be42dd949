"""The stored tensors of a folder, and what a weight made from several of them is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pygpukit.core.dtypes import DataType, bfloat16, float16, float32
from pygpukit.core.errors import ModelFileError
from pygpukit.models.convert import convert

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.models.stored import Stored

    Array = np.ndarray[Any, Any]


SCALES = (float32, float16, bfloat16)  # types that scales have


@dataclass(frozen=True)
class Tensors:
    """The contents of a folder. read: a tensor's values, as bits where that is no type of NumPy's; where: of errors."""

    names: Collection[str]
    read: Callable[[str], Array]
    dtype: Callable[[str], DataType]
    shape: Callable[[str], tuple[int, ...]]
    where: str

    def floats(self, name: str) -> Array:
        """A tensor's values as float32. Raises ModelFileError where it is not there."""
        self._need(name)
        return convert(self.read(name), self.dtype(name), float32)

    def check(
        self, name: str, dtypes: DataType | tuple[DataType, ...], shape: tuple[int | None, ...]
    ) -> tuple[int, ...]:
        """The shape of a tensor. Raises ModelFileError unless it is there, of such a type and shape; None is any."""
        kinds = dtypes if isinstance(dtypes, tuple) else (dtypes,)
        self._need(name)
        have = self.shape(name)
        fits = len(have) == len(shape) and all(b is None or a == b for a, b in zip(have, shape, strict=True))
        kind = self.dtype(name)
        if kind not in kinds or not fits or 0 in have:
            want = ", ".join("any" if extent is None else str(extent) for extent in shape)
            types = " or ".join(kind.name for kind in kinds)
            raise self.error(f"the tensor {name!r} is {kind.name} of shape {have}, must be {types} of ({want})")
        return have

    def _need(self, name: str) -> None:
        if name not in self.names:
            raise self.error(f"it has no {name!r}, which belongs to the tensors beside it")

    def error(self, text: str) -> ModelFileError:
        """An error of these files."""
        return ModelFileError(f"{self.where}: {text}", self.where)


class Weight(Protocol):
    """A weight in few bits. tensors: what is stored instead of it, or beside it."""

    @property
    def tensors(self) -> tuple[str, ...]: ...

    @property
    def kind(self) -> str:
        """Its name for readers: "GPTQ of 4 bits"."""
        ...

    def check(self, stored: Tensors) -> None:
        """Raises ModelFileError where its tensors do not fit each other; before any value is read."""
        ...

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        """The shape of its values."""
        ...

    def values(self, stored: Tensors) -> Array:
        """Its values, float32."""
        ...

    def blocks(self, stored: Tensors) -> Stored | None:
        """The blocks that a matrix can become, with exactly its values."""
        ...


@dataclass(frozen=True)
class Quantised:
    """Of a whole folder. own: the weights by name. beside: stored tensors that mean nothing by themselves."""

    own: Mapping[str, Weight]
    beside: frozenset[str]

    def names(self, stored: Tensors) -> tuple[str, ...]:
        """The tensors of the model: weights in the place of what they are made from."""
        weights = {tensor: name for name, weight in self.own.items() for tensor in weight.tensors[:1]}
        return tuple(dict.fromkeys(weights.get(name, name) for name in stored.names if name not in self.beside))
