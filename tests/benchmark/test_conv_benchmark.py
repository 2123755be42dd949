"""Suite conv: its errors are those of a convolution, its rows and means are complete, its picture is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from bench.figures import FIGURES, MissingDataError
from bench.figures.cli import main
from pygpukit import benchmark
from pygpukit.benchmark import BenchmarkReport, BenchmarkResult, GPUInfo, conv
from pygpukit.benchmark.conv_cases import KINDS, LAYOUTS, SMALL, Case, cases, ends, error, title
from pygpukit.benchmark.result import Unavailable

LIMITS = {"bfloat16": 1e-2, "float16": 1.5e-3, "tf32": 1e-5}


def test_the_command_measures_small_ones_and_says_what_their_times_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "conv.json"
    assert benchmark.main(["--conv", "--quick", "--peers", "--quiet", "--save", str(saved)]) == 0
    report = BenchmarkReport.load(saved)
    names = [title(case, layout) for _ in KINDS for case in SMALL for layout in LAYOUTS]
    assert [row.name for row in report.results] == names
    assert all(0 <= row.rel_error < LIMITS[row.params["dtype"]] and (row.median_us or 0) > 0 for row in report.results)
    assert "say nothing" in report.skipped["conv/figures of a GPU"]
    assert "no GPU" in report.skipped["conv/torch"]
    assert "error" in capsys.readouterr().out


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_an_error_is_seen_wherever_it_is(case: Case) -> None:
    values = np.random.default_rng().standard_normal
    x, w = values(case.x), values(case.w)
    function = getattr(gp, f"conv{'_transpose' * case.transposed}{len(case.x) - 2}d")
    found = function(gp.from_numpy(x), gp.from_numpy(w), **case.settings).to_numpy()
    assert found.shape == case.out
    x, found = ends(x), ends(found).copy()
    assert error(case, x, w, found) < 1e-12
    found[(-1, -1, *(0 for _ in case.out[2:]))] += 1
    assert error(case, x, w, found) > 1e-3


def test_what_is_measured_is_what_the_models_have() -> None:
    full, quick = cases("full"), cases("quick")
    assert len({case.name for case in full}) == len(full) and 0 < len(quick) < len(full)
    by_model = [sum(case.name.startswith(model) for case in full) for model in ("ResNet-50", "Whisper", "Kokoro")]
    assert by_model == [23, 4, 12]
    (stem,) = [case for case in full if case.name.startswith("ResNet-50 7x7")]
    assert stem.out == (32, 64, 112, 112) and stem.flops == 2 * 32 * 112 * 112 * 64 * 3 * 49
    assert sum(case.transposed for case in full) == 3 and sum(case.setting("groups") > 1 for case in full) == 3


def test_means_are_of_what_both_measured() -> None:
    first, second = cases("full")[0], cases("full")[-1]
    ours, theirs = {}, {}
    for case, layout, own, their in ((first, "last", 2.0, 4.0), (first, "first", 4.0, 2.0), (second, "last", 1.0, 8.0)):
        key = BenchmarkResult(title(case, layout), "conv", {"dtype": "bfloat16"}, value=0).key
        ours[key], theirs[key] = own, their
    theirs["conv/another"] = 1.0
    found = {(row.params["of"], row.params["channels"]): row.value for row in conv.means(ours, theirs)}
    assert found == {
        ("ResNet-50", "last"): pytest.approx(2), ("ResNet-50", "first"): pytest.approx(0.5),
        ("ResNet-50", "faster of both"): pytest.approx(1), ("MobileNet", "last"): pytest.approx(8),
        ("all", "last"): pytest.approx(4), ("all", "first"): pytest.approx(0.5),
        ("all", "faster of both"): pytest.approx(1),
    }  # fmt: skip


def test_a_failure_costs_one_row() -> None:
    broken = Case("ResNet-50 broken", (1, 3, 4), (2, 5, 3))
    row = conv._row(broken, "bfloat16", "last", True)
    assert isinstance(row, Unavailable) and "ShapeError" in row.reason and "broken" in row.key


def test_the_picture_shows_speeds_over_the_peer(tmp_path: Path) -> None:
    report = BenchmarkReport(GPUInfo("card", 9, 0, 80.0))
    figure = FIGURES["convolutions-beside-pytorch"]
    with pytest.raises(MissingDataError, match="--suite conv"):
        figure.numbers(report)
    case = cases("full")[1]
    report.add(
        BenchmarkResult(
            title(case, "last"), "conv", {"dtype": "bfloat16", "peer's error": 0.0},
            value=10.0, peer=conv.PEER, peer_value=20.0,
        )
    )  # fmt: skip
    numbers = figure.numbers(report)
    assert numbers["names"] == [case.name] and numbers["speeds"] == {"last": [2.0], "first": [None]}
    pytest.importorskip("matplotlib")
    report.save(tmp_path / "r.json")
    assert main([str(tmp_path / "r.json"), "--out", str(tmp_path), "--figure", figure.name]) == 0
    assert (tmp_path / f"{figure.name}.svg").stat().st_size < 100_000
