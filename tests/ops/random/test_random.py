"""Random arrays: the numbers of Philox, the same on both backends, and their distributions."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit.ops.random import philox
from pygpukit.random import Generator

pytestmark = pytest.mark.usefixtures("backend_name")

MASK = 0xFFFFFFFF


def philox4x32(counter: list[int], key: list[int]) -> list[int]:
    """The algorithm as published, in Python integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & MASK, first >> 32 ^ c[3] ^ k[1], first & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def blocks(seed: int, call: int, count: int) -> np.ndarray[Any, Any]:
    made = [philox4x32([i, 0, call & MASK, call >> 32], [seed & MASK, seed >> 32]) for i in range(count)]
    return np.array(made, np.uint64)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([MASK] * 4, [MASK] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_published_vectors(counter: list[int], key: list[int], expected: list[int]) -> None:
    assert philox4x32(counter, key) == expected
    index, call = (counter[i] | counter[i + 1] << 32 for i in (0, 2))
    assert philox.words(key[0] | key[1] << 32, [index], call)[0].tolist() == expected


SEED = 0x0123456789ABCDEF


def test_uniform_numbers_are_the_upper_bits_of_the_words() -> None:
    generator = Generator(SEED, calls=2**33)
    words = blocks(SEED, 2**33, 251).reshape(-1)
    np.testing.assert_array_equal(generator.random(1003).to_numpy(), ((words >> 8) * 2.0**-24)[:1003])
    for dtype, bits in (("float16", 11), ("bfloat16", 8)):
        words = blocks(SEED, generator.calls, 5).reshape(-1)
        found = generator.random(19, dtype).astype("float32").to_numpy()
        np.testing.assert_array_equal(found, ((words >> (32 - bits)) * 2.0**-bits)[:19])
    pairs = blocks(SEED, generator.calls, 9)
    wide = (pairs[:, ::2] | pairs[:, 1::2] << 32).reshape(-1)
    found = generator.random((1, 17), "float64").to_numpy()
    np.testing.assert_array_equal(found[0], ((wide >> 11) * 2.0**-53)[:17])


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -100, 28), ("uint8", 0, 256), ("int16", 5, 6), ("uint16", 7, 60000), ("int32", -(2**31), 2**31),
        ("uint32", 3, 1000), ("int64", -(2**63), 2**63), ("int64", -(2**40), 3), ("uint64", 0, 2**64),
        ("uint64", 2**63, 2**64 - 1),
    ],
)  # fmt: skip
def test_integers_are_a_multiple_of_the_words(dtype: str, low: int, high: int) -> None:
    found = Generator(SEED).integers(low, high, (3, 7), dtype).to_numpy()
    assert found.dtype == dtype
    pairs = [[w[0] | w[1] << 32, w[2] | w[3] << 32] for w in blocks(SEED, 0, 21).tolist()]
    count = high - low
    if count <= 2**32:
        expected = [low + (bits * count >> 64) for pair in pairs for bits in pair]
    else:
        expected = [low + ((pair[0] | pair[1] << 64) * count >> 128) for pair in pairs]
    assert found.reshape(-1).tolist() == expected[:21]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_box_and_mullers(dtype: str) -> None:
    double = dtype == "float64"
    words = philox.words(SEED, np.arange(500), 0)
    source = philox.joined(words) if double else words
    bits = 64 if double else 32
    radius = np.sqrt(-2 * np.log(source[:, ::2].astype(dtype).astype(np.float64) / 2.0**bits))
    angle = 2 * np.pi * (source[:, 1::2].astype(np.float64) / 2.0**bits)
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1)
    found = Generator(SEED).standard_normal(expected.shape, dtype).to_numpy()
    tolerance = 3e-15 if double else 1e-6
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert found.tobytes() == philox.normals(words, double).tobytes(), "the bits are those of NumPy on any device"
    scaled = Generator(SEED).normal(2.5, 3, expected.shape, dtype).to_numpy()
    assert scaled.tobytes() == (found * found.dtype.type(3) + found.dtype.type(2.5)).tobytes()
    low = Generator(SEED).standard_normal(expected.shape, "float16").to_numpy()
    assert double or low.tobytes() == found.astype(np.float16).tobytes()


def test_distributions() -> None:
    generator = Generator(11)
    size = 400_000
    uniform = np.sort(generator.random(size).to_numpy().astype(np.float64))
    assert uniform[0] >= 0
    assert uniform[-1] < 1
    assert np.abs(uniform - (np.arange(size) + 0.5) / size).max() < 2 / np.sqrt(size), "Kolmogorov and Smirnov"
    normal = np.sort(generator.standard_normal(size).to_numpy().astype(np.float64))
    for z, share in ((-3.0, 0.0013499), (-1.0, 0.1586553), (0.0, 0.5), (0.5, 0.6914625), (2.0, 0.9772499)):
        assert abs(np.searchsorted(normal, z) / size - share) < 5 * np.sqrt(share * (1 - share) / size)
    counts = np.bincount(generator.integers(7, size=size).to_numpy(), minlength=7)
    assert ((counts - size / 7) ** 2 / (size / 7)).sum() < 30, "chi-square with 6 degrees of freedom"
    assert abs(np.corrcoef(normal[:-1], generator.random(size).to_numpy()[1:])[0, 1]) < 5 / np.sqrt(size)


def test_numbers_depend_on_seed_call_and_index_only() -> None:
    whole = Generator(5).random(1000).to_numpy()
    np.testing.assert_array_equal(Generator(5).random((7, 3)).to_numpy().reshape(-1), whole[:21])
    first = Generator(5)
    first.integers(10, size=4)
    second = first.random(100).to_numpy()
    assert not np.array_equal(second, whole[:100])
    np.testing.assert_array_equal(Generator(5, calls=1).random(100).to_numpy(), second)
    assert first.calls == 2
    assert not np.array_equal(Generator(6).random(100).to_numpy(), whole[:100])
    with gp.Stream():
        np.testing.assert_array_equal(Generator(5).random(1000).to_numpy(), whole)
    assert Generator().seed != Generator().seed


def test_the_default_generator() -> None:
    gp.random.seed(3)
    first = [gp.random.rand(2, 3), gp.random.randn(4, dtype="float64"), gp.random.randint(10, size=5)]
    gp.random.seed(3)
    again = [gp.random.random((2, 3)), gp.random.standard_normal(4, "float64"), gp.random.integers(0, 10, 5)]
    for a, b in zip(first, again, strict=True):
        assert a.shape == b.shape
        assert a.to_numpy().tobytes() == b.to_numpy().tobytes()
    assert gp.random.rand().shape == ()
    assert gp.random.uniform(-1, 1, (0, 3)).shape == (0, 3)
    values = gp.random.uniform(-3, -1, 1000).to_numpy()
    assert values.min() >= -3
    assert values.max() <= -1
    assert gp.random.default_rng(np.int64(4)).seed == 4
    assert gp.random.randint(np.int8(3), np.int8(5), 50).to_numpy().max() == 4


def test_threads_share_a_generator_without_repeating() -> None:
    generator = Generator(1)
    made: list[bytes] = []

    def draw() -> None:
        made.extend(generator.random(8).to_numpy().tobytes() for _ in range(20))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 80


def test_refusals() -> None:
    generator = Generator(0)
    with pytest.raises(gp.DTypeError, match="int32 is not float16"):
        generator.random(3, "int32")
    with pytest.raises(gp.DTypeError, match="float32 is not an integer type"):
        generator.integers(3, dtype="float32")
    with pytest.raises(gp.InvalidSpecError, match="no integer from 5 to 4"):
        generator.integers(5, 5)
    with pytest.raises(OverflowError, match="255 does not fit int8"):
        generator.integers(0, 256, dtype="int8")
    with pytest.raises(gp.InvalidSpecError, match="scale"):
        generator.normal(0, -1)
    with pytest.raises(gp.InvalidSpecError, match="finite"):
        generator.uniform(0, float("inf"))
    with pytest.raises(gp.InvalidSpecError, match="2\\^64"):
        Generator(2**64)
    with pytest.raises(gp.DTypeError, match="seed must be an int"):
        gp.random.seed("a")
    with pytest.raises(gp.ShapeError):
        generator.random(-1)


# ---- random order ----


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=3), st.data(), st.integers(0, 2**64 - 1), st.integers(0, 9))
def test_a_permutation_is_a_function_of_seed_and_call(shape: list[int], data: Any, seed: int, call: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    host = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    generator = Generator(seed, call)
    order = generator.permutation(shape[axis]).to_numpy()
    assert generator.calls == call + 1 and order.dtype == np.int64
    keys = [low | high << 32 for low, high in blocks(seed, call, shape[axis]).reshape(-1, 4)[:, 2:].tolist()]
    assert order.tolist() == sorted(range(shape[axis]), key=keys.__getitem__)
    x = gp.from_numpy(host)
    np.testing.assert_array_equal(Generator(seed, call).permutation(x, axis).to_numpy(), host.take(order, axis))
    view = gp.from_numpy(np.repeat(host, 2, -1))[..., ::-2]
    before = view.to_numpy()
    Generator(seed, call).shuffle(view, axis)
    np.testing.assert_array_equal(view.to_numpy(), before.take(order, axis))


def test_every_order_is_as_likely() -> None:
    rows = Generator(3).integers(0, 2**64, (4800, 4), "uint64").to_numpy()  # what permutation(4) sorts by, 4800 times
    generator = Generator(4)
    drawn = [tuple(generator.permutation(4).to_numpy().tolist()) for _ in range(480)]
    drawn += [tuple(order) for order in rows.argsort(1).tolist()]
    counts = np.unique(np.array(drawn), axis=0, return_counts=True)[1]
    assert counts.size == 24
    assert ((counts - len(drawn) / 24) ** 2 / (len(drawn) / 24)).sum() < 60  # chi-square, 23 degrees: p < 1e-4


def test_permutation_refusals_and_the_default_generator() -> None:
    x = gp.arange(5)
    for wrong, error in (
        (-1, gp.InvalidSpecError),
        (2.5, gp.DTypeError),
        (True, gp.DTypeError),
        ([1, 2], gp.DTypeError),
    ):
        with pytest.raises(error, match="permutation"):
            gp.random.permutation(wrong)  # type: ignore[arg-type]
    for call in (lambda: gp.random.permutation(x, 1), lambda: gp.random.shuffle(gp.full((), 3))):
        with pytest.raises(gp.ShapeError):
            call()
    with pytest.raises(gp.ShapeError, match="shuffle"):
        gp.random.shuffle(gp.broadcast_to(x, (3, 5)))
    gp.random.seed(7)
    first = gp.random.permutation(100).to_numpy()
    y = gp.arange(100, dtype="int64")
    gp.random.seed(7)
    gp.random.shuffle(y)
    np.testing.assert_array_equal(y.to_numpy(), first)
    assert gp.random.permutation(0).shape == (0,)
