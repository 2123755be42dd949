"""%%cutile: Python cells with kernels in cuTile that launch, compare and measure, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cell_runner import error_of, run
from IPython.core.error import UsageError

import pygpukit as gp
from pygpukit.core.errors import KernelCheckError
from pygpukit.jupyter.errors import VerificationError

N = 100
SCALE = """from pygpukit.cutile import ct

@ct.kernel
def scale(x, y, factor, TILE: ct.Constant[int] = 16):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (TILE,)) * factor)
"""


@pytest.fixture
def x(shell: Any) -> np.ndarray[Any, Any]:
    """x, y and n in the notebook."""
    host = np.random.default_rng().standard_normal(N).astype(np.float32)
    shell.user_ns.update(x=gp.from_numpy(host), y=gp.zeros(N), n=N, np=np, gp=gp)
    return host


def cutile(shell: Any, options: str, body: str = SCALE) -> Any:
    return run(shell, f"%%cutile {options}\n{body}")


def failure(shell: Any, options: str, body: str = SCALE) -> BaseException:
    return error_of(shell, f"%%cutile {options}\n{body}")


def test_a_cell_defines_its_kernels_and_launches_none(shell: Any) -> None:
    result = cutile(shell, "")
    assert repr(result) == "scale(x, y, factor, TILE)" and "scale(x, y, factor, TILE)" in result._repr_html_()
    assert [*result.kernels] == ["scale"] and "scale" in shell.user_ns
    assert repr(cutile(shell, "", "three = 3")) == "the cell defines no @ct.kernel function"
    assert shell.user_ns["three"] == 3


@pytest.mark.parametrize(
    "line",
    [
        "-i x,2.5 -o y --grid ct.cdiv(n,16)",
        "-i factor=2.5,x=x,TILE=32 -o y --grid -(-x.size//TILE)",
        "-i x -i 2.5 -o y --grid 7",
    ],
)
def test_a_cell_launches_compares_and_says_so(shell: Any, x: np.ndarray[Any, Any], line: str) -> None:
    result = cutile(shell, f"{line} --verify 2.5 * x.to_numpy() if hasattr(x, 'to_numpy') else np.float32(2.5) * x")
    assert np.array_equal(shell.user_ns["y"].to_numpy(), np.float32(2.5) * x)
    grid = -(-N // 32) if "TILE=32" in line else 7
    assert repr(result).splitlines()[1:] == [f"launched scale[{grid}], every access checked", "verified y"]
    assert "&#10003; verified" in result._repr_html_() and result.verify[0].passed


def test_a_difference_from_the_reference_fails_the_cell(shell: Any, x: np.ndarray[Any, Any]) -> None:
    error = failure(shell, "-i x,2 -o y --grid 7 --verify 3 * x")
    assert isinstance(error, VerificationError) and str(error).startswith(
        "y: 100 of 100 elements differ from the reference"
    )


def test_a_launch_is_measured_and_leaves_the_outputs(shell: Any, x: np.ndarray[Any, Any]) -> None:
    body = SCALE.replace("x, y, factor", "y, factor").replace("ct.load(x", "ct.load(y")
    shell.user_ns["y"] = gp.ones(N)
    result = cutile(shell, "-i y,2 -o y --grid 7 --bench --bytes 8*n", body)
    assert result.bench.median_us > 0 and result.bench.gbps is not None and "median" in result._repr_html_()
    assert shell.user_ns["y"].to_numpy().tolist() == [2.0] * N, "as after one launch"


def test_a_fault_names_the_line_as_the_user_counts_it(shell: Any, x: np.ndarray[Any, Any]) -> None:
    error = failure(shell, "-i x,2 -o y --grid 8")
    assert isinstance(error, KernelCheckError) and error.findings[0].line == 7
    assert "block (7, 0, 0), line 7" in str(error) and "lies wholly outside of x, of shape (100,)" in str(error)
    assert error._render_traceback_() == [f"KernelCheckError: {error}"]
    error = error_of(shell, f"\n\n%%cutile -i x,2 -o y --grid 8\n{SCALE}")
    assert error.findings[0].line == 9


def test_an_error_of_the_cell_itself_shows_and_nothing_is_launched(shell: Any, x: np.ndarray[Any, Any]) -> None:
    assert run(shell, f"%%cutile -i x,2 -o y --grid 7\n{SCALE}\nraise KeyError('own')") is None
    assert not shell.user_ns["y"].to_numpy().any()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-i x,2 -o y", "%%cutile: a launch needs --grid"),
        (
            "-i x -o y --grid 7",
            "%%cutile: scale: parameter 'factor' (a parameter) has no argument: add factor=... to -i",
        ),
        ("-i x,2,3,4,5 -o y --grid 7", "has no parameter left"),
        ("-i x,2 -o 'z[n]' --grid 7", "the element type cannot be told"),
        ("-i x,2 -o y --grid nothing", "%%cutile: --grid nothing: NameError"),
        (
            "-i x,2 -o y --grid 7 --kernel other",
            "%%cutile: --kernel other: the cell has no such kernel; there are: scale",
        ),
        ("-i x,2 -o y --grid 7 --stream 3", "%%cutile: --stream 3 is a int; give a pygpukit Stream"),
        ("--verify x", "%%cutile: --verify is about a launch"),
        ("-i x,2 -o y --grid 7 --block 32", "unrecognized arguments"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(shell: Any, x: np.ndarray[Any, Any], line: str, message: str) -> None:
    error = failure(shell, line)
    assert isinstance(error, UsageError) and message in str(error)
    assert not shell.user_ns["y"].to_numpy().any()


def test_a_stream_and_one_kernel_of_two(shell: Any, x: np.ndarray[Any, Any]) -> None:
    shell.user_ns["stream"] = gp.Stream()
    body = SCALE + SCALE.replace("scale", "other").replace("* factor", "+ factor")
    cutile(shell, "-i x,2 -o y --grid 7 --kernel other --stream stream", body)
    assert np.array_equal(shell.user_ns["y"].to_numpy(), x + 2)
    assert "the cell has 2 kernels: choose with --kernel, one of: scale, other" in str(failure(shell, "--grid 1", body))
