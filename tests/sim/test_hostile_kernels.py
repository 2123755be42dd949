"""No kernel source ends the process or starts another: each ends as an error, and the device works on."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import hostile_kernels
import pytest
from hostile_kernels import C_LIBRARY, CASES, ENDLESS

import pygpukit as gp


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[str, str]]:
    return hostile_kernels.run_all(list(CASES))


def test_every_hostile_kernel_ends_as_an_error(found: dict[str, tuple[str, str]]) -> None:
    otherwise = {name: end for name, end in found.items() if end[0] != CASES[name][0]}
    assert otherwise == {}
    assert len(found) + len(C_LIBRARY) > 120


def test_each_function_of_the_c_library_is_refused_by_name_and_line(found: dict[str, tuple[str, str]]) -> None:
    text = found["calls of the C library"][1]
    for name, (declaration, _) in C_LIBRARY.items():
        plain = declaration.replace("(*signal(", "signal(").replace("__attribute__((weak)) ", "")
        called = re.search(r"\b(\w+)\(", plain)
        assert called is not None
        assert f"{called[1]}() is no function of a device" in text, name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("local array, a little", "past the end of a local array"),
        ("local array, upwards", "illegal memory access"),
        ("double free", "no block in use"),
        ("free inside a block", "no block in use"),
        ("recursion", "stack overflow"),
        ("recursion that prints", "stack overflow"),
        ("a huge local array", "stack overflow"),
        ("one by zero", "integer division by zero"),
        ("a pure virtual function", "pure virtual"),
        ("destructor", "dynamic initialization"),
    ],
)
def test_what_is_told(found: dict[str, tuple[str, str]], name: str, words: str) -> None:
    assert words in found[name][1]


def test_the_least_integer_by_minus_one_is_the_least_integer(found: dict[str, tuple[str, str]]) -> None:
    assert found["the least integer"][1].startswith("[-2147483648, 0, 0, 0, ")


def test_a_fault_names_its_line(found: dict[str, tuple[str, str]]) -> None:
    for name in ("double free", "one by zero", "assert", "null pointer"):
        assert re.search(r"kernel:\d+", found[name][1]), name


@pytest.mark.parametrize("name", list(ENDLESS))
def test_an_endless_kernel_is_ended_by_the_time_limit(name: str) -> None:
    code = f"""
import contextlib, io
import pygpukit as gp
o = gp.zeros(8, dtype="int32")
k = gp.jit({"__global__ void k(int* o) { " + ENDLESS[name] + " }"!r})
with contextlib.redirect_stdout(io.StringIO()):
    try:
        k[1, 32](o)
        gp.synchronize()
    except gp.DriverError as error:
        text = str(error)
print(text, gp.ones(3).sum().item())
"""
    environment = {**os.environ, "PYGPUKIT_BACKEND": "sim", "PYGPUKIT_SIM_TIMEOUT_S": "0.3"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=environment, check=False
    )
    assert "ended" in done.stdout and "3.0" in done.stdout, done.stdout + done.stderr


def test_an_image_from_elsewhere_is_refused_too() -> None:
    from pygpukit._core import native
    from pygpukit.jit.compile import simulator

    image = simulator.compile("__global__ void k(float* x) { x[0] = sinf(x[1]); }").image
    assert native.sim_refused_functions(image) == []
    foreign = image.replace(b"\0sinf\0", b"\0exit\0")
    assert foreign != image
    assert native.sim_refused_functions(foreign) == ["exit"]
    with pytest.raises(gp.DriverError, match=r"calls exit\(\)"):
        native.Module(foreign)
