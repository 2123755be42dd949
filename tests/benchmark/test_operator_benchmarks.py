"""Suites operators, accuracy and determinism: stated bytes, errors that are found, results that are counted."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from bench import accuracy_cases
from bench.accuracy import _errors
from bench.determinism import RUNS_SIM, _Trial
from pygpukit import benchmark
from pygpukit.benchmark import operator_peers, operators
from pygpukit.benchmark.goals import GOALS, OF_COPY, Goal, Verdict
from pygpukit.benchmark.operator_cases import CALLS, CASES, DTYPES, function, size
from pygpukit.benchmark.result import BenchmarkResult, Unavailable


@pytest.mark.parametrize("dtype", DTYPES)
def test_stated_bytes_are_those_of_operands_and_results(dtype: str) -> None:
    """Every array that an expression names is read once, and the result written once."""
    s = size(dtype, "sim", True)
    names = operators.arrays(dtype, s)
    for case in CASES:
        operands = [
            v for k, v in names.items() if k in function(case.gp, names).__code__.co_names and hasattr(v, "nbytes")
        ]
        try:
            result: Any = function(case.gp, names)()
        except (AttributeError, TypeError):
            continue  # an operator of another version
        moved = sum(x.nbytes for x in operands) + result.nbytes
        slack = 0.01 * moved if case.name == "boolean index" else 16  # half of a random mask; a sum's wider type
        assert abs(moved - case.moved(s)) <= slack + (s.columns * 8 if "sum, " in case.name else 0), case.name


def test_every_case_has_a_goal_and_every_goal_a_case() -> None:
    named = [name for names in OF_COPY.values() for name in names]
    assert sorted([*named, "sort"]) == sorted(case.name for case in CASES)
    assert len({goal.key for goal in GOALS}) == len(GOALS)


@pytest.mark.parametrize(("better", "met"), [("higher", True), ("lower", False)])
def test_a_goal_may_be_a_floor(better: Any, met: bool) -> None:
    assert Verdict(Goal("a/b", 90, 95, "%", better=better), 91.0).met is met


def test_the_arrays_flag_measures_the_operators_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--quick", "--arrays"]) == 0
    shown = capsys.readouterr().out
    assert "operators add float32 (" in shown and "operators add float32, of the copy" in shown
    assert "operators copy device to device" in shown and "operators add(x, y, out=z) over the driver's launch" in shown
    with pytest.raises(SystemExit):
        benchmark.main(["--all", "--arrays"])


def test_a_failing_operator_is_a_row_with_its_reason() -> None:
    ruler = operators.Ruler(1 << 20, True)
    case = operators.Case("broken", lambda s: s.nbytes, "gp.no_such_function(x)", "")
    s = size("float32", "sim", True)
    (row,) = operators._measure(case, "float32", s, {"gp": gp}, ruler, True)
    assert isinstance(row, Unavailable) and "no_such_function" in row.reason


def test_copies_of_nearly_as_many_bytes_are_measured_once() -> None:
    ruler = operators.Ruler(4 << 20, True)
    for moved in (1 << 20, (1 << 20) - 4, (1 << 20) + 4096, 4 << 20):
        assert ruler.us(moved) > 0
    assert [r.params["MiB"] for r in ruler.rows()] == [0.5, 0.531, 2.0]


def test_peers_figures_stand_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from pygpukit._core import native

    mine = BenchmarkResult("sort float32", "operators", value=100.0, unit="GB/s", better="higher", median_us=10.0)
    monkeypatch.setattr(native, "backend_name", lambda: "cuda")
    theirs = {"torch": [("sort float32", 20.0)], "cupy": [("sort float32", 5.0), ("sort bfloat16", "TypeError: no")]}
    monkeypatch.setattr(operators, "peer_times", lambda library, quick: theirs[library])
    rows = list(operators.peer_rows([mine], True))
    assert [(r.peer, r.peer_value) for r in rows if isinstance(r, BenchmarkResult) and r.peer] == [
        ("torch", 50.0),
        ("cupy", 200.0),
    ]
    assert [r.value for r in rows if isinstance(r, BenchmarkResult) and r.name.endswith(operators.OVER_CUPY)] == [0.5]
    assert [r.reason for r in rows if isinstance(r, Unavailable)] == ["TypeError: no"]


class NumpyAsPeer(operator_peers.Cupy):
    """CuPy's expressions with NumPy behind them, on a clock that counts."""

    def __init__(self) -> None:
        self.library = np
        self.flushes = 0
        self._clock = itertools.count()

    def names(self, dtype: str, n: int) -> dict[str, Any]:
        if dtype == "bfloat16":
            raise TypeError("no such type")
        x = np.random.default_rng(0).standard_normal(n, dtype=np.float32)
        rows = {"narrow": x.reshape(-1, 32), "wide": x.reshape(-1, 1024)}
        picks = {f"pick_{name}": np.arange(len(rows)) for name, rows in rows.items()}
        return {"cp": np, "x": x, "y": x, "m": x.reshape(-1, 4096), "mask": x > 0, **rows, **picks}

    def event(self) -> Any:
        return next(self._clock)

    def flush(self) -> None:
        self.flushes += 1

    def wait(self) -> None:
        pass

    def elapsed_us(self, start: Any, end: Any) -> float:
        return float(end - start)


def test_a_peer_measures_what_it_has_and_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = NumpyAsPeer()
    monkeypatch.setattr(operator_peers, "PEERS", {"torch": lambda: None, "cupy": lambda: peer})
    found = operator_peers.measure("cupy", 8192)
    assert set(found) == {f"{case.name} {dtype}" for case in CASES if case.cupy for dtype in DTYPES} | {
        name for name, *_ in CALLS
    }
    assert {name for name, us in found.items() if name.endswith("float32") and isinstance(us, str)} == {
        "softmax float32"
    }
    assert all(us == "TypeError: no such type" for name, us in found.items() if name.endswith("bfloat16"))
    assert found["add float32"] == 1.0 and isinstance(found["add(x, y)"], float)
    measured = sum(isinstance(us, float) for us in found.values()) - len(CALLS)
    assert peer.flushes == measured * operator_peers.SAMPLES


def test_a_peer_that_is_not_there_is_a_row_with_the_reason() -> None:
    ((name, reason),) = operator_peers.peer_times("no_such_library", True)
    assert name == "all rows" and "no_such_library" in str(reason)


def test_errors_of_the_types_are_those_of_correct_rounding() -> None:
    def upload(stored: Any, dtype: str) -> Any:
        array = gp.from_numpy(stored)
        return array.view(dtype) if array.dtype != dtype else array

    found = _errors("gp", {"gp": gp}, upload, lambda r: r.astype("float64").to_numpy(), 1 << 12)
    for dtype, unit in accuracy_cases.EPSILON.items():
        value = found[f"add {dtype}"]
        assert isinstance(value, float) and unit / 8 < value < unit, dtype
        assert found[f"neg {dtype}"] == 0.0


def test_a_wrong_result_has_a_large_error() -> None:
    expected = np.linspace(1, 2, 100)
    assert accuracy_cases.error(expected * 1.001, expected) == pytest.approx(1e-3)
    assert accuracy_cases.error(np.where(expected > 1.5, np.nan, expected), expected) == np.inf
    with pytest.raises(ValueError, match="shape"):
        accuracy_cases.error(expected[:5], expected)


def test_references_are_what_their_names_say() -> None:
    values = {name: exact for name, (_, exact) in accuracy_cases.hosts("float32", 64).items()}
    names = accuracy_cases.references(values)
    assert function("softmax(m)", names)().sum(-1) == pytest.approx(1.0)
    assert function("layernorm(m)", names)().mean(-1) == pytest.approx(0.0, abs=1e-12)
    assert (function("rmsnorm(m)", names)() ** 2).mean(-1) == pytest.approx(1.0, rel=1e-4)
    assert function("gelu_tanh(x)", {**names, "x": np.array([0.0, 10.0, -10.0])})() == pytest.approx([0.0, 10.0, 0.0])


def test_distinct_results_are_counted_in_every_situation() -> None:
    trial = _Trial(RUNS_SIM, on_sim=True)
    x = gp.arange(1000, dtype="float32")
    assert trial.distinct(lambda: gp.add(x, 1)) == 1
    number = itertools.count()
    assert trial.distinct(lambda: gp.full(5, float(next(number)))) >= 3 * RUNS_SIM
    swapped = itertools.cycle([gp.from_numpy(np.array([1, 2], "f")), gp.from_numpy(np.array([2, 1], "f"))])
    assert trial.distinct(lambda: gp.add(next(swapped), 0)) == 2
