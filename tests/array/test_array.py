"""GPUArray against NumPy: attributes, views, assignment, conversion, printing; on both backends."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY

pytestmark = pytest.mark.usefixtures("backend_name")

SHAPES = [(), (1,), (7,), (0,), (3, 5), (2, 0, 3), (4, 1, 6), (2, 3, 4, 5)]
KEYS = [
    ...,
    None,
    0,
    -1,
    slice(None),
    slice(1, None, 2),
    slice(None, None, -1),
    slice(-2, 0, -2),
    slice(5, 2),
    (0, slice(None, None, -2)),
    (..., 1),
    (slice(1, 3), None, ..., slice(None, None, 2)),
    (-1, ..., slice(None, None, -1)),
    (slice(2, 2), ...),
]


def numbers(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"]
)
def test_round_trip_and_attributes(shape: tuple[int, ...], dtype: str) -> None:
    host = numbers(shape).astype(dtype)
    x = gp.from_numpy(host)
    np.testing.assert_array_equal(x.to_numpy(), host)
    assert (x.shape, x.strides, x.ndim, x.size) == (host.shape, gp.from_numpy(host).strides, host.ndim, host.size)
    assert (x.itemsize, x.nbytes, x.dtype, x.dtype.name) == (host.itemsize, host.nbytes, host.dtype, dtype)
    assert x.is_contiguous()
    assert x.on_gpu
    assert x.to_numpy().flags.owndata, "to_numpy() copies"


def test_from_numpy_takes_any_layout_and_byte_order() -> None:
    base = numbers((6, 8))
    for host in (base.T, base[::2, ::-3], np.asfortranarray(base), base.astype(">f4"), base[3]):
        x = gp.from_numpy(host)
        np.testing.assert_array_equal(x.to_numpy(), host)
        assert x.is_contiguous()


def test_from_numpy_does_not_follow_the_host_array() -> None:
    host = numbers((100,))
    x = gp.from_numpy(host)
    host[:] = -1
    assert x[3].item() == 3


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([object()]), np.zeros(2, "M8[s]"), np.zeros(2, "f4,i4")])
def test_from_numpy_refuses_types_without_counterpart(bad: np.ndarray[Any, Any]) -> None:
    with pytest.raises(gp.DTypeError, match="is not supported; use one of bool, int8"):
        gp.from_numpy(bad)


def test_from_numpy_refuses_what_is_not_numpy() -> None:
    with pytest.raises(gp.DTypeError, match="asarray"):
        gp.from_numpy([1, 2])


@pytest.mark.parametrize("shape", [(), (6,), (3, 4), (3, 4, 5)])
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing_is_numpys_and_a_view(shape: tuple[int, ...], key: Any) -> None:
    host = numbers(shape)
    x = gp.from_numpy(host)
    try:
        expected = host[key]
    except IndexError:
        with pytest.raises(IndexError):
            x[key]
        return
    found = x[key]
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found.to_numpy(), expected)
    if found.size:
        found[...] = -5
        host[key] = -5
        np.testing.assert_array_equal(x.to_numpy(), host)


@pytest.mark.parametrize("key", [1.5, "a", (0, 2.0), [0.5], np.ones(2)])
def test_other_keys_are_refused_by_name(key: Any) -> None:
    with pytest.raises(IndexError, match="integers"):
        gp.ones((2, 2))[key]


def test_index_errors_name_axis_and_size() -> None:
    with pytest.raises(IndexError, match="index 5 is out of range for axis 1 with size 3"):
        gp.ones((2, 3))[0, 5]
    with pytest.raises(IndexError, match="too many indices: the array has 2 dimensions, 3 were indexed"):
        gp.ones((2, 3))[0, 0, 0]


@pytest.mark.parametrize("key", [(slice(None, None, 2),), (..., -1), (slice(None), slice(None, None, -1)), 1])
def test_assignment_broadcasts_and_converts(key: Any) -> None:
    host = numbers((4, 6))
    x = gp.from_numpy(host)
    value = np.arange(host[key].shape[-1], dtype=np.int32)
    x[key] = gp.from_numpy(value)
    host[key] = value
    np.testing.assert_array_equal(x.to_numpy(), host)
    x[key] = 2.5
    host[key] = 2.5
    np.testing.assert_array_equal(x.to_numpy(), host)
    x[key] = np.float64(0.1)
    host[key] = np.float64(0.1)
    np.testing.assert_array_equal(x.to_numpy(), host)


def test_assignment_between_overlapping_views() -> None:
    host = numbers((50,))
    x = gp.from_numpy(host)
    x[1:] = x[:-1]
    host[1:] = host[:-1].copy()
    np.testing.assert_array_equal(x.to_numpy(), host)
    x[...] = x[::-1]
    np.testing.assert_array_equal(x.to_numpy(), host[::-1])


def test_assignment_refuses_host_arrays_and_wrong_shapes() -> None:
    x = gp.ones((2, 3))
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        x[0] = np.ones(3, np.float32)
    with pytest.raises(gp.ShapeError, match=r"\(2,\).*\(2, 3\)"):
        x[...] = gp.ones((2,))
    with pytest.raises(gp.ShapeError):
        x[0] = gp.ones((2, 3))
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        gp.zeros(3, "uint8")[:] = 300


def test_integer_assignment_truncates_as_numpy_does() -> None:
    x = gp.zeros(3, "int32")
    x[...] = -2.7
    assert x.to_numpy().tolist() == [-2, -2, -2]


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2), (4, 0), (1, 12)])
def test_reshape_and_view(shape: tuple[int, ...]) -> None:
    host = numbers(shape)
    x = gp.from_numpy(host)
    for target in [(-1,), host.shape[::-1], (host.size, 1), (1, -1) if host.size else (0, 7)]:
        np.testing.assert_array_equal(x.reshape(target).to_numpy(), host.reshape(target))
        np.testing.assert_array_equal(x.reshape(*target).to_numpy(), host.reshape(target))
        assert x.view(target).device_ptr == x.device_ptr
    np.testing.assert_array_equal(x.T.reshape(-1).to_numpy(), host.T.reshape(-1))


def test_reshape_copies_only_when_it_must() -> None:
    x = gp.from_numpy(numbers((4, 6)))
    assert x.reshape(2, 2, 6).block == x.block
    assert x[:, ::2].reshape(2, 2, 3).block == x.block
    assert x.T.reshape(24).block != x.block
    with pytest.raises(gp.ShapeError, match="without a copy"):
        x.T.view((24,))
    with pytest.raises(gp.ShapeError, match=r"\(5, 5\) holds 25 elements, the array has 24"):
        x.reshape(5, 5)
    with pytest.raises(gp.ShapeError, match="do not fill"):
        x.reshape(5, -1)


def test_transpose_and_permute() -> None:
    host = numbers((2, 3, 4))
    x = gp.from_numpy(host)
    np.testing.assert_array_equal(x.T.to_numpy(), host.T)
    for axes in itertools.permutations(range(3)):
        np.testing.assert_array_equal(x.transpose(*axes).to_numpy(), host.transpose(axes))
        np.testing.assert_array_equal(x.permute(axes).to_numpy(), host.transpose(axes))
    np.testing.assert_array_equal(x.transpose(0, -1, 1).to_numpy(), host.transpose(0, 2, 1))
    assert x.T.block == x.block
    for bad in ((0, 1), (0, 0, 1), (0, 1, 3)):
        with pytest.raises(gp.ShapeError, match="transpose"):
            x.transpose(*bad)


def test_narrow_and_slice_rows_are_views() -> None:
    x = gp.from_numpy(numbers((4, 3)))
    assert x.narrow(4, 5).to_numpy().tolist() == [4, 5, 6, 7, 8]
    assert x.narrow(4, 5).block == x.block
    np.testing.assert_array_equal(x.slice_rows(2).to_numpy(), numbers((4, 3))[:2])
    with pytest.raises(gp.ShapeError, match="10 to 15 is not inside 0 to 12"):
        x.narrow(10, 5)
    with pytest.raises(gp.ShapeError):
        x.slice_rows(5)


def test_contiguous_and_clone() -> None:
    host = numbers((5, 4))
    x = gp.from_numpy(host)
    assert x.contiguous() is x
    turned = x.T.contiguous()
    assert turned.is_contiguous()
    assert not x.T.is_contiguous()
    np.testing.assert_array_equal(turned.to_numpy(), host.T)
    backwards = x[::-1].clone()
    x.fill(0)
    np.testing.assert_array_equal(backwards.to_numpy(), host[::-1])


def test_copy_module_clones_and_pickle_refuses() -> None:
    x = gp.from_numpy(numbers((3, 4)))
    for made in (copy.copy(x), copy.deepcopy({"x": x})["x"]):
        assert made.block != x.block
        np.testing.assert_array_equal(made.to_numpy(), x.to_numpy())
    with pytest.raises(TypeError, match="to_numpy"):
        pickle.dumps(x)


COMPUTE = [dtype.name for dtype in DTYPES if dtype not in STORAGE_ONLY and dtype != "bfloat16"]


@pytest.mark.parametrize("source", COMPUTE)
@pytest.mark.parametrize("target", COMPUTE)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_astype_is_numpys(source: str, target: str) -> None:
    host = np.array([0, 1, 2, 3, 100, 7, 0.5 if np.dtype(source).kind in "fc" else 5] * 3).astype(source).reshape(3, 7)
    x = gp.from_numpy(host)
    for view, expected in ((x, host), (x.T, host.T), (x[:, ::-2], host[:, ::-2])):
        found = view.astype(target)
        assert found.dtype == target
        assert found.is_contiguous()
        np.testing.assert_array_equal(found.to_numpy(), expected.astype(target))
    assert x.astype(source).block != x.block, "astype() copies, also to the same type"


def test_bfloat16_rounds_to_nearest_even_and_shows_as_bits() -> None:
    host = np.array([0.0, -0.0, 1.0, 1.00390625, 1.01171875, -3.14159, 3.4e38, np.inf, -np.inf, 1e-40], np.float32)
    x = gp.from_numpy(host).astype("bfloat16")
    bits = x.to_numpy()
    assert bits.dtype == np.uint16
    whole = host.view(np.uint32).astype(np.uint64)
    assert bits.tolist() == ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16).tolist()
    back = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(x.astype("float32").to_numpy(), back)
    assert np.isnan(gp.from_numpy(np.array([np.nan], np.float32)).astype("bfloat16").astype("float64").to_numpy()).all()
    np.testing.assert_array_equal(gp.from_numpy(bits).view("bfloat16").astype("float32").to_numpy(), back)
    assert gp.from_numpy(bits).dtype == "uint16", "uint16 is uint16"


def test_storage_types_do_not_compute() -> None:
    bits = np.arange(12, dtype=np.uint8).reshape(3, 4)
    x = gp.from_numpy(bits).view("float8_e4m3")
    np.testing.assert_array_equal(x.T.clone().to_numpy(), bits.T)
    assert x[0, 3].item() == 3 * 2.0**-9
    for refused in (lambda: x + x, lambda: gp.full(2, 1, "int4")):
        with pytest.raises(gp.DTypeError, match="storage type"):
            refused()


def test_view_reinterprets_bits() -> None:
    host = np.array([1.0, -2.5], np.float32)
    np.testing.assert_array_equal(gp.from_numpy(host).view("int32").to_numpy(), host.view(np.int32))
    assert gp.from_numpy(host).view(gp.float64).to_numpy().tobytes() == host.tobytes()
    with pytest.raises(gp.ShapeError, match="4 bytes, float64 has 8"):
        gp.from_numpy(np.ones(3, np.float32)).view(gp.float64)


def test_python_numbers() -> None:
    assert gp.full((), 2.5, "float32").item() == 2.5
    assert float(gp.full((1, 1), 3)) == 3.0
    assert int(gp.full((), -7, "int8")) == -7
    assert complex(gp.full((), 1 + 2j)) == 1 + 2j
    assert bool(gp.full((), 1)) is True
    assert [10, 20, 30][gp.full((), 1, "int64")] == 20
    assert gp.full((), 0.1, "bfloat16").item() == 0.10009765625
    assert gp.full((), 1e6, "float16").item() == float("inf")
    with pytest.raises(gp.ShapeError, match="ambiguous"):
        bool(gp.ones(2))
    with pytest.raises(gp.ShapeError, match="2 elements"):
        gp.ones(2).item()
    with pytest.raises(TypeError, match="0-d integer"):
        range(gp.ones(1))


def test_len_and_iteration() -> None:
    host = numbers((3, 2))
    x = gp.from_numpy(host)
    assert len(x) == 3
    for row, expected in zip(x, host, strict=True):
        np.testing.assert_array_equal(row.to_numpy(), expected)
    with pytest.raises(TypeError, match="0-d"):
        len(gp.zeros(()))


def test_numpy_never_converts_implicitly() -> None:
    x = gp.ones(3)
    for convert in (np.asarray, np.array, lambda a: np.add(a, np.ones(3))):
        with pytest.raises(TypeError):
            convert(x)
    with pytest.raises(TypeError, match=re.escape(".to_numpy()")):
        np.asarray(x)


def test_last_access_advances_with_use() -> None:
    x = gp.ones(3)
    first = x.last_access
    assert 0 < first <= _core.now_ns() * 1e-9
    x += 1
    assert x.last_access > first
    assert x[1:].last_access == x.last_access, "views share their memory's"


def test_hash_is_identity() -> None:
    x, y = gp.ones(2), gp.ones(2)
    assert len({x, y, x}) == 2


@pytest.mark.parametrize(
    "shape",
    [(), (0,), (3,), (1000,), (1001,), (50, 60), (3, 400), (40, 40, 40), (9,) * 4, (7,) * 6, (3,) * 12, (2,) * 14],
)
def test_repr_copies_little(shape: tuple[int, ...]) -> None:
    x = gp.zeros(shape, "float64")
    before = _core.counters()["d2h_bytes"]
    text = repr(x)
    assert _core.counters()["d2h_bytes"] - before <= 10_000 * 8
    assert f"shape={shape}, dtype=float64, backend={gp.backend()}" in text
    assert hex(x.device_ptr)[2:] not in text


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2000,), (100, 200), (8, 300), (20, 30, 40)])
def test_repr_shows_what_numpy_shows(shape: tuple[int, ...]) -> None:
    host = numbers(shape, "int64")
    body = np.array2string(host, separator=", ", prefix="GPUArray(", threshold=1000)
    assert repr(gp.from_numpy(host)).startswith(f"GPUArray({body}")
    np.testing.assert_equal("..." in repr(gp.from_numpy(host)), host.size > 1000)


def test_repr_of_types_numpy_lacks() -> None:
    assert "1.5" in repr(gp.full(2, 1.5, "bfloat16"))
    assert "dtype=float8_e5m2" in repr(gp.zeros(2, "float8_e5m2"))


def test_repr_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gp.ones(3)

    def fail(*_: Any) -> None:
        raise gp.DriverError("launch failed", 719, "CUDA_ERROR_LAUNCH_FAILED")

    monkeypatch.setattr(_core.native, "copy_to_host", fail)
    assert repr(x).startswith("GPUArray(<values not readable: DriverError>, shape=(3,)")


def test_array_interface_is_cudas_only() -> None:
    x = gp.from_numpy(numbers((4, 6)))
    if gp.backend() == "sim":
        assert not hasattr(x, "__cuda_array_interface__")
        return
    facts = x.__cuda_array_interface__
    assert (facts["version"], facts["shape"], facts["typestr"]) == (3, (4, 6), "<f4")
    assert facts["strides"] is None
    assert facts["data"] == (x.device_ptr, False)
    assert facts["stream"] != 0
    assert x.T.__cuda_array_interface__["strides"] == (4, 24)
    assert not hasattr(x.astype("bfloat16"), "__cuda_array_interface__")


# ---- factories ----


@pytest.mark.parametrize("shape", [3, (), (0, 4), (2, 3)])
@pytest.mark.parametrize("dtype", [dtype.name for dtype in DTYPES if dtype not in STORAGE_ONLY])
def test_zeros_ones_full(shape: Any, dtype: str) -> None:
    for array, value in ((gp.zeros(shape, dtype), 0), (gp.ones(shape, dtype=dtype), 1), (gp.full(shape, 1, dtype), 1)):
        assert array.dtype == dtype
        expected = np.full(shape, value, "float64")
        np.testing.assert_array_equal(array.astype("float64").to_numpy(), expected)
    assert gp.zeros(shape).dtype == gp.float32


def test_empty_is_the_compiled_function() -> None:
    assert gp.empty is _core.native.empty
    x = gp.empty((2, 3), dtype=gp.int16)
    assert isinstance(x, gp.GPUArray)
    assert (x.shape, x.dtype) == ((2, 3), "int16")
    assert gp.GPUArray((2, 3)).shape == (2, 3)
    assert gp.empty(shape=5, dtype=np.float64).nbytes == 40


def test_like_factories() -> None:
    x = gp.from_numpy(numbers((3, 4), "int32"))[:, ::2]
    for made, value in ((gp.zeros_like(x), 0), (gp.ones_like(x), 1), (gp.full_like(x, 9), 9)):
        np.testing.assert_array_equal(made.to_numpy(), np.full((3, 2), value, np.int32))
    assert gp.empty_like(x, "float16").dtype == "float16"


@pytest.mark.parametrize("args", [(5,), (2, 9), (9, 2, -2), (0, 1, 0.25), (3.5,), (0,)])
def test_arange(args: tuple[float, ...]) -> None:
    expected = np.arange(*args)
    np.testing.assert_array_equal(gp.arange(*args).to_numpy(), expected)
    assert gp.arange(*args).dtype == expected.dtype
    assert gp.arange(*args, dtype="float32").dtype == "float32"


def test_asarray() -> None:
    x = gp.ones(3)
    assert gp.asarray(x) is x
    assert gp.asarray(x, "float64").dtype == "float64"
    assert gp.asarray([[1, 2], [3, 4]]).to_numpy().tolist() == [[1, 2], [3, 4]]
    assert gp.asarray(2.5).item() == 2.5
    assert gp.asarray([1, 2], dtype="bfloat16").dtype == "bfloat16"
    with pytest.raises(gp.DTypeError):
        gp.asarray(["a"])


def test_factory_errors() -> None:
    with pytest.raises(gp.DTypeError, match="'floaty' is not supported"):
        gp.zeros(3, "floaty")
    with pytest.raises(gp.ShapeError, match="-1"):
        gp.zeros((2, -1))
    with pytest.raises(OverflowError):
        gp.full(2, 2**40, "int32")
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary part of 1j is lost"):
        assert gp.full(2, 1j, "float32").tolist() == [0.0, 0.0]
