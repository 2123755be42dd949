"""The checked mode against the table of seeded bugs: each found with its kind, line, thread, block, array and index."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from _pytest.mark import ParameterSet
from bug_runs import agrees, kernel, launch
from bugs import BUGS, FOLDER, Bug

import pygpukit as gp
from pygpukit.core.errors import Finding, KernelCheckError

KINDS = {
    "out of bounds", "misaligned", "use after free", "uninitialised", "race", "divergent barrier", "deadlock",
    "warp mask", "warp matrix", "integer division by zero", "time limit", "stack overflow", "assert",
}  # fmt: skip
# What the checker gets wrong so far; a strict xfail, so that whoever mends it takes the name out.
IN_PROCESS = [bug for bug in BUGS if bug.timeout_s is None]
ENDLESS = [bug for bug in BUGS if bug.timeout_s is not None]


def _cases(bugs: list[Bug]) -> list[ParameterSet]:
    return [pytest.param(bug, id=bug.name) for bug in bugs]


# A process of its own, because the time limit is read once.
CHILD = """
import sys
sys.path[:0] = {folders!r}
from bug_runs import kernel, launch
from bugs import BUGS
from pygpukit.core.errors import KernelCheckError

bug = next(one for one in BUGS if one.name == {name!r})
try:
    launch(kernel(bug, fixed=False, check=True), bug)
except KernelCheckError as error:
    print(error.findings)
"""


def test_the_table_is_whole() -> None:
    names = [bug.name for bug in BUGS]
    assert len(names) == len(set(names)) >= 51
    assert set(names) == {path.stem for path in FOLDER.glob("*.cu")}
    assert {bug.kind for bug in BUGS} == KINDS
    for bug in BUGS:
        assert bug.lines, f"{bug.name} marks no line"
        assert bug.thread and bug.block, f"{bug.name} names no thread or block"
        assert bug.array == "" or bug.index is not None, f"{bug.name} names an array and no index"
        assert "def FIXED" in bug.source, f"{bug.name} has no corrected version"


@pytest.mark.parametrize("bug", _cases(IN_PROCESS))
def test_a_bug_is_found(bug: Bug) -> None:
    faulty = kernel(bug, fixed=False, check=True)
    with pytest.raises(KernelCheckError) as caught:
        launch(faulty, bug)
    found = caught.value.findings
    _expect(bug, found)
    assert f"{bug.name}:{found[0].line}" in str(caught.value)
    assert not re.search(r"0x[0-9a-f]{9,}", str(caught.value)), "an address"
    gp.ones(8).to_numpy()  # the device goes on


@pytest.mark.parametrize("bug", _cases(ENDLESS))
def test_an_endless_kernel_is_stopped(bug: Bug) -> None:
    code = CHILD.format(folders=[str(FOLDER)], name=bug.name)
    environment = {**os.environ, "PYGPUKIT_SIM_TIMEOUT_S": str(bug.timeout_s)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert done.stdout.startswith("[Finding("), done.stdout + done.stderr
    _expect(bug, eval(done.stdout, {"Finding": Finding}))


@pytest.mark.parametrize("bug", _cases(BUGS))
def test_the_corrected_kernel_is_clean_and_right(bug: Bug) -> None:
    agrees(bug, launch(kernel(bug, fixed=True, check=True), bug))


def _expect(bug: Bug, findings: list[Finding]) -> None:
    """The first finding is the bug, and no other one is about lines that have nothing to do with it."""
    first = findings[0]
    assert first.kind == bug.kind, findings
    assert first.line in bug.lines, findings
    assert first.thread in bug.thread and first.block in bug.block, findings
    assert first.array == bug.array and first.index in bug.indices, findings
    assert first.kernel == bug.kernel and first.message, findings
    for line in bug.other_lines:
        assert re.search(rf"\b{bug.name}:{line}\b", first.message), findings
    assert {one.line for one in findings} <= {*bug.lines, *bug.other_lines}, findings
