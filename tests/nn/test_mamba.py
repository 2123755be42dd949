"""Mamba-2 layers beside the recurrence in float64, one position at a time; bits whoever else is there, however cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mamba_recurrence import normed, scanned

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.nn.batch import Batch, Span
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.mamba.cache import StateCache
from pygpukit.nn.mamba.mixer import Mamba2
from pygpukit.nn.mamba.state_space import StateSpace
from pygpukit.nn.norm import Norm
from pygpukit.ops import host

HIDDEN, COUNT = 24, 150
Array = np.ndarray[Any, Any]


@pytest.fixture(params=["host", "kernels"])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "kernels":
        request.getfixturevalue("kernels_on_sim")
    return str(request.param)


def array(values: Array, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(values, np.float32)).astype(dtype)


def doubles(values: gp.GPUArray) -> Array:
    return np.asarray(values.astype("float32").to_numpy().astype(np.float64))


def layer_of(
    space: StateSpace, heads: int, dim: int, dtype: str, seed: int, biased: bool = True
) -> tuple[Mamba2, Norm]:
    rng = np.random.default_rng(seed)
    config = TransformerConfig(hidden_size=HIDDEN, num_heads=heads, _head_dim=dim, num_layers=1, residual_scale=0.5)
    inner, channels = heads * dim, space.channels(heads * dim)
    width = inner + channels + heads

    def weight(*shape: int) -> gp.GPUArray:
        return array(rng.standard_normal(shape) / np.sqrt(shape[-1]), dtype)

    layer = Mamba2(
        config,
        space,
        LinearBF16(weight(width, HIDDEN), weight(width) if biased else None),
        weight(channels, space.conv),
        weight(channels) if biased else None,
        array(rng.standard_normal(heads) - 1, dtype),
        array(rng.standard_normal(heads) - 1),
        array(rng.standard_normal(heads), dtype),
        Norm(array(1 + rng.standard_normal(inner) / 8, dtype), eps=1e-5),
        LinearBF16(weight(HIDDEN, inner), weight(HIDDEN) if biased else None),
    )
    return layer, Norm(array(1 + rng.standard_normal(HIDDEN) / 8, dtype), eps=1e-5)


def product(linear: LinearBF16, rows: Array) -> Array:
    return np.asarray(rows @ doubles(linear.weight).T + (0 if linear.bias is None else doubles(linear.bias)))


def recurrence(layer: Mamba2, norm: Norm, x: Array) -> Array:
    projected = product(layer.in_proj, normed(x.astype(np.float64), doubles(norm.weight), 1, norm.eps))
    bias = None if layer.conv_bias is None else doubles(layer.conv_bias)
    rows = scanned(
        projected, layer.space, doubles(layer.conv), bias, *map(doubles, (layer.step_bias, layer.rate_logs, layer.skip))
    )
    rows = normed(rows, doubles(layer.norm.weight), layer.space.groups, layer.norm.eps)
    return np.asarray(x + 0.5 * product(layer.out_proj, rows))


def integers(values: Any) -> gp.GPUArray:
    return gp.from_numpy(np.asarray(values, np.int32))


def passed(layer: Mamba2, norm: Norm, cache: StateCache, x: Array, parts: list[tuple[int, int, int]]) -> Array:
    """Rows of a prefill: parts (first position, end, slot) of x."""
    rows = np.concatenate([x[begin:end] for begin, end, _ in parts])
    lengths = [end - begin for begin, end, _ in parts]
    firsts = np.cumsum([0, *lengths])
    spans = tuple(
        Span(int(first), int(first) + n, begin) for first, n, (begin, *_) in zip(firsts, lengths, parts, strict=False)
    )
    positions = np.concatenate([np.arange(begin, end) for begin, end, _ in parts])
    slots = np.concatenate([np.full(n, slot) for n, (*_, slot) in zip(lengths, parts, strict=True)])
    out = gp.from_numpy(rows)
    batch = Batch(integers(positions), integers(positions), integers(slots[:, None]), spans)
    layer.forward(out, batch, norm, cache.layers[0])
    return out.to_numpy()


def stepped(layer: Mamba2, norm: Norm, cache: StateCache, rows: Array, positions: list[int], slots: list[int]) -> Array:
    """Rows of a step; a position below 0 is of no sequence."""
    out = gp.from_numpy(np.ascontiguousarray(rows))
    batch = Batch(integers(positions), integers(positions), integers(np.array(slots)[:, None]))
    layer.forward(out, batch, norm, cache.layers[0])
    return out.to_numpy()


CASES = [
    (StateSpace(16, 1, 4), 3, 8, "float32", True),
    (StateSpace(19, 2, 3, 0.01, 0.6), 4, 16, "float32", False),
    (StateSpace(70, 2, 4), 2, 72, "bfloat16", True),
]


@pytest.mark.parametrize(("space", "heads", "dim", "dtype", "biased"), CASES, ids=str)
def test_rows_are_those_of_the_recurrence_however_they_are_cut(
    where: str, space: StateSpace, heads: int, dim: int, dtype: str, biased: bool
) -> None:
    layer, norm = layer_of(space, heads, dim, dtype, heads, biased)
    x = np.random.default_rng(9).standard_normal((COUNT, HIDDEN)).astype(np.float32)
    count = 80 if where == "kernels" else COUNT

    def cache() -> StateCache:
        new = StateCache(layer.config, space, 3, dtype, "t")
        for one in new.layers[0].arrays:
            one[...] = gp.full(one.shape, 7.0, one.dtype.name)  # of who was there before
        return new

    whole = passed(layer, norm, cache(), x, [(0, count, 2)])
    unit = {"float32": 3e-6, "bfloat16": 2.0**-6}[dtype]
    np.testing.assert_allclose(whole, recurrence(layer, norm, x[:count]), atol=4 * unit, rtol=unit)
    for ends in ([1, 2, 63, 64, 65, count - 3], [7, 70, count - 3], [5, 61]):  # and one row at a time from there on
        own, found, begin = cache(), [], 0
        for end in ends:
            found.append(passed(layer, norm, own, x, [(begin, end, 1)]))
            begin = end
        for position in range(begin, count):
            rows = np.stack([x[position], x[0], x[3]])
            found.append(stepped(layer, norm, own, rows, [position, 0, -(2**30)], [1, 0, 2])[:1])
        both = np.concatenate(found)
        np.testing.assert_array_equal(both[:begin], whole[:begin])
        # Kernels multiply rows of steps in another order than those of prompts; the host in one.
        np.testing.assert_allclose(both, whole, atol=0 if host.computes() else 4 * unit, rtol=0)


def test_sequences_of_one_pass_have_the_bits_that_they_have_alone(where: str) -> None:
    space, heads, dim, dtype, _ = CASES[1]
    layer, norm = layer_of(space, heads, dim, dtype, 3)
    x = np.random.default_rng(2).standard_normal((70, HIDDEN)).astype(np.float32)
    cache = StateCache(layer.config, space, 3, dtype, "t")
    first = passed(layer, norm, cache, x, [(0, 66, 2), (0, 5, 0)])
    second = passed(layer, norm, cache, x, [(66, 70, 2), (5, 9, 0), (0, 2, 1)])
    alone = passed(layer, norm, StateCache(layer.config, space, 3, dtype, "t"), x, [(0, 70, 1)])
    np.testing.assert_array_equal(np.concatenate([first[:66], second[:4]]), alone)
    np.testing.assert_array_equal(np.concatenate([first[66:], second[4:8]]), alone[:9])
    np.testing.assert_array_equal(second[8:], alone[:2])


def test_rows_do_not_depend_on_those_behind_them_even_where_these_are_no_numbers(kernels_on_sim: None) -> None:
    space, heads, dim, dtype, _ = CASES[0]
    layer, norm = layer_of(space, heads, dim, dtype, 4)
    x = np.random.default_rng(6).standard_normal((40, HIDDEN)).astype(np.float32)
    before = passed(layer, norm, StateCache(layer.config, space, 1, dtype, "t"), x, [(0, 40, 0)])
    x[29] = np.inf
    after = passed(layer, norm, StateCache(layer.config, space, 1, dtype, "t"), x, [(0, 40, 0)])
    np.testing.assert_array_equal(after[:29], before[:29])
    assert np.isnan(after[29:]).any(axis=1).all()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="n_groups is 3"):
        StateSpace(8, 3, 4).check(4)
    with pytest.raises(InvalidSpecError, match="conv_kernel is 9"):
        StateSpace(8, 1, 9).check(4)
    with pytest.raises(InvalidSpecError, match="state_size is 257"):
        StateSpace(257, 1, 4).check(4)
    layer, _ = layer_of(StateSpace(8, 1, 4), 2, 8, "float32", 0)
    with pytest.raises(ShapeError, match="has a first product of"):
        Mamba2(
            layer.config, StateSpace(9, 1, 4), layer.in_proj, layer.conv, None, layer.step_bias, layer.rate_logs,
            layer.skip, layer.norm, layer.out_proj,
        )  # fmt: skip
