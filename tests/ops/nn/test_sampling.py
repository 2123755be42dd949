"""Sampling tokens: the kept tokens equal a sorted reference, draws follow the distribution, rows are independent."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops
from pygpukit.ops.nn import sampling
from pygpukit.ops.random import philox

pytestmark = pytest.mark.usefixtures("backend_name")

rng = np.random.default_rng()


def kept(logits: np.ndarray[Any, Any], temperature: float, top_k: int, top_p: float, min_p: float) -> dict[int, float]:
    """Token: probability, by sorting, in float64."""
    z = logits.astype(np.float32) / np.float32(temperature)
    weights = np.exp(z.astype(np.float64) - z.max())
    order = [int(i) for i in np.argsort(-z, kind="stable") if weights[i] >= min_p * (1 - 1e-6)]
    order = order[: top_k or len(order)]
    shares = np.cumsum(weights[order]) / weights[order].sum()
    order = order[: int(np.searchsorted(shares, top_p * (1 - 1e-9))) + 1]
    return {i: weights[i] / weights[order].sum() for i in order}


SETTINGS = [(1.0, 0, 1.0, 0.0), (0.7, 5, 1.0, 0.0), (1.3, 0, 0.8, 0.0), (1.0, 0, 1.0, 0.2), (2.0, 9, 0.9, 0.05)]


@pytest.mark.parametrize(("temperature", "top_k", "top_p", "min_p"), SETTINGS)
def test_draws_follow_the_distribution(temperature: float, top_k: int, top_p: float, min_p: float) -> None:
    logits = (rng.standard_normal(24) * 2).astype(np.float32)
    expected = kept(logits, temperature, top_k, top_p, min_p)
    rows = 1500
    same = gp.from_numpy(np.broadcast_to(logits, (rows, 24)).copy())
    found = gp.sample_token(
        same, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=int(rng.integers(1 << 60))
    ).to_numpy()
    assert found.dtype == np.int32
    assert set(found.tolist()) <= set(expected)
    for token, share in expected.items():
        # Bernstein's bound, which also holds for rare tokens: further off once in 1e9 times.
        most = 7.2 + np.sqrt(7.2**2 + 43 * rows * share * (1 - share))
        assert abs(int((found == token).sum()) - rows * share) < most


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_greedy_takes_the_first_of_the_largest(dtype: str) -> None:
    logits = np.round(rng.standard_normal((5, 300)) * 2)
    logits[1, :] = 0
    logits[2, 7] = np.nan
    logits[3, 40:] = np.inf
    logits[4, :] = -np.inf
    found = gp.sample_token(gp.from_numpy(logits).astype(dtype), temperature=0.0)
    expected = np.argmax(np.where(np.isnan(logits), -np.inf, logits), axis=1)
    np.testing.assert_array_equal(found.to_numpy(), expected)
    x = gp.from_numpy(logits[0]).astype(dtype)
    assert ops.sample_greedy(x) == ops.sample_greedy(x[None]) == expected[0]
    assert ops.sample_topk(x, 1, 0.8) == expected[0], "of equal logits the first is kept"


def test_equal_logits_are_kept_by_index() -> None:
    flat = gp.zeros((400, 10))
    assert set(gp.sample_token(flat, top_k=3, seed=1).to_numpy().tolist()) == {0, 1, 2}
    assert set(gp.sample_token(flat, top_p=0.5, seed=1).to_numpy().tolist()) == {0, 1, 2, 3, 4}
    assert set(gp.sample_token(flat, top_p=0.51, seed=1).to_numpy().tolist()) == {0, 1, 2, 3, 4, 5}
    assert set(gp.sample_token(flat, min_p=1.0, seed=1).to_numpy().tolist()) == set(range(10))
    certain = np.full((50, 10), -np.inf, np.float32)
    certain[:, 6] = 3
    certain[:, 2] = np.nan
    assert set(gp.sample_token(gp.from_numpy(certain), seed=1).to_numpy().tolist()) == {6}


def test_a_row_with_its_own_seed_is_the_same_in_any_batch() -> None:
    logits = rng.standard_normal((6, 1000)).astype(np.float32)
    seeds, positions = np.array([3, -1, 7, 7, 0, 2**40]), np.array([0, 5, 5, 6, 2**35, 1])
    x, s, p = (gp.from_numpy(a) for a in (logits, seeds, positions))
    together = gp.sample_token(x, seed=s, position=p, top_p=0.95).to_numpy()
    for row in range(6):
        alone = gp.sample_token(x[row : row + 1], seed=s[row : row + 1], position=p[row : row + 1], top_p=0.95)
        assert alone.to_numpy()[0] == together[row]
        mixed = gp.sample_token(
            x[row : row + 1], seed=int(seeds[row]) % 2**64, position=int(positions[row]), top_p=0.95
        )
        assert mixed.to_numpy()[0] == together[row], "row 0 of a call with one seed"
    backwards = gp.sample_token(x[::-1], seed=s[::-1].contiguous(), position=p[::-1].contiguous(), top_p=0.95)
    np.testing.assert_array_equal(backwards.to_numpy()[::-1], together)


def test_seeds_and_positions() -> None:
    x = gp.zeros((4, 5000))
    ops.set_sampling_seed(9)
    first, second = gp.sample_token(x).to_numpy(), gp.sample_token(x).to_numpy()
    assert not np.array_equal(first, second)
    assert len(set(first.tolist())) == 4, "rows differ"
    ops.set_sampling_seed(9)
    np.testing.assert_array_equal(gp.sample_token(x).to_numpy(), first)
    np.testing.assert_array_equal(gp.sample_token(x, seed=9, position=1).to_numpy(), second)
    out = gp.zeros(8, "int32")
    assert gp.sample_token(x, seed=9, out=out[::2]).block == out.block
    np.testing.assert_array_equal(out.to_numpy()[::2], first)
    np.testing.assert_array_equal(out.to_numpy()[1::2], 0)
    np.testing.assert_array_equal(gp.sample_token(x, seed=np.int64(9), top_k=np.int32(0)).to_numpy(), first)
    assert gp.sample_token(x[0], seed=9).shape == ()
    assert gp.sample_token(x[:0], seed=9).shape == (0,)
    assert ops.sample_multinomial(x[0], 1.0) in range(5000)
    assert ops.sample_topp(x[0], 0.1, 1.0) in range(500)


def test_strided_logits_are_read_in_place() -> None:
    logits = rng.standard_normal((6, 90)).astype(np.float32)
    view, copy = gp.from_numpy(logits)[::-2, 80:4:-3], gp.from_numpy(logits[::-2, 80:4:-3].copy())
    for top_k, top_p in itertools.product((0, 4), (1.0, 0.6)):
        found = [gp.sample_token(x, top_k=top_k, top_p=top_p, seed=3).to_numpy() for x in (view, copy)]
        np.testing.assert_array_equal(found[0], found[1])


def test_given_random_numbers() -> None:
    logits = np.log(np.array([[1, 2, 3, 4]] * 6, np.float32))
    draws = np.array([0, 0.3, 0.43, 0.999, 1.0, np.nan], np.float32)
    result = gp.zeros(6, "int32")
    ops.sample_topk_to_buf_ptr(gp.from_numpy(logits).astype("float16"), result, gp.from_numpy(draws), 3, 1.0)
    # Of tokens 2 and 3 above token 1, in the order of the vocabulary: shares 3/9, 4/9, then token 1 with 2/9.
    assert result.to_numpy().tolist() == [2, 2, 3, 1, 1, 2]


def by_sorting(logits: np.ndarray[Any, Any], settings: tuple[float, int, int, float], bits: int) -> int:
    """choice_on_host() by sorting the whole row, with sums of whole numbers."""
    temperature, top_k, share, log_min_p = settings
    with np.errstate(all="ignore"):
        z = logits / np.float32(temperature)
        weights = np.where(z == z.max(), np.uint64(1 << 40), philox.exp_units(z - z.max()))
        order = sorted(range(len(z)), key=lambda i: (-z[i], i))
        least = z.max() + np.float32(log_min_p) if log_min_p > -math.inf else -np.inf
    order = [i for i in order if z[i] >= least][: top_k or None]
    if share:
        target = (sum(int(weights[i]) for i in order) * share - 1) >> 64
        sums = list(itertools.accumulate(int(weights[i]) for i in order))
        order = order[: 1 + sum(each <= target for each in sums)]
    last = z[order[-1]]
    order.sort(key=lambda i: (z[i] == last, i))
    sums = list(itertools.accumulate(int(weights[i]) for i in order))
    return order[sum(each <= (bits * sums[-1]) >> 64 for each in sums)]


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 8.0, 80.0])
def test_a_row_on_the_host_is_chosen_from_as_if_it_were_sorted(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_HEAD", 4)  # so that short rows, too, need more than the first of them
    for size in (1, 2, 5, 64, 700):
        for round_to in (0, 1, 9):  # the fewer places, the more ties
            logits = np.round(rng.standard_normal(size) * spread, round_to).astype(np.float32)
            logits[rng.random(size) < 0.1] = -np.inf
            if size == 64 and round_to == 1:
                logits[[3, 9]] = np.inf
            for temperature, top_k, top_p, min_p in itertools.product(
                (0.6, 2.0), (0, 3, 2**62), (1.0, 0.9, 0.01), (0, 0.1)
            ):
                settings = temperature, top_k, sampling.share_of(top_p), math.log(min_p) if min_p else -math.inf
                for bits in (0, 2**64 - 1, int(rng.integers(1 << 63)) * 2):
                    found = sampling.choice_on_host(logits, *settings, bits)
                    assert found == by_sorting(logits, settings, bits), (size, settings, bits)


def test_refusals() -> None:
    x = gp.zeros((2, 5))
    for name, value in (("temperature", -1.0), ("temperature", float("nan")), ("top_k", -1), ("top_p", 0.0),
                        ("top_p", 1.5), ("min_p", -0.1), ("seed", -1), ("temperature", "0.5"), ("temperature", 1e40),
                        ("top_k", 1.5), ("top_k", float("nan")), ("top_p", "0.9"), ("min_p", None),
                        ("seed", 1.5), ("seed", "1")):  # fmt: skip
        with pytest.raises(gp.InvalidSpecError, match=name):
            gp.sample_token(x, **{name: value})
    for value in (1.5, "1", -1, None):
        with pytest.raises(gp.InvalidSpecError, match="seed"):
            ops.set_sampling_seed(value)
        with pytest.raises(gp.InvalidSpecError, match="position"):
            gp.sample_token(x, seed=1, position=value)
    with pytest.raises(gp.InvalidSpecError, match="position without a seed"):
        gp.sample_token(x, position=1)
    with pytest.raises(gp.DTypeError, match="int32, must be float16"):
        gp.sample_token(gp.zeros(3, "int32"))
    with pytest.raises(gp.ShapeError, match=r"\(2, 0\)"):
        gp.sample_token(x[:, :0])
    with pytest.raises(gp.ShapeError, match="out has shape"):
        gp.sample_token(x, out=gp.zeros(3, "int32"))
    with pytest.raises(gp.DTypeError, match="out is float32"):
        gp.sample_token(x, out=gp.zeros(2))
    with pytest.raises(gp.ShapeError, match="seed has shape"):
        gp.sample_token(x, seed=gp.zeros(3, "int64"))
    with pytest.raises(gp.ShapeError, match="2 rows"):
        ops.sample_token_gpu(x)
    with pytest.raises(gp.DTypeError, match="result_buf is float32"):
        ops.sample_topk_to_buf_ptr(x, gp.zeros(2), gp.zeros(2), 1, 1.0)
