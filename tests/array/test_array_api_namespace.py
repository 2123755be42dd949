"""The array API namespace beside its functions: types, constants, what arrays and the namespace say, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from array_api_help import ALL, INEXACT, INTEGERS, strict

import pygpukit as gp
from pygpukit import array_api as xp

pytestmark = pytest.mark.usefixtures("backend_name")


def test_limits_of_types() -> None:
    for name in INEXACT:
        ours, theirs = xp.finfo(getattr(xp, name)), strict.finfo(getattr(strict, name))
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, field) == getattr(theirs, field), (name, field)
        assert ours.dtype.name == str(theirs.dtype).rpartition(".")[2]
    for name in INTEGERS:
        ours, theirs = xp.iinfo(getattr(xp, name)), strict.iinfo(getattr(strict, name))
        assert (ours.bits, ours.max, ours.min, ours.dtype.name) == (theirs.bits, theirs.max, theirs.min, name)
    assert xp.finfo(gp.bfloat16).max == 3.3895313892515355e38 and xp.finfo(gp.ones(1, "float16")).bits == 16
    for call_it in (lambda: xp.finfo(xp.int8), lambda: xp.iinfo(xp.float32)):
        with pytest.raises(gp.DTypeError):
            call_it()


def test_kinds_and_casts_of_types() -> None:
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for name in ALL:
        for kind in [*kinds, ("bool", "integral")]:
            assert xp.isdtype(getattr(xp, name), kind) == strict.isdtype(getattr(strict, name), kind)
        for other in ALL:
            wanted = strict.can_cast(getattr(strict, name), getattr(strict, other))
            assert xp.can_cast(getattr(xp, name), getattr(xp, other)) == wanted, (name, other)
            assert xp.isdtype(getattr(xp, name), getattr(xp, other)) == (name == other)
    with pytest.raises(ValueError, match="unknown"):
        xp.isdtype(xp.int8, "whole")
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type(1, 2.5)


def test_constants() -> None:
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (strict.e, strict.pi, strict.inf, None) and xp.nan != xp.nan


def test_namespace_info() -> None:
    ours, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert set(ours.capabilities()) == set(theirs.capabilities())
    assert ours.default_device() in ours.devices()
    assert {k: d.name for k, d in ours.default_dtypes().items()} == {
        k: str(d).rpartition(".")[2] for k, d in theirs.default_dtypes().items()
    }
    for kind in (None, "bool", "integral", "real floating", ("complex floating", "signed integer")):
        assert set(ours.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind))


def test_arrays_name_their_namespace() -> None:
    x = gp.ones((2, 3))
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2025.12")
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match=r"2021\.12"):
        x.__array_namespace__(api_version="2021.12")
    with pytest.raises(AttributeError, match="sparse"):
        xp.sparse
    assert x.mT.shape == (3, 2) and x.device in xp.__array_namespace_info__().devices()
    with pytest.raises(gp.ShapeError, match="mT"):
        gp.ones(3).mT


def test_from_dlpack_of_the_namespace() -> None:
    x = gp.ones(3)
    assert xp.from_dlpack(x).device_ptr == x.device_ptr
    assert xp.from_dlpack(np.arange(3), device=0).to_numpy().tolist() == [0, 1, 2]


def test_bad_arguments_are_refused_by_name() -> None:
    x = gp.ones((2, 3))
    for call_it, message in (
        (lambda: xp.tensordot(x, x, axes=1), "tensordot"),
        (lambda: xp.vecdot(x, gp.ones(4)), "vecdot"),
        (lambda: xp.vecdot(x, x, axis=0), "vecdot"),
        (lambda: xp.diff(x, n=-1), "negative"),
        (lambda: xp.take(x, gp.asarray([0])), "axis"),
        (lambda: xp.nonzero(gp.ones(())), "0-d"),
        (lambda: xp.where(x, x, x), "condition"),
        (lambda: xp.astype(gp.ones(2, "complex64"), xp.float32), "complex"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call_it()
    with pytest.raises(gp.DeviceMismatchError):
        xp.zeros(3, device=9)
