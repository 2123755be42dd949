"""Arrays on Dask's wire: every type and layout keeps its bits, alone and inside of other objects."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from alone import alone

import pygpukit as gp

pytest.importorskip("distributed", reason="extra dask")

SHAPES = [(), (0,), (3, 0, 5), (1,), (7,), (2, 3, 5), (129, 3)]


def bits(array: gp.GPUArray) -> bytes:
    out = bytearray(array.nbytes)
    if out:
        array._copy_to_host(out)
    return bytes(out)


def over_the_wire(thing):
    from distributed.protocol import deserialize, serialize

    header, frames = serialize(thing)
    return deserialize(header, [bytes(frame) for frame in frames])


def every_type() -> None:
    from pygpukit.core import dtypes
    from pygpukit.dask import register

    register()
    rng = np.random.default_rng()
    types = [one for one in vars(dtypes).values() if isinstance(one, gp.DataType)]
    assert len(types) > 15
    for dtype in types:
        for shape in SHAPES:
            array = gp.empty(shape, dtype)
            if array.nbytes:
                gp._core.native.copy_from_host(array, rng.integers(0, 2, array.nbytes, np.uint8))  # a bool's, too
            back = over_the_wire(array)
            assert (back.shape, back.dtype, bits(back)) == (array.shape, array.dtype, bits(array))


def every_layout() -> None:
    from dask.sizeof import sizeof
    from distributed.protocol import serialize

    from pygpukit.dask import register

    register()
    host = np.random.default_rng().standard_normal((6, 5, 4)).astype(np.float32)
    x = gp.from_numpy(host)
    views = [(x.T, host.T), (x[::2, 1:, ::-1], host[::2, 1:, ::-1]), (x[3], host[3]), (x[:, 2, 1], host[:, 2, 1])]
    for view, want in views:
        back = over_the_wire(view)
        np.testing.assert_array_equal(back.to_numpy(), want)
        assert back.is_contiguous()
    nested = over_the_wire({"a": [x, (x[0], 3)], "b": len})
    np.testing.assert_array_equal(nested["a"][1][0].to_numpy(), host[0])
    _, frames = serialize(x)
    assert max(memoryview(frame).nbytes for frame in frames) == host.nbytes  # beside the pickle, not inside
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(x, protocol)).to_numpy(), host)
    assert sizeof(x) == sizeof(x.T) == host.nbytes
    assert copy.copy(x).device_ptr != x.device_ptr  # by the device, still


def only_after_register() -> None:
    with pytest.raises(TypeError, match=r"pickle \.to_numpy\(\) instead, or, for Dask, call gp\.dask\.register\(\)"):
        pickle.dumps(gp.ones(3))
    import pygpukit.dask as gpd

    class Worker: ...

    gpd.dask_setup(Worker())
    assert pickle.loads(pickle.dumps(gp.ones(3))).to_numpy().tolist() == [1, 1, 1]


def test_every_type_and_shape_keeps_its_bits() -> None:
    alone(__file__, "every_type")


def test_views_and_nested_arrays_arrive_contiguous() -> None:
    alone(__file__, "every_layout")


def test_arrays_are_pickled_only_where_that_was_asked_for() -> None:
    alone(__file__, "only_after_register")
