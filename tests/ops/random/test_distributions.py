"""Distributions made of uniform numbers: their quantiles, the choices, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.random import Generator

pytestmark = pytest.mark.usefixtures("backend_name")

COUNT = 40_000
# Each with its distribution function.
DISTRIBUTIONS: dict[str, tuple[Callable[[Generator, str], gp.GPUArray], Callable[[np.ndarray], np.ndarray]]] = {
    "exponential": (lambda g, t: g.exponential(2.0, COUNT, t), lambda x: 1 - np.exp(-x / 2)),
    "laplace": (
        lambda g, t: g.laplace(1.0, 2.0, COUNT, t),
        lambda x: 0.5 + 0.5 * np.sign(x - 1) * (1 - np.exp(-np.abs(x - 1) / 2)),
    ),
    "logistic": (lambda g, t: g.logistic(1.0, 2.0, COUNT, t), lambda x: 1 / (1 + np.exp(-(x - 1) / 2))),
    "gumbel": (lambda g, t: g.gumbel(1.0, 2.0, COUNT, t), lambda x: np.exp(-np.exp(-(x - 1) / 2))),
    "rayleigh": (lambda g, t: g.rayleigh(2.0, COUNT, t), lambda x: 1 - np.exp(-x * x / 8)),
    "weibull": (lambda g, t: g.weibull(3.0, COUNT, t), lambda x: 1 - np.exp(-(x**3))),
    "pareto": (lambda g, t: g.pareto(3.0, COUNT, t), lambda x: 1 - (1 + x) ** -3),
    "power": (lambda g, t: g.power(3.0, COUNT, t), lambda x: x**3),
    "standard_cauchy": (lambda g, t: g.standard_cauchy(COUNT, t), lambda x: 0.5 + np.arctan(x) / np.pi),
    "triangular": (
        lambda g, t: g.triangular(0.0, 1.0, 3.0, COUNT, t),
        lambda x: np.where(x < 1, x * x / 3, 1 - (3 - x) ** 2 / 6),
    ),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_distribution_function_makes_them_uniform(name: str, dtype: str) -> None:
    draw, function = DISTRIBUTIONS[name]
    numbers = draw(Generator(5), dtype)
    assert numbers.dtype.name == dtype and numbers.shape == (COUNT,)
    values = numbers.to_numpy().astype(np.float64)
    assert np.isfinite(values).all()
    distance = np.abs(np.sort(function(values)) - (np.arange(COUNT) + 0.5) / COUNT).max()
    assert distance < 2.0 / np.sqrt(COUNT)  # Kolmogorov's, of a seed that is fixed


def test_choices() -> None:
    rng = Generator(7)
    assert np.bincount(rng.choice(4, COUNT).to_numpy()).min() > 0.24 * COUNT
    counts = np.bincount(rng.choice(3, COUNT, p=[0.5, 0.0, 0.5]).to_numpy(), minlength=3)
    assert counts[1] == 0 and abs(counts[0] - counts[2]) < 0.02 * COUNT
    assert sorted(rng.choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    assert sorted(rng.choice(3, 2, replace=False, p=[0.9, 0.0, 0.1]).tolist()) == [0, 2]
    first = [rng.choice(3, 1, replace=False, p=[0.7, 0.2, 0.1]).item() for _ in range(200)]
    assert first.count(0) > 110 > first.count(1) > 20
    rows = gp.array([[1, 2], [3, 4], [5, 6]])
    assert set(map(tuple, rng.choice(rows, 50).tolist())) == {(1, 2), (3, 4), (5, 6)}
    assert rng.choice(rows, (2, 2), axis=1).shape == (3, 2, 2) and rng.choice(9).shape == ()
    trials = rng.geometric(0.25, COUNT).to_numpy()
    assert trials.min() == 1 and abs(trials.mean() - 4) < 0.1
    lines = rng.permuted(gp.arange(3000).reshape(3, 1000), axis=1).to_numpy()
    assert (np.sort(lines, axis=1) == np.arange(3000).reshape(3, 1000)).all()
    assert not (lines[1] - lines[0] == 1000).any(where=lines[0] > 3).all()
    assert len(rng.bytes(5)) == 5
    assert Generator(7).choice(4, 9).tolist() == Generator(7).choice(4, 9).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.exponential(-1.0),
        lambda g: g.weibull(0.0),
        lambda g: g.geometric(1.5),
        lambda g: g.triangular(0.0, 2.0, 1.0),
        lambda g: g.choice(3, 4, replace=False),
        lambda g: g.choice(3, 2, replace=False, p=[1.0, 0.0, 0.0]),
        lambda g: g.choice(3, 2, p=[0.5, 0.4, 0.2]),
        lambda g: g.choice(0, 1),
    ],
)
def test_what_no_distribution_has_is_refused(call: Callable[[Generator], object]) -> None:
    with pytest.raises(gp.InvalidSpecError):
        call(Generator(1))
