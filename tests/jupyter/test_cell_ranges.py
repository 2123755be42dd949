"""Cells as ranges: each is told once, with its number and what it raised, whoever listens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pygpukit.core import ranges

Told = list[tuple[str, str, dict[str, Any], BaseException | None]]


@pytest.fixture
def told() -> Iterator[Told]:
    kept: Told = []

    def hear(kind: str, name: str, known: dict[str, Any]) -> ranges.End | None:
        return (lambda known, error: kept.append((kind, name, known, error))) if kind == "cell" else None

    ranges.listen(hear)
    yield kept
    ranges.unlisten(hear)


def test_a_cell_is_told_at_its_end(shell: Any, told: Told) -> None:
    number = shell.execution_count
    assert shell.run_cell("1 + 1", store_history=True).success
    assert not shell.run_cell("1 / 0", store_history=True).success
    assert [one[:3] for one in told] == [
        ("cell", f"In[{number}]", {"cell": number}),
        ("cell", f"In[{number + 1}]", {"cell": number + 1}),
    ]
    assert told[0][3] is None and isinstance(told[1][3], ZeroDivisionError)


def test_who_stops_listening_in_a_cell_hears_of_its_end(shell: Any, told: Told) -> None:
    shell.user_ns["stop"] = lambda: ranges.unlisten(ranges._listeners[-1])
    shell.run_cell("stop()", store_history=True)
    shell.run_cell("1", store_history=True)
    assert len(told) == 1
