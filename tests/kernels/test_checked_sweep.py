"""Every built-in kernel runs on the simulator in checked mode: no findings, and what float64 gives within rounding.

The kernels come from the catalogue, so that a new one without a call in the sweep fails here by its name. One of
fourteen groups runs, others at another commit; `--all` runs all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import turn
from sweep.engine import Call, Family, Group, Outcome, catalogued, first_type, groups, numbers, run, without_family
from sweep.families import FAMILIES

import pygpukit as gp
from pygpukit import kernels
from pygpukit.kernels import measure

REPORT = Path(__file__).parents[2] / "docs" / "results" / "sim" / "checked_kernels.json"
REMEDY = "python tools/checked_kernels.py"
TURNS = 14
ALWAYS = {"sorts-complex_t<double>"}  # whose keys in shared memory once began between multiples of 16 bytes
GROUPS = groups(FAMILIES)
MEASURE = measure.COPY_WORDS.source


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The groups of this run."""
    if "group" not in metafunc.fixturenames:
        return
    every = metafunc.config.getoption("--all")
    number = turn.of_commit()
    chosen = [one for i, one in enumerate(GROUPS) if every or one.name in ALWAYS or (i + number) % TURNS == 0]
    metafunc.parametrize("group", chosen, ids=lambda group: group.name)


def failures(outcomes: dict[tuple[str, str], Outcome]) -> dict[str, str]:
    return {expression: outcome.failure for (_, expression), outcome in outcomes.items() if outcome.failure}


@pytest.mark.turns(1)  # the groups of this run are a part already
def test_kernels_of_a_group(group: Group) -> None:
    assert failures(run(group)) == {}


def test_the_groups_have_every_kernel_once() -> None:
    missing = without_family(FAMILIES)
    assert not missing, f"no family of the sweep has the kernels of {missing}; add calls that launch them"
    assert sorted(kernel for group in GROUPS for kernel in group.kernels) == sorted(catalogued())
    assert without_family([family for family in FAMILIES if family.name != "measure"]) == [MEASURE]


def test_every_kernel_is_in_the_report_without_a_finding() -> None:
    reported = json.loads(REPORT.read_text())["kernels"]
    listed, known = set(catalogued()), {(source, name) for source, own in reported.items() for name in own}
    assert listed == known, f"{REPORT.name} and the catalogue differ by {sorted(listed ^ known)}; run {REMEDY}"
    verdicts = {name: seen["verdict"] for own in reported.values() for name, seen in own.items()}
    bad = {name: verdict for name, verdict in verdicts.items() if verdict != "no finding"}
    assert not bad, f"{bad} in {REPORT.name}; mend the kernel and run {REMEDY}"


def test_the_sweep_tells_what_fails_and_what_is_not_launched() -> None:
    """On kernels that are right, with calls that are not: none, a wrong reference, a read beyond the end."""
    measuring = next(group.kernels for group in GROUPS if group.name == "measure-all")
    words = numbers("uint8", 64)

    def told(function: Callable[[gp.GPUArray], gp.GPUArray], reference: Callable[..., Any]) -> str:
        calls = [Call(function, (words,), reference)]
        family = Family("measure", (MEASURE,), first_type, lambda _: iter(calls))
        return failures(run(Group(family, "all", measuring)))["pk::copy_words"]

    def copied(count: int) -> Callable[[gp.GPUArray], gp.GPUArray]:
        def function(x: gp.GPUArray) -> gp.GPUArray:
            out = gp.zeros(64, "uint8")
            number = count.to_bytes(8, "little")
            kernels.launch(measure.COPY_WORDS, (1, 1, 1), (32, 1, 1), out, x, number)
            return out

        return function

    assert told(gp.GPUArray.clone, np.array) == "no call of the sweep launches it"
    assert told(copied(4), lambda x: x + 1) == "uint8 result of shape (64,) is off by inf of its largest number"
    assert told(copied(4), lambda x: x[1:]).startswith(
        "AssertionError: the result has shape (64,), the reference (63,)"
    )
    assert "out of bounds" in told(copied(5), lambda x: x)


def test_numbers_are_of_their_type() -> None:
    for dtype in ("bool", "uint16", "bfloat16", "complex64"):
        assert numbers(dtype, 3, 2).dtype == dtype
