"""The CUDA kernels of random numbers, sampling and neural networks, run by the simulator in checked mode.

No findings, and what NumPy computes on the simulation (which tests beside this one hold against float64): the same bits
for random numbers, tokens and moved rows, else within rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops
from pygpukit.asr.choice import Chooser
from pygpukit.asr.rules import Rules
from pygpukit.random import Generator

Values = np.ndarray[Any, Any]
Work = Callable[[], list[gp.GPUArray]]
Compare = Callable[..., None]


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Compare:
    """compare(work, tolerance): work gives the same through NumPy and through the kernels."""

    def run(work: Work, tolerance: float = 0.0) -> None:
        expected = [array.to_numpy() for array in work()]
        request.getfixturevalue("kernels_on_sim")
        found = [array.to_numpy() for array in work()]
        for one, other in zip(found, expected, strict=True):
            if tolerance:
                size = np.abs(other).max(initial=0)
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * size)
            else:
                assert one.tobytes() == other.tobytes()

    return run


def fixed(seed: int, *shape: int, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0xFFFFFFFFFFFFFFFF,) * 2, 0xFFFFFFFFFFFFFFFF, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            (0x85A308D3243F6A88, 0x0370734413198A2E),
            0x299F31D0A4093822,
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_published_vectors_of_philox(counter: tuple[int, int], key: int, expected: list[int]) -> None:
    source = """
    #include "philox.cuh"
    typedef unsigned long long Wide;
    extern "C" __global__ void words(unsigned *out, Wide key, Wide index, Wide call) {
      const pk::Words made = pk::philox(key, index, call);
      for (int i = 0; i < 4; ++i) out[i] = made.w[i];
    }
    """
    out = gp.zeros(4, "uint32")
    gp.jit(source, func="words")[1, 1](out, key, *counter)
    assert out.to_numpy().tolist() == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_random_floats(compare: Compare, dtype: str) -> None:
    def work() -> list[gp.GPUArray]:
        generator = Generator(2**60 + 5, calls=2**32)
        shapes: list[tuple[int, ...]] = [(1023,), (3, 5), (), (0, 4)]
        return [generator.uniform(-2, 7, shape, dtype) for shape in shapes] + [
            generator.normal(0.5, 2, shape, dtype) for shape in shapes
        ]

    compare(work)


def test_random_integers(compare: Compare) -> None:
    def work() -> list[gp.GPUArray]:
        generator = Generator(7)
        return [generator.integers(-5, 120, (7, 9), "int8"), generator.integers(-(2**63), 2**62, 33)]

    compare(work)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sampling(compare: Compare, dtype: str) -> None:
    logits = np.random.default_rng(1).standard_normal((6, 777)) * 3
    logits[1] = np.round(logits[1])
    logits[2], logits[3, 7], logits[4, 3], logits[5] = -np.inf, np.inf, np.nan, 0
    x = gp.from_numpy(logits.astype(dtype))
    seeds, positions = gp.from_numpy(np.array([1, -2])), gp.from_numpy(np.array([9, 2**40]))

    def work() -> list[gp.GPUArray]:
        settings = [
            (0.0, 0, 1.0, 0.0),
            (1.0, 0, 1.0, 0.0),
            (0.7, 20, 1.0, 0.0),
            (1.3, 0, 0.9, 0.1),
            (1.0, 3, 0.5, 0.01),
        ]
        tokens = [
            gp.sample_token(x, temperature=t, top_k=k, top_p=p, min_p=m, seed=3, position=i)
            for i, (t, k, p, m) in enumerate(settings)
        ]
        given = gp.empty(6, "int32")
        ops.sample_topk_to_buf_ptr(x, given, Generator(1).random(6), 10, 1.0)
        return [*tokens, gp.sample_token(x[::4, ::-5], seed=seeds, position=positions), given]

    compare(work)


def test_embedding(compare: Compare) -> None:
    table, narrow = fixed(1, 11, 12), gp.from_numpy(np.arange(21, dtype=np.int8).reshape(3, 7))
    ids = gp.from_numpy(np.array([[1, 10, 3], [5, 4, 0]]))
    few = gp.from_numpy(np.array([2, 1, 0], np.int32))
    compare(
        lambda: [gp.embedding(table, ids), gp.embedding(table[::-2, 1::2], ids[:, ::-1] % 6), gp.embedding(narrow, few)]
    )


def test_embedding_rows_that_are_not_there(kernels_on_sim: None) -> None:
    for dtype in ("float32", "int8", "complex128"):
        table = gp.ones((3, 4), dtype)
        found = gp.embedding(table, gp.from_numpy(np.array([2, 3, -1, 0, 2**40])))
        with pytest.raises(IndexError, match=r"index (3|-1|1099511627776) is out of range for axis 0 with size 3"):
            gp.synchronize()
        np.testing.assert_array_equal(found.to_numpy(), np.outer([1, 0, 0, 1, 0], np.ones(4)))


def test_rope(compare: Compare) -> None:
    def work() -> list[gp.GPUArray]:
        made = []
        for layout in ("neox", "gptj"):
            cos, sin = gp.rope_init_llama3(7, 12, layout=layout)
            qkv, q, k = fixed(1, 7, 60), fixed(2, 2, 7, 3, 12), fixed(3, 2, 7, 1, 12)
            gp.rope_inplace(qkv[:, :36].reshape(7, 3, 12), qkv[:, 36:].reshape(7, 2, 12), cos, sin, layout=layout)
            gp.rope_inplace(q, k, cos[:, ::2], sin[:, ::2], layout=layout)
            made += [qkv, q, k]
        return made

    compare(work, 1e-6)


@pytest.mark.parametrize(("dtype", "dim"), [("float32", 40), ("float16", 128), ("float32", 200)])
def test_attention(compare: Compare, dtype: str, dim: int) -> None:
    q, k, v = (fixed(i, *shape, dtype=dtype) for i, shape in enumerate([(4, 35, dim), (41, 2, dim), (2, 41, dim)]))
    length = gp.from_numpy(np.array([38], np.int32))

    def work() -> list[gp.GPUArray]:
        view = k.transpose(1, 0, 2)
        out = gp.empty(q.shape, dtype)
        ops.sdpa_causal_fixed_cache_ptr(q, view, v, out, length, 40)
        return [gp.sdpa_causal(q[:, ::-1], view, v), gp.sdpa_causal(q, view, v, 0.3, offset=-5), out]

    compare(work, 2e-3 if dtype == "float16" else 5e-6)


def test_convolution(compare: Compare) -> None:
    x, w, bias = fixed(1, 2, 6, 9, 11), fixed(2, 27, 2, 3, 2), fixed(3, 27)

    def work() -> list[gp.GPUArray]:
        settings: dict[str, Any] = {"stride": (1, 2), "padding": (2, 0), "dilation": (2, 1), "groups": 3}
        return [
            gp.conv2d(x[:, :, ::-1, ::2], w, bias, **settings),
            gp.conv1d(x[:, :, 0], w[:12, :, 0], padding=1, groups=3),
            gp.conv2d(x, w, **settings),
        ]

    compare(work, 3e-6)


def test_convolutions_in_tiles(compare: Compare) -> None:
    x, w, bias = fixed(1, 2, 10, 9, 11), fixed(2, 146, 5, 3, 2), fixed(3, 146)

    def work() -> list[gp.GPUArray]:
        settings: dict[str, Any] = {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 1), "groups": 2}
        return [
            gp.conv2d(x[:, :, ::-1], w, bias, **settings, act="silu"),
            gp.conv2d(x.transpose(0, 2, 3, 1), w, **settings, channels_last=True),
            gp.conv1d(x[:, :5, 0], w[:16, :, :, 0], bias[:16], padding=3, dilation=2),
        ]

    compare(work, 3e-6)


def test_bias_and_lstm(compare: Compare) -> None:
    x, w = fixed(1, 3, 5, 7), fixed(2, 4, 7)
    weights = [fixed(3 + i, *shape) for i, shape in enumerate([(24, 7), (24, 6), (24,), (24,)] * 2)]
    compare(lambda: [gp.linear_bias_gelu(x, w, fixed(9, 4)), *gp.lstm_bidirectional(x, *weights)], 3e-6)


def test_whispers_next_token(compare: Compare) -> None:
    x = np.random.default_rng(7).uniform(-9, 9, (6, 3001)).astype(np.float32)
    x[0, 77] = x[0, 2999] = 20  # of equal ones the first
    x[1, ::3] = np.nan
    x[2] = -np.inf
    x[3, 1700:] += 4  # times together are more probable than any text
    said: list[list[int]] = [[], [1505], [1505, 8], [1505, 8], [1505, 8, 1600], [1505, 8, 1600, 1600]]
    for latest in (None, 1550):
        chooser = Chooser(Rules(1400, 1500, (8, 9, 1450), (10, 1400), latest), 3001)
        logits = gp.from_numpy(x)

        def work(chooser: Chooser = chooser, logits: gp.GPUArray = logits) -> list[gp.GPUArray]:
            tokens, logs = chooser.arrays(logits, [5, 3, 2, 0, 1, 4], said)
            return [tokens, ops.maximum(logs, -1e3)]  # one is -inf

        compare(work, 2e-6)
