"""Errors of operations have a type, name the operation, what was given and what helps; nothing is launched first."""

from __future__ import annotations

import gc
import inspect
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from public_operations import call_of, expression, operations

import pygpukit as gp
from pygpukit import _core
from pygpukit.memory import set_limit

pytestmark = pytest.mark.usefixtures("backend_name")

REMEDIES = ("use ", "reshape", "must be", "make ", "convert", "copy ", "drop ", "give ", "call ", "free ", "transpose")

NO_BROADCAST = ("matmul", "matmul_fp8", "matmul_int8", "dot", "outer", "where", "logaddexp", "kron", "convolve")


def binary() -> list[str]:
    """Operations that broadcast two arrays: those that take (x, row)."""
    found = []
    for name in operations():
        parameters = inspect.unwrap(getattr(gp, name)).__code__.co_varnames[:2]
        if parameters == ("a", "b") and name not in NO_BROADCAST:
            found.append(name)
    return found


def failure(call: Callable[[], object]) -> Exception:
    """What the call raised, before anything ran on the device."""
    gp.synchronize()
    before = _core.counters()
    with pytest.raises(gp.GPUError) as caught:
        call()
    after = _core.counters()
    assert (after["launches"], after["host_launches"]) == (before["launches"], before["host_launches"])
    return caught.value


@pytest.mark.parametrize("name", binary())
def test_shapes_that_do_not_broadcast(name: str) -> None:
    types = "i" if "bit" in name or "shift" in name else "mask" if "logical" in name else "x"
    error = failure(expression(f"gp.{name}({types}, {types}[:5, :3])"))
    text = str(error)
    assert isinstance(error, gp.ShapeError) and isinstance(error, ValueError)
    assert "(12, 16)" in text and "(5, 3)" in text and any(remedy in text for remedy in REMEDIES), text


@pytest.mark.parametrize("name", operations())
def test_host_arrays_are_refused_by_name(name: str) -> None:
    error = failure(expression(HOST_CALLS.get(name) or f"gp.{name}(*[host] * {required(name)})"))
    text = str(error)
    assert isinstance(error, (gp.DTypeError, gp.ShapeError, gp.InvalidSpecError)), (type(error), text)
    assert "ndarray" in text and any(remedy in text for remedy in REMEDIES), text


HOST_CALLS = {"clamp": "gp.clamp(host, -1, 1)", "clip": "gp.clip(host, -1, 1)"}  # a bound is asked for first


def required(name: str) -> int:
    """How many positional arguments an operation wants at least."""
    function = inspect.unwrap(getattr(gp, name))
    return max(function.__code__.co_argcount - len(function.__defaults__ or ()), 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("gp.add(x, y, out=row)", ("add", "(16,)", "(12, 16)")),
        ("gp.matmul(x, y)", ("matmul", "(12, 16)", "transpose")),
        ("x.reshape(7, 3)", ("reshape", "(7, 3)", "192")),
        ("x.T.view((16 * 12,))", ("view", "contiguous")),
        ("x.transpose(0, 0)", ("transpose", "(0, 0)", "2 axes")),
        ("x.__setitem__(0, y)", ("(12, 16)", "(16,)")),
    ],
)
def test_shape_errors_name_what_does_not_fit(call: str, words: tuple[str, ...]) -> None:
    error = failure(expression(call))
    assert isinstance(error, gp.ShapeError)
    for word in words:
        assert word in str(error), str(error)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("gp.add(c, c, out=x)", ("add", "complex64", "float32", "astype")),
        ("gp.sub(mask, mask)", ("bool", "astype")),
        ("gp.empty(3, 'float31')", ("float31", "float32")),
        ("gp.add(x.view('int32').view('uint32'), gp.zeros((12, 16), 'float8_e5m2'))", ("float8_e5m2",)),
    ],
)
def test_dtype_errors_name_type_and_way_out(call: str, words: tuple[str, ...]) -> None:
    error = failure(expression(call))
    assert isinstance(error, gp.DTypeError) and isinstance(error, TypeError)
    for word in words:
        assert word in str(error), str(error)


def test_out_of_memory_names_figures_and_owners() -> None:
    gc.collect()  # the error names the largest owners, which are not those that earlier tests left
    x, wide, tall = gp.ones(1 << 20), gp.ones((1, 20_000)), gp.ones((20_000, 1))
    x.name = "the large one"
    nbytes = 20_000 * 20_000 * x.itemsize
    limit = min(_core.pool_stats(0).reserved, nbytes // 2)
    set_limit(limit)
    try:
        with pytest.raises(gp.OutOfMemoryError) as caught:
            gp.add(wide, tall)
    finally:
        set_limit(None)
    error = caught.value
    assert isinstance(error, MemoryError)
    assert error.requested >= nbytes and error.limit == limit
    assert "the large one" in [owner[2] for owner in error.owners]
    assert "asked for 1.5 GiB" in str(error) and "'the large one'" in str(error) and "del x" in str(error)
    np.testing.assert_array_equal(gp.add(x, 1)[:3].to_numpy(), [2, 2, 2])  # works on


DEVICES = """
import pygpukit as gp
from pygpukit._core import native
from public_operations import call_of, operations, names
names()
native.set_device(0)
calls = {name: call_of(name) for name in operations()}
native.set_device(1)
silent = []
for name, call in calls.items():
    try:
        call()
        silent.append(name)
    except gp.DeviceMismatchError as error:
        if "device 0" not in str(error) or "device 1" not in str(error):
            silent.append(str(error))
print(",".join(silent))
"""


def test_arrays_of_another_device_are_refused_by_number() -> None:
    if gp.backend() != "sim":
        pytest.skip("two devices are simulated")
    done = subprocess.run(
        [sys.executable, "-c", DEVICES],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYGPUKIT_SIM": "devices=2", "PYTHONPATH": ":".join(sys.path)},
    )
    # Views touch no memory, whatever their device is; so do types and shapes.
    assert set(done.stdout.strip().split(",")) <= VIEWS, done.stdout


VIEWS = {"", "broadcast_arrays", "broadcast_to", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "imag"}
VIEWS |= {"matrix_transpose", "moveaxis", "permute", "permute_dims", "ravel", "real", "reshape", "rot90", "split"}
VIEWS |= {"squeeze", "swapaxes", "transpose", "unstack", "array_split", "atleast_1d", "atleast_2d", "atleast_3d"}


def test_every_operation_has_a_call() -> None:
    for name in operations():
        call_of(name)
