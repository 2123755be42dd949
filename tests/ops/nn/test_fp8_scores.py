"""sdpa_causal_fp8() beside its formula in float64, with e4m3's numbers listed one by one."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops

pytestmark = pytest.mark.usefixtures("operation_backend")

# Magnitudes of e4m3: 8 subnormal ones, then 8 a power of two; the last pattern is NaN's.
E4M3 = np.array([m * 2.0**-9 for m in range(8)] + [(8 + m) * 2.0 ** (e - 10) for e in range(1, 16) for m in range(8)])
E4M3 = E4M3[:-1]


def rounded(values: np.ndarray) -> np.ndarray:
    """Nearest numbers of e4m3, of two the one whose pattern is even."""
    magnitude = np.abs(values)[..., None]
    distance = np.abs(magnitude - E4M3)
    patterns = np.arange(len(E4M3))
    nearest = distance == distance.min(-1, keepdims=True)
    even = nearest & (patterns % 2 == 0)
    chosen = np.where(even.any(-1), even.argmax(-1), nearest.argmax(-1))
    return np.copysign(E4M3[chosen], values)


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    def of_head(x: np.ndarray) -> np.ndarray:
        step = np.abs(x).max((-2, -1), keepdims=True) / np.float32(448)
        step = np.where(step > 0, step, np.float32(1))
        return rounded(x / step).astype(np.float64) * step

    q, k = of_head(q), of_head(k)
    group = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, -3), np.repeat(v.astype(np.float64), group, -3)
    scores = q @ np.swapaxes(k, -1, -2) * (scale if scale > 0 else q.shape[-1] ** -0.5)
    seen = np.tril(np.ones(scores.shape[-2:], bool), scores.shape[-1] - scores.shape[-2])
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("shapes", [((2, 5, 8), (2, 5, 8)), ((4, 3, 40), (2, 9, 40)), ((1, 2, 7, 24), (1, 1, 7, 24))])
@pytest.mark.parametrize("scale", [0.0, 0.3])
def test_scores_are_those_of_rounded_queries_and_keys(shapes, scale: float) -> None:
    rng = np.random.default_rng()
    q = (3 * rng.standard_normal(shapes[0])).astype(np.float32)
    k, v = (rng.standard_normal(shapes[1]).astype(np.float32) for _ in range(2))
    k[..., 0, :, :] *= 100  # each head has a scale of its own
    out = gp.full(shapes[0], np.nan)
    assert ops.sdpa_causal_fp8(*map(gp.from_numpy, (q, k, v)), out, scale) is None
    np.testing.assert_allclose(out.to_numpy(), expected(q, k, v, scale), rtol=2e-4, atol=2e-4)


def test_rounding_shows_and_half_precision_keeps_its_type() -> None:
    rng = np.random.default_rng(8)
    q, k, v = (gp.from_numpy(rng.standard_normal((2, 33, 16)).astype(np.float16)) for _ in range(3))
    out = gp.full(q.shape, np.nan, "float16")
    ops.sdpa_causal_fp8(q, k, v, out)
    exact = gp.sdpa_causal(q.astype("float32"), k.astype("float32"), v.astype("float32")).to_numpy()
    difference = np.abs(out.to_numpy() - exact).max()
    assert out.dtype == "float16" and 1e-3 < difference < 0.5


def test_heads_of_zeros_and_empty_ones() -> None:
    zeros, v = gp.zeros((1, 4, 8)), gp.ones((1, 4, 8))
    out = gp.full((1, 4, 8), np.nan)
    ops.sdpa_causal_fp8(zeros, zeros, v, out)
    assert (out.to_numpy() == 1).all()
    ops.sdpa_causal_fp8(*(gp.zeros((2, 0, 8)) for _ in range(4)))


def test_what_does_not_fit_is_refused_before_anything_is_written() -> None:
    q, out = gp.ones((2, 3, 8)), gp.full((2, 3, 8), 7)
    with pytest.raises(gp.ShapeError, match="sdpa_causal_fp8"):
        ops.sdpa_causal_fp8(q, gp.ones((2, 3, 16)), q, out)
    with pytest.raises((gp.ShapeError, ValueError), match="sdpa_causal_fp8"):
        ops.sdpa_causal_fp8(q, q, q, gp.ones((2, 4, 8)))
    with pytest.raises((gp.DTypeError, TypeError), match="sdpa_causal_fp8"):
        ops.sdpa_causal_fp8(q, q, q, gp.ones((2, 3, 8), "int32"))
    assert (out.to_numpy() == 7).all()
