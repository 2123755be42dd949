"""A checkpoint of random weights of true shapes: what speed is measured with where no weights are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RandomCheckpoint:
    """One block of normal numbers, over and over; ones where a name ends a norm's scale or shift.

    config: as the model's config.json has it. shapes: of each tensor, by name.
    """

    def __init__(self, name: str, config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
        import numpy as np

        self.name, self.config, self.generation = name, dict(config), dict[str, Any]()
        self._block = np.random.default_rng(0).standard_normal(1 << 22, dtype=np.float32) * np.float32(0.02)
        self._shapes = dict(shapes)

    def names(self) -> tuple[str, ...]:
        return tuple(self._shapes)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def dtype(self, name: str) -> Any:
        from pygpukit.core.dtypes import float32

        return float32

    def read(self, name: str, dtype: Any = None) -> Any:
        import numpy as np

        from pygpukit.core.dtypes import float32
        from pygpukit.models.convert import convert

        values = np.ones(1, np.float32) if "norm" in name else self._block
        return np.resize(convert(values, float32, dtype or float32), self._shapes[name])

    def stored(self, name: str) -> None:
        return None

    def quantised_weight(self, name: str) -> None:
        return None

    def tokenizer(self) -> Any:
        from pygpukit.core.errors import ModelFileError

        raise ModelFileError("random weights have no tokenizer", self.name)

    def close(self) -> None:
        """Nothing is open."""
