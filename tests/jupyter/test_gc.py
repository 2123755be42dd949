"""gp.gc(): what the shell holds of arrays goes, everything else stays, and what was freed is said by owner."""

from __future__ import annotations

import gc as collector
import subprocess
import sys
from typing import Any

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.memory.held import holds_array

NBYTES = 1 << 20  # a size class of the pool: freed as such


def run(shell: Any, cell: str) -> Any:
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result


@pytest.fixture
def notebook(shell: Any) -> Any:
    gp.gc()  # what earlier tests left behind
    run(shell, "import pygpukit as gp")
    return shell


def live() -> int:
    native.release_quarantine()  # what waits because of other tests' checked kernels is nobody's
    return _core.pool_stats(0).used


def test_the_output_history_lets_go(notebook: Any) -> None:
    start = live()
    run(notebook, "gp.ones((512, 512))")
    run(notebook, "1 + 1")
    run(notebook, "{'deep': [gp.ones((512, 512))]}")
    run(notebook, "'kept'")
    assert live() - start == 2 * NBYTES
    freed = gp.gc()
    assert live() == start and freed.nbytes == 2 * NBYTES
    assert sorted(notebook.user_ns["Out"].values(), key=str) == [2, "kept"]
    assert notebook.user_ns["_"] == "kept" and "_2" not in notebook.user_ns and notebook.user_ns["_3"] == 2
    run(notebook, "3 + 4")
    assert (notebook.user_ns["_"], notebook.user_ns["__"]) == (7, "kept"), "the shell goes on as before"


def test_the_last_results_go_too(notebook: Any) -> None:
    start = live()
    for _ in range(4):
        run(notebook, "gp.ones((512, 512))")
    assert gp.gc().nbytes == 4 * NBYTES and live() == start
    assert [notebook.user_ns[name] for name in ("_", "__", "___")] == ["", "", ""]
    run(notebook, "'next'")
    assert notebook.user_ns["_"] == "next"


def test_a_variable_named_underscore_is_the_users(notebook: Any) -> None:
    run(notebook, "gp.ones(4)")
    run(notebook, "_ = gp.ones((512, 512))")
    before = live()
    gp.gc()
    assert notebook.user_ns["_"].shape == (512, 512) and before - live() < NBYTES


def test_variables_stay(notebook: Any) -> None:
    run(notebook, "x = gp.ones((512, 512)); x")
    before = live()
    assert gp.gc().nbytes == 0 and live() == before
    assert float(run(notebook, "x")[0, 0]) == 1.0
    assert repr(gp.gc()) == "nothing to free"


def test_a_traceback_lets_go_of_its_frames(notebook: Any) -> None:
    start = live()
    notebook.run_cell("def f():\n    local = gp.ones((512, 512))\n    raise ValueError\nf()", store_history=True)
    collector.collect()
    assert live() - start == NBYTES, "the traceback holds the frame"
    assert gp.gc().nbytes == NBYTES and live() == start
    assert not hasattr(sys, "last_traceback")
    run(notebook, "1 / 2")


def test_chained_errors_let_go_too(notebook: Any) -> None:
    start = live()
    notebook.run_cell(
        "def inner():\n    a = gp.ones((512, 512))\n    raise ValueError\n"
        "def outer():\n    b = gp.ones((512, 512))\n    try:\n        inner()\n"
        "    except ValueError as e:\n        raise TypeError from e\nouter()",
        store_history=True,
    )
    gp.gc()
    assert live() == start


def test_cycles_go(notebook: Any) -> None:
    run(notebook, "c = [gp.ones((512, 512))]; c.append(c); del c")
    assert gp.gc().nbytes == NBYTES


def test_what_was_freed_is_said_by_owner(notebook: Any) -> None:
    run(notebook, "named = gp.ones((512, 1024))")
    run(notebook, "\nnamed")
    run(notebook, "del named")
    run(notebook, "gp.ones((512, 512))")
    freed = gp.gc()
    assert [(o.name, o.nbytes, o.blocks, o.line) for o in freed.owners] == [
        ("named", 2 * NBYTES, 1, 1),
        ("", NBYTES, 1, 1),
    ]
    assert freed.owners[0].cell and freed.owners[0].cell != freed.owners[1].cell
    lines = repr(freed).splitlines()
    assert lines[0] == "freed 3 MiB"
    assert "2 MiB  named, made in In[2] line 1" in lines[1] and "1 MiB  unnamed, made in In[5] line 1" in lines[2]


def test_it_is_shown_and_can_be_repeated_in_a_cell(notebook: Any) -> None:
    run(notebook, "gp.ones((512, 512))")
    assert run(notebook, "gp.gc()").nbytes == NBYTES
    assert run(notebook, "gp.gc()").nbytes == 0


@pytest.mark.parametrize(
    ("expression", "held"),
    [
        ("x", True),
        ("[1, (2, {'a': x})]", True),
        ("{x}", True),
        ("type('T', (), {})()", False),
        ("[1, 'x', None, gp]", False),
        ("[]", False),
    ],
)
def test_what_holds_an_array(expression: str, held: bool) -> None:
    assert holds_array(eval(expression, {"x": gp.ones(1), "gp": gp})) is held


def test_cyclic_values_end() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert not holds_array(cycle)


def test_without_a_shell_and_before_the_backend() -> None:
    code = (
        "import sys, pygpukit as gp; first = gp.gc(); assert first.nbytes == 0;"
        "x = [gp.ones((512, 512))]; x.append(x); del x; assert gp.gc().nbytes == 1 << 20;"
        "assert 'IPython' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
