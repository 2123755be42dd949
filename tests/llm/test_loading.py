"""TensorLoader: what is on the device when it ends, however little may be under way, and what it tells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from llm.tiny import CONFIGS, MemoryCheckpoint
from llm.tiny_weights import tensors

import pygpukit as gp
from pygpukit.core.errors import ShapeError
from pygpukit.nn import loading, reads

KIND = "gpt2"  # whose weights are transposed


@pytest.mark.parametrize("most_bytes", [0, 5000, 256 << 20])
def test_every_tensor_is_there_and_told(most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "_UNDER_WAY_BYTES", most_bytes)
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
    stats = loader._reads._engine.stats()
    assert (stats["queued"], stats["in_progress"]) == (0, 0)
    with pytest.raises(RuntimeError, match="after shutdown"):
        loader.table(name, "third", values[name].shape)


def test_a_tensor_is_written_to_the_host_or_its_error_raised() -> None:
    values, told = np.random.default_rng().standard_normal((5, 7)).astype(np.float32), list[tuple[int, int, str]]()
    host, target = np.full(300, 0xA5, np.uint8), gp.zeros((5, 7))
    coming = reads.TensorReads("m", 280, lambda *one: told.append(one))
    with coming:
        with coming.collecting() as collected:
            coming.begin(reads.Read("a", target, lambda: values))
        assert [read.name for read in collected] == ["a"] and not told
        coming.begin(collected[0], host[8:148])
        with coming.at_once():
            coming.begin(collected[0])
        assert told == [(140, 280, "a"), (280, 280, "a")]
    np.testing.assert_array_equal(host[8:148].view(np.float32).reshape(5, 7), values)
    np.testing.assert_array_equal(target.to_numpy(), values)
    assert set(host[:8]) == set(host[148:]) == {0xA5}
    coming = reads.TensorReads("m", 280, False)
    with pytest.raises(ValueError, match="reshape"), coming:
        coming.begin(reads.Read("b", target, lambda: values), host[:144])


@pytest.mark.parametrize("piece_bytes", [1, 8, 20, 1 << 20])
def test_a_tensor_comes_in_pieces(piece_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "_PIECE_BYTES", piece_bytes)
    values = np.random.default_rng().integers(0, 1 << 16, (3, 5), np.uint16)
    targets = [gp.empty((3, 5), "bfloat16") for _ in range(4)]
    empty = gp.empty((0, 5), "bfloat16")
    coming = reads.TensorReads("m", 4 * values.nbytes, False)
    with coming:
        for number, target in enumerate(targets):
            coming.begin(reads.Read(str(number), target, lambda: values.T.copy().T))
        coming.begin(reads.Read("empty", empty, lambda: values[:0]))
    for target in targets:
        np.testing.assert_array_equal(target.view(dtype="uint16").to_numpy(), values)
    coming = reads.TensorReads("m", 4 * values.nbytes, False)
    with pytest.raises(ShapeError, match="of shape \\(5, 3\\) were read, its place has 30"), coming:
        coming.begin(reads.Read("turned", targets[0], lambda: values.T))


def test_parts_of_arrays_are_known_by_their_place() -> None:
    array, other = gp.zeros((6, 4)), gp.zeros((6, 4))
    rows = [reads.Read("a", array[begin:end], lambda: None) for begin, end in ((0, 2), (2, 6))]
    assert [reads.offset_in(array, read.target) for read in rows] == [0, 32]
    assert reads.offset_in(other, rows[1].target) is None
    whole = array, array.nbytes
    assert reads.are_read([whole], rows) and not reads.are_read([whole], rows[:1])
    assert not reads.are_read([whole, (other, other.nbytes)], rows)
    assert reads.are_read([(array, rows[0].target.nbytes)], rows[:1])
