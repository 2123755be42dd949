"""TensorLoader: what is on the device when it ends, however little may be under way, and what it tells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from llm.tiny import CONFIGS, MemoryCheckpoint
from llm.tiny_weights import tensors

from pygpukit.core.errors import ShapeError
from pygpukit.nn import loading

KIND = "gpt2"  # whose weights are transposed


@pytest.mark.parametrize("most_bytes", [0, 5000, 256 << 20])
def test_every_tensor_is_there_and_told(most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_UNDER_WAY_BYTES", most_bytes)
    values = {name: value for name, value in tensors(CONFIGS[KIND]).items() if value.ndim == 2}
    told: list[tuple[int, int, str]] = []
    loader = loading.TensorLoader(
        MemoryCheckpoint(CONFIGS[KIND], values), "float32", "m", lambda *one: told.append(one), transposed=True
    )
    with loader:
        made = {
            name: loader.linear(name, value.shape[0], [(name, None, value.shape[1])]) for name, value in values.items()
        }
    for name, value in values.items():
        np.testing.assert_array_equal(made[name].weight.to_numpy(), value.T)
        assert made[name].weight.name == f"m/{name}.weight"
    assert [name for *_, name in told] == list(values)
    assert all(a[0] < b[0] for a, b in pairwise(told)) and told[-1][0] == told[-1][1]


def test_a_failure_leaves_nothing_under_way() -> None:
    values = tensors(CONFIGS[KIND])
    name = next(name for name, value in values.items() if value.ndim == 2)
    loader = loading.TensorLoader(MemoryCheckpoint(CONFIGS[KIND], values), "float32", "m", False)
    with pytest.raises(ShapeError, match="has shape"), loader:
        loader.table(name, "first", values[name].shape)
        loader.table(name, "second", (3, 5))
    stats = loader._engine.stats()
    assert (stats["queued"], stats["in_progress"]) == (0, 0)
    with pytest.raises(RuntimeError, match="after shutdown"):
        loader.table(name, "third", values[name].shape)
