"""The LSTM's kernels on the simulator in checked mode: against float64, with the same bits one step a launch and all
steps in one, alone and in company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core import sharing
from pygpukit.core.dtypes import float32, float64
from pygpukit.ops.nn.lstm import launch
from pygpukit.ops.nn.spans import Spans

Values = np.ndarray[Any, Any]


def reference(x: Values, weights: list[Values], back: bool) -> tuple[Values, Values, Values]:
    """One sequence (S, I) in float64."""
    W_ih, W_hh, b_ih, b_hh = (w.astype(np.float64) for w in weights)
    h, c, out = np.zeros(W_hh.shape[1]), np.zeros(W_hh.shape[1]), np.zeros((len(x), W_hh.shape[1]))
    for step in range(len(x))[:: -1 if back else 1]:
        i, f, g, o = np.split(W_ih @ x[step] + W_hh @ h + b_ih + b_hh, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = out[step] = np.tanh(c) / (1 + np.exp(-o))
    return out, h, c


@pytest.mark.parametrize(("hidden", "lengths"), [(5, (3, 1, 0, 2)), (133, (2, 1)), (9, (1,) * 17)])
def test_spans_of_one_launch_and_of_many(kernels_on_sim: Any, hidden: int, lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng()
    places, pairs = 0, []
    for length in lengths:
        places += int(rng.integers(0, 3))
        pairs.append((places, length))
        places += length
    spans = Spans(pairs, places + 1)
    x = rng.standard_normal((1, spans.total, 7), dtype=np.float32)
    shapes = [(4 * hidden, 7), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,)]
    sets = [[0.4 * rng.standard_normal(shape, dtype=np.float32) for shape in shapes] for _ in range(2)]
    arrays = [gp.from_numpy(w) for weights in sets for w in weights]
    together = gp.lstm_bidirectional(gp.from_numpy(x), *arrays, spans=spans)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "_divided", True)
        steps = gp.lstm_bidirectional(gp.from_numpy(x), *arrays, spans=spans)
    for one, other in zip(together, steps, strict=True):
        assert one.to_numpy().tobytes() == other.to_numpy().tobytes()
    out, h, c = (each.to_numpy() for each in together)
    assert not out[0, ~spans.inside.to_numpy()].any()
    for number, (start, length) in enumerate(pairs):
        for way, weights in enumerate(sets):
            expected = reference(x[0, start : start + length].astype(np.float64), weights, bool(way))
            own = slice(way * hidden, (way + 1) * hidden)
            for found, good in zip(
                (out[0, start : start + length, own], h[way, number], c[way, number]), expected, strict=True
            ):
                np.testing.assert_allclose(found, good, rtol=0, atol=3e-6)
    number = int(np.argmax(lengths))
    start, length = pairs[number]
    alone = gp.lstm_bidirectional(gp.from_numpy(x[:, start : start + length]), *arrays)
    assert alone[0].to_numpy().tobytes() == out[:, start : start + length].tobytes()
    assert np.array_equal(alone[1].to_numpy()[:, 0], h[:, number])


def test_where_one_launch_has_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    device = {"compute_major": 9, "compute_minor": 0, "multiprocessor_count": 132}
    monkeypatch.setattr(launch, "device_facts", lambda _: device)
    monkeypatch.setattr(sharing, "_divided", False)  # whatever other tests divided
    launch._no_cluster.cache_clear()
    assert launch.refusal(float32, 1) == launch.refusal(float32, 256) == ""
    assert "257 units do not fit" in launch.refusal(float32, 257)
    assert "float64 has twice" in launch.refusal(float64, 8)
    device["multiprocessor_count"] = 7
    launch._no_cluster.cache_clear()
    assert "needs 8 multiprocessors, there are 7" in launch.refusal(float32, 8)
    device["compute_major"], device["compute_minor"] = 8, 9
    launch._no_cluster.cache_clear()
    assert "SM 8.9 has no clusters" in launch.refusal(float32, 8)
    launch._no_cluster.cache_clear()
    monkeypatch.setattr(sharing, "_divided", True)
    assert "divided" in launch.refusal(float32, 8)
