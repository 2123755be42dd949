"""The magic line and its defaults: what is refused, what %config sets."""

from __future__ import annotations

from typing import Any

import pytest
from cell_runner import AXPY, cuda, failure, let_go, run
from IPython.core.error import UsageError
from traitlets import TraitError

import pygpukit as gp
from pygpukit.jit import JITKernel
from pygpukit.jupyter.options import _unquoted

LAUNCH = "-i x,y,a=2,n=8 -o z"


@pytest.fixture(autouse=True)
def arrays(shell: Any) -> None:
    shell.user_ns.update(x=gp.ones(8), y=gp.ones(8), z=gp.zeros(8))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--help", "--help"),
        ("-h", "-h"),
        ("--ben", "--ben"),
        ("stray", "stray"),
        ("--grid", "--grid lacks its value"),
        ("--grid --block 4", "--grid lacks its value"),
        ("--arch volta", "write it as sm_90a"),
        ("--check races", "--check races"),
        (f"{LAUNCH} --verify 2 * x --bnch", "--bnch"),
        (f"{LAUNCH} --bench stray", "stray"),
        ("-i x, -o z", "-i x, ends with a comma: an argument is missing behind it"),
        ("--name 'a b'", "does not name a cell"),
        ("--with ../x", "does not name a cell"),
        ("--with missing.cuh", "no other cell is named 'missing.cuh'; named cells: none"),
        ("-D 3x=1", "'3x' is not a macro name"),
        ("--name 'open", "No closing quotation"),
        ("--bench", "--bench is about a launch"),
        ("--verify x", "--verify is about a launch"),
        ("--sweep block=64", "--sweep is about a launch"),
        ("--kernel axpy", "--kernel is about a launch"),
        (f"{LAUNCH} --bytes 4", "add --bench"),
        (f"{LAUNCH} --count", "add --bench"),
        (f"{LAUNCH} --rtol 1e-3", "add --verify"),
        (f"{LAUNCH} --rtol small --verify x", "invalid float value"),
        (f"{LAUNCH} --rtol -1 --verify x", "at least 0"),
        ("-i x,y,a=2,n=8,z=z --grid 1 --verify x", "name the arrays that the kernel writes with -o"),
        (f"{LAUNCH} --bench --count --bytes 3", "leave one of them out"),
        (f"{LAUNCH} --bench --bytes x", "it must be a number"),
    ],
)
def test_a_bad_line_fails_the_cell(shell: Any, capsys: Any, line: str, message: str) -> None:
    error = failure(shell, line)
    assert isinstance(error, UsageError)
    assert message in str(error)
    assert "usage" not in capsys.readouterr().out.lower(), "no help is printed"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("block", 128, 0),
        ("block", 128, "wide"),
        ("arch", "sm_90a", "volta"),
        ("no_launch", True, "yes"),
        ("check", "memory", "races"),
        ("rtol", 1e-3, -1),
        ("bench", True, 3),
        ("defines", ["A=1", "B"], ["3x"]),
        ("headers", ["tools.cuh"], ["../x"]),
        ("max_sweep", 4, 0),
        ("bench_ms", 100.0, 0),
    ],
)
def test_settings_are_validated(shell: Any, caplog: Any, name: str, good: Any, bad: Any) -> None:
    magics = shell.magics_manager.registry["CudaMagics"]
    run(shell, f"%config CudaMagics.{name} = {good!r}")
    assert getattr(magics, name) == good
    with pytest.raises(TraitError):
        setattr(magics, name, bad)
    run(shell, f"%config CudaMagics.{name} = {bad!r}")
    assert getattr(magics, name) == good, "%config refuses it too"


def test_settings_are_defaults_that_the_line_replaces(shell: Any) -> None:
    run(shell, "%config CudaMagics.block = 64")
    assert str(cuda(shell, LAUNCH).launch) == "axpy[1, 64]"
    assert str(cuda(shell, f"{LAUNCH} --block 32").launch) == "axpy[1, 32]"
    run(shell, "%config CudaMagics.defines = ['SCALE=3']")
    body = AXPY.replace("a *", "SCALE * a *")
    cuda(shell, f"{LAUNCH} --verify 6*x+y", body)
    cuda(shell, f"{LAUNCH} -D SCALE=4 --verify 8*x+y", body)
    run(shell, "%config CudaMagics.bench = True")
    assert cuda(shell, f"{LAUNCH} --bytes 12", body).bench is not None
    assert cuda(shell, "", body).bench is None, "a cell that launches nothing is not measured"


def test_no_launch_as_a_setting_compiles_every_cell_and_launches_none(shell: Any) -> None:
    run(shell, "%config CudaMagics.no_launch = True")
    result = cuda(shell, f"{LAUNCH} --verify 2*x+y --bench")
    assert result.launch is None and not result.loaded
    assert not shell.user_ns["z"].to_numpy().any()


def test_settings_of_a_configuration_file_count() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=Config({"CudaMagics": {"block": 96}}))
    try:
        made.run_line_magic("load_ext", "pygpukit")
        assert made.magics_manager.registry["CudaMagics"].block == 96
    finally:
        made.run_line_magic("unload_ext", "pygpukit")
        let_go(made)
        InteractiveShell.clear_instance()


def test_the_help_lists_every_option(shell: Any) -> None:
    text = shell.find_cell_magic("cuda").__doc__
    for flag in ("--input", "--output", "--verify", "--sweep", "--no-launch", "--with"):
        assert flag in text
    assert isinstance(cuda(shell, "").kernels["axpy"], JITKernel)


@pytest.mark.parametrize("text", ["d['x']", "f(\"a\", 'b')[0]", "x,y=d['a b']"])
def test_quotes_inside_brackets_are_python_s(text: str) -> None:
    assert _unquoted(text) == text
    assert _unquoted(f'"{text}"' if '"' not in text else text) == text
