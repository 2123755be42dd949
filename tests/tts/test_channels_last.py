"""What Kokoro's layers do where channels are dense, as tensor cores want them: by the kernels, beside float64."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops import host
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts.layers.adapt import Activation, adapt
from pygpukit.tts.layers.merge import merge

Values = np.ndarray[Any, Any]


def last(values: Values, dtype: str = "float32") -> gp.GPUArray:
    """(1, C, L) with dense channels."""
    array = gp.from_numpy(np.ascontiguousarray(values.transpose(0, 2, 1))).astype(dtype)
    return array.transpose(0, 2, 1)


def exact(x: Values, scale: Values, shift: Values, pairs: Any, act: Activation, alpha: Values) -> Values:
    out = np.zeros(x.shape)
    for number, (start, size) in enumerate(pairs):
        own = x[0, :, start : start + size].astype(np.float64)
        own = (own - own.mean(1, keepdims=True)) / np.sqrt(own.var(1, keepdims=True) + 1e-5)
        own = own * (1 + scale[number][:, None]) + shift[number][:, None]
        own = np.where(own < 0, 0.2 * own, own) if act.slope else own
        own = own + np.sin(alpha[:, None] * own) ** 2 / alpha[:, None] if act.alpha is not None else own
        out[0, :, start : start + size] = own
    return out


@pytest.mark.parametrize("channels", [8, 134])  # four together, and one by one
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_adapt_of_dense_channels(channels: int, kind: str) -> None:
    rng = np.random.default_rng()
    pairs = [(2, 300), (310, 1), (320, 700)]
    spans = Spans(pairs, 1024)
    x = 2 + rng.standard_normal((1, channels, 1024), dtype=np.float32)
    x = x.astype(np.float16) if kind == "float16" else x + 998
    more = rng.standard_normal(x.shape, dtype=np.float32)
    scale, shift = rng.standard_normal((2, 3, channels), dtype=np.float32)
    alpha = rng.uniform(0.5, 2, channels).astype(np.float32)
    weights = gp.from_numpy(scale), gp.from_numpy(shift)
    with host.built_in_kernels():
        for act in (Activation(), Activation(slope=0.2), Activation(alpha=gp.from_numpy(alpha))):
            given = last(x, kind)
            found, _ = adapt(given, *weights, 1e-5, plus_one=True, act=act, spans=spans)
            assert found.strides[1] == 4
            both, total = adapt(given, *weights, 1e-5, other=last(more), plus_one=True, act=act, spans=spans)
            alone, _ = adapt(given[:, :, 320:1020], *(w[2:] for w in weights), 1e-5, plus_one=True, act=act)
            half, _ = adapt(given, *weights, 1e-5, plus_one=True, act=act, spans=spans, dtype=gp.float16)
            summed = x.astype(np.float32) + more
            for array, values in ((found, x), (both, summed)):
                tolerance = 3e-4 if values.max() > 500 else 3e-5  # of 1000 a step is 6e-5 already
                np.testing.assert_allclose(
                    array.to_numpy(), exact(values, scale, shift, pairs, act, alpha), rtol=0, atol=tolerance * 4
                )
            inside = np.concatenate([np.arange(start, start + size) for start, size in pairs])
            assert np.array_equal(total.to_numpy()[:, :, inside], summed[:, :, inside])
            assert found[:, :, 320:1020].to_numpy().tobytes() == alone.to_numpy().tobytes()
            assert np.array_equal(half.to_numpy(), found.to_numpy().astype(np.float16))


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("shape", [(8, 31), (5, 32), (3, 7)])
def test_merge(dense: bool, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng()
    arrays = rng.standard_normal((6, 1, *shape), dtype=np.float32)
    spans = Spans([(1, 2), (4, 3)], shape[1])
    make = last if dense else gp.from_numpy
    for count in (1, 2, 3, 6):
        given = [make(array) for array in arrays[:count]]
        sums = np.array(arrays[0])
        for array in arrays[1:count]:
            sums += array
        sums *= np.float32(1 / 3)
        expected = np.where(sums > 0, sums, sums * np.float32(0.1)) * spans.inside.to_numpy()
        for built_in in (True, False):
            with host.built_in_kernels() if built_in else nullcontext():
                found = merge(given, 1 / 3, 0.1, spans)
                half = merge(given, 1 / 3, 0.1, spans, gp.float16)
                plain = merge(given)
            np.testing.assert_array_equal(found.to_numpy(), expected)
            np.testing.assert_array_equal(half.to_numpy(), expected.astype(np.float16))
            assert (found.strides[1] == 4) == dense
            assert plain.shape == found.shape
    with pytest.raises(gp.ShapeError, match="merge: arrays of shapes"):
        merge([given[0], given[0][:, :1]])
    with pytest.raises(gp.DTypeError, match="merge: arrays of float32"):
        merge([given[0].astype("float64")])
