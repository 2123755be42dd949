"""Operations of cuTile in the interpreter, each beside NumPy's on random elements: results, types, what is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import KernelCheckError
from pygpukit.cutile import ct
from pygpukit.cutile.tile import Tile

ALL_KNOWN = ct.PaddingMode.ZERO


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng()


def evaluated(function: Callable[..., Any], *arrays: Any, padding: Any = ALL_KNOWN) -> Any:
    """The value that a function of tiles has in a kernel; each array is one tile, of powers of two."""
    shapes = tuple(tuple(1 << (one - 1).bit_length() for one in array.shape) for array in arrays)
    out: list[Any] = []

    @ct.kernel
    def kernel(inputs):
        tiles = [
            ct.load(one, (0,) * one.ndim, shape, padding_mode=padding)
            for one, shape in zip(inputs, shapes, strict=True)
        ]
        out.append(function(*tiles))

    kernel.check(1, tuple(arrays))
    return out[0]


def close(tile: Tile, want: Any, dtype: Any, bound: float = 1e-6) -> bool:
    """True where a tile has the type and elements that are wanted."""
    assert tile.dtype == dtype and tile.undetermined is None and tile.shape == np.shape(want)
    return bool(np.allclose(tile.data.astype(np.float64), want, rtol=bound, atol=bound, equal_nan=True))


BINARIES: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "atan2": np.arctan2,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "equal": np.equal,
}


@pytest.mark.parametrize("name", BINARIES)
def test_operations_of_two_floats(rng: np.random.Generator, name: str) -> None:
    x, y = rng.uniform(0.5, 4, (4, 8)).astype(np.float32), rng.uniform(0.5, 4, (8,)).astype(np.float32)
    dtype = ct.bool_ if name in ("greater", "less_equal", "equal") else ct.float32
    assert close(evaluated(getattr(ct, name), x, y), BINARIES[name](x.astype(np.float64), y), dtype, 1e-5)


INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "cdiv": lambda x, y: np.ceil(x / y),
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_xor": np.bitwise_xor,
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_operations_of_two_integers(rng: np.random.Generator, name: str, dtype: str) -> None:
    low = 0 if dtype == "uint8" else -100
    x, y = rng.integers(low, 100, (4, 4)).astype(dtype), rng.integers(1, 9, (4, 1)).astype(dtype)
    y = y if dtype == "uint8" else y * rng.choice([-1, 1], y.shape).astype(dtype)
    want = INTEGERS[name](x.astype(np.int64), y.astype(np.int64)).astype(dtype)
    assert close(evaluated(getattr(ct, name), x, y), want, getattr(ct, dtype), 0)


def test_integers_wrap_and_shift_as_on_a_device() -> None:
    x = np.array([2**31 - 1, -(2**31), 5, -7], np.int32)
    assert evaluated(lambda x: x + 1, x).data.tolist() == [-(2**31), -(2**31) + 1, 6, -6]
    assert evaluated(lambda x: x >> 1, x).data.tolist() == [2**30 - 1, -(2**30), 2, -4]
    assert evaluated(lambda x: (~x, -x), x)[0].data.tolist() == [-(2**31), 2**31 - 1, -6, 6]


UNARIES = ["exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "abs"]


@pytest.mark.parametrize("name", UNARIES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_operations_of_one_float(rng: np.random.Generator, name: str, dtype: str) -> None:
    x = gp.from_numpy(rng.uniform(0.1, 3, 16).astype(np.float32)).astype(dtype)
    bound = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    want = getattr(np, name)(x.astype("float64").to_numpy())
    assert close(evaluated(getattr(ct, name), x), want, getattr(ct, dtype), bound)


def test_types_follow_cutile() -> None:
    half, single, whole = np.ones(4, np.float16), np.ones(4, np.float32), np.ones(4, np.int32)
    assert evaluated(lambda x: x + 2.5, half).dtype == ct.float16, "a number of Python takes the tile's type"
    assert evaluated(lambda x, y: x + y, half, single).dtype == ct.float32
    assert evaluated(lambda x: x / 2, whole).dtype == ct.float32
    assert evaluated(lambda x: x * 2.0, whole).dtype == ct.float32
    assert evaluated(lambda x: ct.exp(x), whole).dtype == ct.float32
    assert evaluated(lambda x: ct.sum(x > 0), whole).dtype == ct.int32
    assert evaluated(lambda x: x + ct.bid(0), half).dtype == ct.float16
    assert evaluated(lambda: (2 + 3, ct.cdiv(7, 2))) == (5, 4), "constants stay Python's"
    assert evaluated(lambda x: x * 0.1, np.ones(1)).data[0] == 0.1, "rounded to float64, once"


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_reductions_and_scans(rng: np.random.Generator, dtype: str) -> None:
    x = rng.integers(-5, 6, (4, 8)).astype(dtype)
    wide, kind = x.astype(np.float64), getattr(ct, dtype)
    assert close(evaluated(ct.sum, x), wide.sum(), kind)
    assert close(evaluated(lambda x: ct.sum(x, 1, keepdims=True), x), wide.sum(1, keepdims=True), kind)
    assert close(evaluated(lambda x: ct.max(x, (0, 1)), x), wide.max(), kind)
    assert close(evaluated(lambda x: ct.min(x, -1), x), wide.min(1), kind)
    assert close(evaluated(lambda x: ct.prod(x, 0), x), wide.prod(0), kind)
    assert close(evaluated(lambda x: ct.argmax(x, 1), x), wide.argmax(1), ct.int32)
    assert close(evaluated(ct.argmin, x), wide.argmin(), ct.int32)
    assert close(evaluated(lambda x: ct.cumsum(x, 1), x), wide.cumsum(1), kind)
    assert close(evaluated(lambda x: ct.cumsum(x, 0, reverse=True), x), wide[::-1].cumsum(0)[::-1], kind)


def test_reductions_by_a_function(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (4, 8)).astype(np.int32)
    assert close(evaluated(lambda x: ct.reduce(x, 1, lambda a, b: a + b, 0), x), x.sum(1), ct.int32)
    assert close(
        evaluated(lambda x: ct.scan(x, 1, lambda a, b: max(a, b), 0), x), np.maximum.accumulate(x, 1), ct.int32
    )

    def largest(value, at, other, place):
        wins = (value > other) | ((value == other) & (at < place))
        return ct.where(wins, value, other), ct.where(wins, at, place)

    places = np.arange(8, dtype=np.int32)
    best, at = evaluated(lambda x, p: ct.reduce((x, p), 1, largest, (0, 0)), x, places)
    assert close(best, x.max(1), ct.int32) and close(at, x.argmax(1), ct.int32)


def test_nans_are_left_out_or_win() -> None:
    x = np.array([1.0, np.nan, 3.0, np.nan], np.float32)
    assert evaluated(ct.max, x).data == 3 and evaluated(ct.argmax, x).data == 2
    assert np.isnan(evaluated(lambda x: ct.max(x, propagate_nan=True), x).data)
    assert evaluated(lambda x: ct.argmin(x, propagate_nan=True), x).data == 1
    assert evaluated(lambda x: ct.minimum(x, 2.0), x).data.tolist() == [1, 2, 2, 2]
    assert evaluated(ct.isnan, x).data.tolist() == [False, True, False, True]


def test_shapes(rng: np.random.Generator) -> None:
    x = rng.integers(0, 99, (2, 4, 8)).astype(np.int16)
    kind = ct.int16
    assert close(evaluated(lambda x: x.permute((2, 0, 1)), x), x.transpose(2, 0, 1), kind)
    assert close(evaluated(lambda x: ct.transpose(x, 0, -1), x), x.swapaxes(0, 2), kind)
    assert close(evaluated(lambda x: x.reshape((8, -1)), x), x.reshape(8, 8), kind)
    assert close(evaluated(lambda x: x[:, None, ..., None], x), x[:, None, ..., None], kind)
    assert close(evaluated(lambda x: ct.cat((x, x + 1), 1), x), np.concatenate([x, x + 1], 1), kind)
    assert close(evaluated(lambda x: ct.extract(x, (1, 0, 1), (1, 4, 4)), x), x[1:, :, 4:], kind)
    inserted = x.copy()
    inserted[1, 2:, :4] = 5
    assert close(evaluated(lambda x: x.insert((1, 1, 0), ct.full((1, 2, 4), 5, x.dtype)), x), inserted, kind)
    assert close(evaluated(lambda: ct.astile(((1, 2), (3, 4)), dtype=ct.float16)), [[1, 2], [3, 4]], ct.float16)
    assert close(evaluated(lambda: ct.arange(8, start=7, step=-1, dtype=ct.int32)), np.arange(7, -1, -1), ct.int32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "tfloat32"])
def test_conversions_round_to_nearest_even(rng: np.random.Generator, dtype: str) -> None:
    x = rng.uniform(-4, 4, 64).astype(np.float32)
    kind = getattr(ct, dtype)
    got = evaluated(lambda x: x.astype(kind), x)
    step = {"float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e5m2": 2, "tfloat32": 10}[dtype]
    scale = 2.0 ** (np.floor(np.log2(np.abs(x.astype(np.float64)))) - step)
    smallest = {"float8_e4m3fn": 2.0**-9, "float8_e5m2": 2.0**-16}.get(dtype, 0.0)
    want = np.round(x / np.maximum(scale, smallest)) * np.maximum(scale, smallest)
    assert got.dtype == kind and np.array_equal(got.data, want.astype(np.float32))
    assert evaluated(lambda x: x.astype(kind).astype(ct.float32), x).dtype == ct.float32


def test_floats_become_integers_towards_zero() -> None:
    x = np.array([1.9, -1.9, 1e20, -np.inf], np.float32)
    assert evaluated(lambda x: x.astype(ct.int32), x).data.tolist() == [1, -1, 2**31 - 1, -(2**31)]


def test_bits_as_another_type(rng: np.random.Generator) -> None:
    x = rng.standard_normal(8).astype(np.float32)
    assert close(evaluated(lambda x: ct.bitcast(x, ct.uint32), x), x.view(np.uint32), ct.uint32, 0)
    assert close(evaluated(ct.pack_to_bytes, x), x.view(np.uint8), ct.uint8, 0)
    assert close(evaluated(lambda x: ct.unpack_from_bytes(ct.pack_to_bytes(x), ct.float32), x), x, ct.float32, 0)
    assert evaluated(lambda: ct.bitcast(ct.full((2,), 1.0, ct.bfloat16), ct.uint16)).data.tolist() == [0x3F80] * 2


@pytest.mark.parametrize(
    ("dtype", "accumulator", "bound"),
    [("float16", "float32", 1e-6), ("bfloat16", "float32", 1e-6), ("float8_e4m3fn", "float16", 1e-2),
     ("float64", "float64", 1e-14), ("tfloat32", "float32", 1e-5)],
)  # fmt: skip
def test_products_of_floats(rng: np.random.Generator, dtype: str, accumulator: str, bound: float) -> None:
    x, y, z = (rng.uniform(-1, 1, shape) for shape in ((2, 8, 16), (16, 4), (2, 8, 4)))
    kind, wide = getattr(ct, dtype), getattr(ct, accumulator)

    def product(x, y, z):
        left, right = x.astype(kind), y.astype(kind)
        return left.astype(ct.float64), right.astype(ct.float64), ct.mma(left, right, z.astype(wide))

    left, right, got = evaluated(product, x, y, z)
    assert close(got, left.data @ right.data + z, wide, max(bound, 1e-3 if accumulator == "float16" else 1e-6))


def test_products_of_integers_and_of_vectors(rng: np.random.Generator) -> None:
    x, y = rng.integers(-128, 128, (8, 32)).astype(np.int8), rng.integers(0, 256, (32, 4)).astype(np.uint8)
    got = evaluated(lambda x, y: ct.mma(x, y, ct.full((8, 4), 2**31 - 1, ct.int32)), x, y)
    want = (x.astype(np.int64) @ y + 2**31 - 1).astype(np.int32)
    assert close(got, want, ct.int32, 0)
    a, b = rng.standard_normal(8).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)
    assert close(evaluated(ct.matmul, a, b), a.astype(np.float64) @ b, ct.float32, 1e-5)
    assert close(evaluated(lambda a: a @ a, a), a.astype(np.float64) @ a, ct.float32, 1e-5)


def test_padding(rng: np.random.Generator) -> None:
    x = rng.standard_normal(5).astype(np.float32)
    for mode, want in (("ZERO", 0.0), ("NEG_INF", -np.inf), ("POS_INF", np.inf), ("NAN", np.nan), ("NEG_ZERO", -0.0)):
        got = evaluated(lambda x: x, x, padding=getattr(ct.PaddingMode, mode)).data[5:]
        assert (
            np.array_equal(got, [np.float32(want)] * 3, equal_nan=True) and (np.signbit(got) == np.signbit(want)).all()
        )
    with pytest.raises(gp.DTypeError, match="int32 has no neg_inf"):
        evaluated(lambda x: x, np.ones(5, np.int32), padding=ct.PaddingMode.NEG_INF)


def test_elements_that_nothing_determines_are_followed() -> None:
    x, unknown = np.arange(5, dtype=np.float32), ct.PaddingMode.UNDETERMINED
    mask = [False] * 5 + [True] * 3

    def mask_of(function: Callable[[Any], Any]) -> Any:
        return evaluated(function, x, padding=unknown).undetermined.tolist()

    assert mask_of(lambda x: -x * 2 + 1) == mask and mask_of(lambda x: x > 0) == mask
    assert mask_of(lambda x: ct.cumsum(x)) == mask and mask_of(lambda x: ct.cumsum(x, reverse=True)) == [True] * 8
    assert mask_of(lambda x: ct.scan(x, 0, lambda a, b: a + b, 0)) == mask
    assert mask_of(lambda x: ct.sum(x)) is True and mask_of(lambda x: x[None, :] @ x[:, None]) == [[True]]
    assert mask_of(lambda x: ct.cat((x, ct.zeros((8,), ct.float32)), 0)) == mask + [False] * 8
    assert mask_of(lambda x: x.reshape((2, 4)).transpose()) == np.array(mask).reshape(2, 4).T.tolist()
    assert mask_of(lambda x: ct.pack_to_bytes(x.astype(ct.float16))) == np.repeat(mask, 2).tolist()
    known = ct.ones((1, 8), ct.float32)
    assert mask_of(lambda x: ct.mma(known, x[:, None], ct.zeros((1, 1), ct.float32))) == [[True]]
    assert mask_of(lambda x: ct.mma(x[:, None], ct.ones((1, 2), ct.float32), ct.zeros((8, 2), ct.float32))) == [
        [one] * 2 for one in mask
    ]
    known = evaluated(lambda x: ct.where(ct.arange(8, dtype=ct.int32) < 5, x, 0.0), x, padding=unknown)
    assert known.undetermined is None and known.data.tolist() == [0, 1, 2, 3, 4, 0, 0, 0]
    with pytest.raises(KernelCheckError, match=r"the mask of ct\.gather depends on elements"):

        @ct.kernel
        def masked(x):
            ct.gather(x, 0, mask=ct.sum(ct.load(x, (0,), (8,))) > 0)

        masked.check(1, x)


def test_control_flow_is_pythons(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x):
        total = 0
        for at in range(2, 6, 2):
            assert at.dtype == ct.int32, "known when the kernel runs"
            total = total + at if at > 2 else total - at
        states = ()
        for at in ct.static_iter(range(3)):
            states += (ct.full((1 << at,), at, ct.int32),)
        print(f"{x} {x:.1f}", ct.sum(states[2]))
        return total, len(states), states[2].shape

    total, count, shape = evaluated(body, np.array([1.5, 2.0], np.float32))
    assert (total.data, count, shape) == (2, 3, (4,))
    assert capsys.readouterr().out == "[1.5, 2.0] [1.5, 2.0] 8\n"


def test_types_go_by_many_names() -> None:
    for name, want in (("float16", ct.float16), ("bool", ct.bool_), ("int64", ct.int64)):
        pytorchs = type("dtype", (), {"__module__": "torch", "__str__": lambda self, name=name: f"torch.{name}"})()
        for spelling in (want, gp.zeros(1, name).dtype, np.dtype(name), np.dtype(name).type, pytorchs):
            assert evaluated(lambda spelling=spelling: ct.zeros((2,), spelling)).dtype == want
    for unknown in ("float32", 3, gp.zeros(1, "complex64").dtype):
        with pytest.raises(gp.DTypeError, match="is no type of tiles"):
            evaluated(lambda unknown=unknown: ct.zeros((2,), unknown))


def test_scalars_of_a_launch_have_types(rng: np.random.Generator) -> None:
    types: list[Any] = []

    @ct.kernel
    def kernel(whole, real, flag, wide: ct.ScalarInt64, constant: ct.Constant[int], many: ct.Constant[tuple]):
        types.extend(getattr(one, "dtype", type(one)) for one in (whole, real, flag, wide, constant, many))

    kernel.check(1, 3, 2.5, True, 2**40, 7, (1, 2))
    assert types == [ct.int32, ct.float32, ct.bool_, ct.int64, int, tuple]


def test_views_lists_and_raw_memory(rng: np.random.Generator) -> None:
    x = rng.integers(0, 99, (6, 8)).astype(np.int32)
    parts, out = [x[:3].copy(), x[3:].copy()], np.zeros((4, 8), np.int32)

    @ct.kernel
    def kernel(x, parts, out):
        rows = x.slice(0, 2, 5)
        ct.store(out, (0, 0), ct.load(rows, (1, 0), (2, 8), padding_mode=ct.PaddingMode.ZERO))
        tiles = x.tiled_view((2, 4), traversal_steps=(1, 4))
        ct.static_assert(tiles.tile_shape == (2, 4))
        ct.store(out, (2, 0), tiles.load((1, 1)).extract((0, 0), (1, 4)))
        chosen = parts[ct.bid(0) + 1]
        ct.store(out, (3, 0), ct.load(chosen, (1, 0), (1, 4)))
        x.get_raw_memory().store_offset(ct.arange(2, dtype=ct.int32) * 8, 100)
        tiles.atomic_store_add((4, 0), ct.full((2, 4), 1, ct.int32))
        places = ct.arange(2, dtype=ct.int32) * 2
        ct.store(out, (2, 1), ct.load_advanced_indexing(x, (places, ct.Slice(4, 4))).extract((1, 0), (1, 4)))

    before = x.copy()
    kernel.check(1, x, parts, out)
    assert np.array_equal(out[0], before[4]) and not out[1].any()
    assert np.array_equal(out[2], np.concatenate([before[1, 4:], before[2, 4:]])) and np.array_equal(
        out[3, :4], before[4, :4]
    )
    want = before.copy()
    want[:2, 0] = 100
    want[4:6, :4] += 1
    assert np.array_equal(x, want)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("xchg", "float32"),
        ("add", "float64"),
        ("add", "float16"),
        ("max", "int32"),
        ("min", "uint64"),
        ("xor", "int64"),
    ],
)
def test_atomic_operations_give_what_was_there(rng: np.random.Generator, name: str, dtype: str) -> None:
    x, value = (rng.integers(0, 50, 8).astype(dtype) for _ in range(2))
    before, old = x.copy(), np.zeros(8, dtype)
    operation = getattr(ct, f"atomic_{name}")

    @ct.kernel
    def kernel(x, value, old):
        at = ct.arange(8, dtype=ct.int32)
        ct.store(old, (0,), operation(x, at, ct.load(value, (0,), (8,))))

    kernel.check(1, x, value, old)
    function = {"xchg": lambda a, b: b, "add": np.add, "max": np.maximum, "min": np.minimum, "xor": np.bitwise_xor}[
        name
    ]
    assert np.array_equal(old, before) and np.array_equal(x, function(before, value))


def test_masks_choose_what_is_loaded_and_stored() -> None:
    x, out = np.arange(8, dtype=np.int32), np.full(8, 77, np.int32)

    @ct.kernel
    def kernel(x, out):
        at = ct.arange(8, dtype=ct.int32)
        ct.scatter(out, at + 1, ct.gather(x, at, mask=at % 2 == 0, padding_value=-at), mask=at != 2)

    kernel.check(1, x, out)
    assert out.tolist() == [77, 0, -1, 77, -3, 4, -5, 6]


def test_a_place_named_twice_is_changed_twice() -> None:
    x, old = np.zeros(2, np.int32), np.zeros(8, np.int32)

    @ct.kernel
    def kernel(x, old):
        at = ct.arange(8, dtype=ct.int32) % 4
        ct.store(old, (0,), ct.atomic_add(x, at, 1))
        ct.atomic_cas(x, ct.arange(2, dtype=ct.int32), 2, 5)

    kernel.check(1, x, old)
    assert x.tolist() == [5, 5] and old.tolist() == [0, 0, 0, 0, 1, 1, 0, 0]


def test_every_name_of_the_stand_in_is_reachable() -> None:
    assert {"load", "store", "gather", "scatter", "mma", "matmul", "PaddingMode", "Constant", "float8_e5m2"} <= set(
        dir(ct)
    )
    assert set(dir(gp.cutile)) >= {"Kernel", "ct", "cutile_available", "get_cutile", "launch"}
    with pytest.raises(AttributeError, match="no attribute 'kernels'"):
        _ = gp.cutile.kernels
