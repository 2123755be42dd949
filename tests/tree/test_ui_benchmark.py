"""The table of the dashboards' limits: which figure of which report holds, and what was not measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))
from ui_benchmark import LIMITS, Limit, table

ENVIRONMENT = {"machine": "2 cores", "load_before": 0.5, "ipykernel": "7.4.0"}


def rows(tmp_path: Path, **parts: object) -> dict[str, list[str]]:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(parts))
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in list(table([path]))[2:]]
    return {row[0]: row[1:] for row in cells}


@pytest.mark.parametrize(
    ("limit", "figure", "holds"),
    [
        (Limit("", "", "a", "x", 200, "ms"), 200.04, True),
        (Limit("", "", "a", "x", 200, "ms"), 200.06, False),
        (Limit("", "", "a", "x", 10, "/s", is_minimum=True), 9.96, True),
        (Limit("", "", "a", "x", 10, "/s", is_minimum=True), 9.94, False),
        (Limit("", "", "a", "x", 0, "", digits=0), 1, False),
    ],
)
def test_a_limit_holds_for_the_figure_that_is_shown(limit: Limit, figure: float, holds: bool) -> None:
    read = limit.read({"a": {"x": figure}})
    assert read is not None
    assert limit.holds(read) is holds


def test_a_row_has_limit_figure_verdict_versions_and_machine(tmp_path: Path) -> None:
    kernel = {"environment": ENVIRONMENT, "control_pause": {"max_ms": 250.4}, "hidden": {"messages": 0}}
    found = rows(tmp_path, kernel=kernel)
    assert found["control pause in a busy cell"] == [
        "at most 200 ms",
        "250.4 ms",
        "**no**",
        "ipykernel 7.4.0",
        "2 cores, load 0.5",
    ]
    assert found["messages while hidden"][:3] == ["at most 0", "0", "yes"]


def test_what_no_report_has_is_said_to_be_not_measured(tmp_path: Path) -> None:
    found = rows(tmp_path)
    assert set(found) == {limit.what for limit in LIMITS}
    assert {row[1] for row in found.values()} == {"not measured"}
