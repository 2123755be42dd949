"""Suite random: a seed has its shapes, both libraries are asked for the same, means and the slowest are right."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.figures import FIGURES, MissingDataError
from bench.figures.picture import svg
from pygpukit import benchmark
from pygpukit.benchmark import BenchmarkReport, BenchmarkResult, GPUInfo
from pygpukit.benchmark.drawn import CATEGORY, OVER, PEER, SHARE, SLOWEST, SMALL_COUNT, operands, summary
from pygpukit.benchmark.drawn_cases import FAMILIES, MAX_ELEMENTS, Case, cases, function
from pygpukit.benchmark.operators import beside
from pygpukit.benchmark.result import Unavailable


def test_a_seed_has_its_shapes_however_many_are_asked_for() -> None:
    few, many, other = cases(7, 3), cases(7, 12), cases(8, 3)
    for family in FAMILIES:
        first = [case for case in many if case.family == family]
        assert [case for case in few if case.family == family] == first[:3] and len(first) == 12
        assert len({case.title for case in first}) == 12
    assert few != other
    assert [case.title for case in few if case.family == "transforms"] == [
        "transforms: fft2 of 12 x 119 x 512 complex64",
        "transforms: rfft of 3 x 16 float32",
        "transforms: fft of 64 x 35264 complex64",
    ]


def test_shapes_are_of_every_kind_and_fit() -> None:
    drawn = cases(1, 200)
    extents = [extent for case in drawn for shape in case.shapes.values() for extent in shape]
    assert sum(extent % 64 == 0 for extent in extents) > len(extents) / 8
    assert sum(extent % 2 == 1 for extent in extents) > len(extents) / 8
    assert all(sum(map(math.prod, case.shapes.values())) <= MAX_ELEMENTS for case in drawn)
    assert {case.dtype for case in drawn} == {"bfloat16", "float16", "float32", "tf32", "complex64"}


@pytest.mark.parametrize("case", cases(2, SMALL_COUNT, small=True), ids=lambda case: case.title)
def test_every_expression_runs_on_its_operands(case: Case) -> None:
    result = function(case.gp, operands(case))()
    assert result.size > 0
    assert case.torch.startswith(("torch.", "F.", "a"))


def test_the_command_draws_by_its_seed(tmp_path: Path) -> None:
    saved = tmp_path / "random.json"
    arguments = ["--suite", "random", "--seed", "4", "--quick", "--peers", "--quiet", "--save", str(saved)]
    assert benchmark.main(arguments) == 0
    report = BenchmarkReport.load(saved)
    assert [row.name for row in report.results] == [case.title for case in cases(4, SMALL_COUNT, small=True)]
    assert all((row.median_us or 0) > 0 and row.params == {"seed": 4} for row in report.results)
    assert "say nothing" in report.skipped["random/figures of a GPU"] and "no GPU" in report.skipped["random/torch"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seed", "4"], "--seed is of --suite random"),
        (["--suite", "random", "--seed", "-1"], "no whole number"),
        (["--suite", "random", "--count", "0"], "no whole number"),
    ],
)
def test_wrong_flags_are_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        benchmark.main(arguments)
    assert stop.value.code == 2 and words in capsys.readouterr().err


def test_means_shares_and_the_slowest() -> None:
    speeds = {"products: x": 0.5, "products: y": 2.0, "arrays: z": 4.0}
    rows = list(summary(speeds, 3))
    values = {(row.name, row.params.get("of") or row.params["case"]): row.value for row in rows}
    assert values[OVER, "products"] == pytest.approx(1) and values[OVER, "all"] == pytest.approx(4 ** (1 / 3))
    assert values[SHARE, "products"] == 50 and values[SHARE, "arrays"] == 100
    assert [row.params["case"] for row in rows if row.name == SLOWEST] == ["products: x", "products: y", "arrays: z"]


def test_the_picture_shows_every_family(tmp_path: Path) -> None:
    figure = FIGURES["random-shapes-beside-pytorch"]
    report = BenchmarkReport(gpu=GPUInfo("a card", 9, 0, 140.0))
    with pytest.raises(MissingDataError, match="--suite random"):
        figure.numbers(report)
    for place, case in enumerate(cases(6, 2)):
        row = BenchmarkResult(case.title, CATEGORY, {"seed": 6}, value=10.0)
        report.add(row)
        report.add(beside(row, PEER, 8.0 + place))
    for extra in summary({row.name: 1 / (row.ratio or 1) for row in report.results if row.peer}, 6):
        assert not isinstance(extra, Unavailable)
        report.add(extra)
    numbers = figure.numbers(report)
    assert set(numbers["cells"]) == set(FAMILIES) and all(len(values) == 2 for values in numbers["cells"].values())
    assert b"geometric mean" in svg(figure, report)
