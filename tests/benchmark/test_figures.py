"""Figures of reports: drawn from what a run saved, refused by name where data lack, true to the committed reports."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import churn, overcommit, scheduler, scheduler_contest, scheduler_latency
from bench.figures import FIGURES, MissingDataError, digest, svg
from bench.figures.cli import PAGE, main
from bench.figures.picture import distribution, label, thinned
from bench.scheduler_contest import Run, Tick, priorities_of
from bench.scheduler_load import Tenant, make_tenant
from pygpukit.benchmark import (
    BenchmarkReport,
    BenchmarkResult,
    BenchmarkSuite,
    GPUInfo,
)
from pygpukit.benchmark.result import Unavailable
from pygpukit.core.extras import install_command

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMMITTED = {DOCS / "results" / "h200" / "benchmark.json": DOCS / "images",
             DOCS / "results" / "h200" / "sharing.json": DOCS / "results" / "h200",
             DOCS / "results" / "h200" / "random" / "seed11.json": DOCS / "results" / "h200" / "random"}  # fmt: skip
MOST_BYTES = 100_000


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of short contests on the simulation, as a run saves it."""
    tenants = [make_tenant(f"work_{us}us", us) for us in (200.0, 400.0)]
    report = BenchmarkReport(GPUInfo("card", 9, 0, 80.0), environment={"backend": "sim"})
    patch = pytest.MonkeyPatch()
    with patch.context() as settings:
        settings.setattr(scheduler_latency, "SETTLE_S", 0.1)
        settings.setattr(scheduler_contest, "SETTLE_S", 0.02)
        settings.setattr(scheduler, "CASES", {"75/25": (0.75, 0.25)})
        BenchmarkSuite._collect(report, scheduler.share_rows("75/25", tenants, 0.8, 0.1))
        report.results += scheduler_latency.latency_rows(tenants[0], tenants[1:], 5)
    kernels = overcommit._kernels("sim")
    for ratio in (1, 2):
        report.results += overcommit.contest(kernels, ratio, 0.1)
    report.results += churn.season_rows(20, 300.0)
    for call, side in (("evict", "host"), ("restore", "device")):
        report.add(BenchmarkResult(call, "eviction", {"MiB": 64}, value=1.25, unit="ms"))
        report.add(BenchmarkResult(f"plain pinned copy to the {side}", "eviction", {"MiB": 64}, value=55, unit="GB/s"))
        report.add(BenchmarkResult(f"plain pinned copy to the {side}", "overcommit", {"MiB": 2}, value=5, unit="GB/s"))
    path = tmp_path_factory.mktemp("report") / "r.json"
    report.save(path)
    return path


@pytest.fixture
def one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.figures.contests.CASES", {"75/25": (0.75, 0.25)})


MEASURED = ("shares-over-time", "share-error-by-window", "throughput-kept", "request-latency", "eviction-rate",
            "overcommit", "tenant-churn")  # fmt: skip


@pytest.mark.usefixtures("one_case")
def test_the_command_draws_what_a_run_saved(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main([str(saved), "--out", str(tmp_path)]) == 0
    report, told = BenchmarkReport.load(saved), capsys.readouterr().out
    assert sorted(path.stem for path in tmp_path.glob("*.svg")) == sorted(MEASURED)
    page = (tmp_path / PAGE).read_text()
    for name in MEASURED:
        drawn = (tmp_path / f"{name}.svg").read_bytes()
        assert digest(FIGURES[name].numbers(report)).encode() in drawn and b"<dc:date>" not in drawn
        assert len(drawn) < MOST_BYTES
        assert f"({name}.svg)" in page and FIGURES[name].caption in page
    again = svg(FIGURES["request-latency"], report)
    assert again == (tmp_path / "request-latency.svg").read_bytes(), "other bytes the second time"
    for name in FIGURES.keys() - set(MEASURED):
        assert f"left out: figure {name!r} needs" in told and f"{name}.svg" not in page


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_without_its_data_is_refused_by_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = BenchmarkReport(GPUInfo("card", 9, 0, 80.0))
    with pytest.raises(MissingDataError, match=f"figure '{name}' needs .* --suite {FIGURES[name].suite}"):
        FIGURES[name].numbers(empty)
    empty.save(tmp_path / "empty.json")
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path / "empty.json"), "--out", str(tmp_path / "out"), "--figure", name])
    assert stop.value.code == 2 and f"figure {name!r} needs" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_report_with_nothing_to_draw_and_one_that_is_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.json"
    BenchmarkReport(GPUInfo("card", 9, 0, 80.0)).save(empty)
    for path, told in ((empty, "holds nothing of operators-of-copy"), (tmp_path / "absent.json", "absent.json")):
        with pytest.raises(SystemExit) as stop:
            main([str(path), "--out", str(tmp_path / "out")])
        assert stop.value.code == 2 and told in capsys.readouterr().err


@pytest.mark.usefixtures("one_case")
def test_series_and_samples_that_a_report_lacks_are_named(saved: Path) -> None:
    report = BenchmarkReport.load(saved)
    for row in report.results:
        row.series, row.samples = {}, []
    for name, what in (
        ("shares-over-time", "the series of scheduler/throughput kept"),
        ("request-latency", "the samples of scheduler/request alone, p99"),
        ("overcommit", r"the series of overcommit/work\[overcommit=1\]"),
        ("tenant-churn", "the samples of churn/submit to admit, p99"),
    ):
        with pytest.raises(MissingDataError, match=what):
            FIGURES[name].numbers(report)


@pytest.mark.usefixtures("one_case")
def test_numbers_that_change_change_the_digest(saved: Path) -> None:
    report = BenchmarkReport.load(saved)
    before = digest(FIGURES["throughput-kept"].numbers(report))
    next(row for row in report.results if row.name == "throughput, priorities only").value = 12.5
    assert digest(FIGURES["throughput-kept"].numbers(report)) != before


def test_without_matplotlib_the_command_tells_how_to_get_it(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as stop:
        main([str(saved), "--out", str(tmp_path), "--figure", "eviction-rate"])
    assert stop.value.code == 2 and install_command("lab") in capsys.readouterr().err


def test_figures_import_matplotlib_only_to_draw() -> None:
    import subprocess

    code = "import sys, bench.figures; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_committed_pictures_belong_to_the_committed_reports() -> None:
    """Every figure that a report has the data of lies beside it, and shows that report."""
    for path, folder in COMMITTED.items():
        report, shown = BenchmarkReport.load(path), 0
        for name, figure in FIGURES.items():
            picture = folder / f"{name}.svg"
            if folder == DOCS / "images" and figure.suite != "operators":
                continue  # that report's other rows are older than those of the other
            try:
                numbers = figure.numbers(report)
            except MissingDataError:
                assert not picture.exists(), f"{picture} shows what {path.name} does not hold"
                continue
            shown += 1
            assert picture.exists(), f"draw {picture}"
            redraw = f"python -m bench.figures {path.relative_to(DOCS.parent)}"
            assert re.findall(r"numbers: (\w+)", picture.read_text()) == [digest(numbers)], f"{picture}: {redraw}"
            assert picture.stat().st_size < MOST_BYTES
        assert shown
    page = (DOCS / "performance" / "operators.md").read_text() + (DOCS / "performance" / "sharing.md").read_text()
    assert all(f"(../images/{name}.svg)" in page for name in ("operators-of-copy", "operators-beside-peers"))
    assert f"(../results/h200/{PAGE})" in page


@pytest.mark.parametrize(
    ("source", "name", "page"),
    [("matmul", "products-over-size", "matmul"), ("attention", "attention-over-length", "attention")],
)
def test_pictures_of_products_and_attention_belong_to_their_reports(source: str, name: str, page: str) -> None:
    folder = DOCS / "results" / "h100"
    numbers = FIGURES[name].numbers(BenchmarkReport.load(folder / f"{source}.json"))
    picture = folder / f"{name}.svg"
    assert re.findall(r"numbers: (\w+)", picture.read_text()) == [digest(numbers)], f"draw {picture} again"
    assert picture.stat().st_size < MOST_BYTES
    assert f"(results/h100/{name}.svg)" in (DOCS / f"{page}.md").read_text()


def test_rates_over_size_and_errors_by_type(tmp_path: Path) -> None:
    report = BenchmarkReport(GPUInfo("NVIDIA H200", 9, 0, 141.0), environment={})
    for name, value, peer in (("tf32 1 64 64 64", 1, 2), ("tf32 1 64 64 64 t", 3, 4), ("tf32 2 32 32 32", 5, 6)):
        row = BenchmarkResult(f"{name} beside PyTorch", "matmul", value=float(value), unit="TFLOP/s")
        row.peer, row.peer_value = "torch (cuBLAS)", float(peer)
        report.add(row)
    assert FIGURES["products-over-size"].numbers(report) == {
        "device": "NVIDIA H200",
        "curves": {"tf32": [[64, 3.0, 4.0]]},
        "peaks": {"tf32": 495.0},
    }
    with pytest.raises(MissingDataError, match="products of one size in each type"):
        FIGURES["products-by-error"].numbers(report)
    for name, error in (("gemm bfloat16 32", 0.5), ("gemm bfloat16 64", 0.25), ("fp8 float8_e4m3 64", 0.75)):
        report.add(BenchmarkResult(name, "products", value=1.0, rel_error=error))
    report.add(BenchmarkResult("gemm int8 64", "products", value=1.0))
    errors = [["float8_e4m3", 0.75], ["bfloat16", 0.25], ["int8", 0.0]]
    assert FIGURES["products-by-error"].numbers(report) == {"device": "NVIDIA H200", "size": 64, "errors": errors}
    pytest.importorskip("matplotlib")
    for name in ("products-over-size", "products-by-error"):
        assert b"NVIDIA H200" in svg(FIGURES[name], report)


def test_what_operators_lack_is_left_out_of_their_pictures() -> None:
    report = BenchmarkReport.load(DOCS / "results" / "h200" / "benchmark.json")
    report.results = [row for row in report.results if not row.name.startswith("cumsum bfloat16")]
    assert FIGURES["operators-of-copy"].numbers(report)["shares"]["bfloat16"]["cumsum"] is None
    assert FIGURES["operators-beside-peers"].numbers(report)["rates"]["bfloat16"]["cumsum"] == {}


# ---- what goes into the raw data ----


def test_series_hold_the_contest() -> None:
    run = Run(["a", "b"], [100.0, 300.0])
    run.ticks = [Tick(7 + i / 100, (5 + 3 * i, 9 + i), (1 + i * 3e-4, 2 + i * 3e-4)) for i in range(50)]
    series = run.series()
    assert len({len(column) for column in series.values()}) == 1 and series["t_us"][:2] == [0, 10_000]
    again = Run.from_series(series, {"a": 100.0, "b": 300.0, "c": 1.0})
    assert (again.names, again.kernel_us) == (run.names, run.kernel_us)
    assert again.kept() == pytest.approx(run.kept()) == pytest.approx(0.06)
    for window_s in (0.01, 0.1):
        for share in (*again.measured(window_s), *again.worked(window_s)):
            assert share == pytest.approx([0.5, 0.5], rel=1e-3)
        assert len(again.ends_s(window_s)) == len(again.measured(window_s))
    bare = Run(["a"], [1.0], [Tick(0, (0,)), Tick(1, (4,))])
    assert "gpu_us a" not in bare.series()
    assert Run.from_series(bare.series(), {"a": 1.0}).ticks == bare.ticks


@pytest.mark.parametrize("scheduled", [True, False])
def test_a_contest_begins_when_all_are_at_work(scheduled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_contest, "SETTLE_S", 0)

    def late(name: str) -> Tenant:
        tenant = make_tenant(name, 200.0)

        def launch(count: int) -> object:
            time.sleep(0.05)
            return tenant.launch(count)

        return replace(tenant, launch=launch)

    tenants = [late(name) for name in ("late_a", "late_b")]
    if scheduled:
        run = scheduler_contest.contest(tenants, (0.5, 0.5), 0.01)
    else:
        run = scheduler_contest.bare(tenants, [0, 0], 0.01)
    assert min(run.ticks[0].launches) > 0


def test_a_contest_without_progress_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(progress: int) -> Run:
        ticks = [Tick(i / 100, (i * progress, i * progress), (i * progress * 1e-4,) * 2) for i in range(100)]
        return Run(["a", "b"], [100.0, 100.0], ticks)

    monkeypatch.setattr(scheduler, "contest", lambda *_: run(1))
    monkeypatch.setattr(scheduler, "bare", lambda *_: run(0))
    monkeypatch.setattr(Tenant, "alone_us", lambda _: 100.0)
    tenants = [Tenant(name, lambda _: None, 100.0, lambda: 0) for name in "ab"]
    rows = list(scheduler.share_rows("75/25", tenants, 0.8, 0.1))
    known = {row.name: row.value for row in rows if isinstance(row, BenchmarkResult)}
    assert known["throughput kept"] == pytest.approx(2) and known["throughput, plain streams"] == 0
    missing = {row.key: row.reason for row in rows if isinstance(row, Unavailable)}
    assert len(missing) == 4 and not any("over" in name for name in known if name.startswith("throughput"))
    key = "scheduler/throughput over plain streams[shares=75/25]"
    assert missing[key] == "no kernel of anybody ended on plain streams in 0.2 s"


def test_series_tell_the_same_as_the_rows_of_their_run(saved: Path) -> None:
    report = BenchmarkReport.load(saved)
    rows = {row.name: row for row in report.results if row.category == "scheduler"}
    alone = {row.params["tenant"]: row.value or 0 for row in report.results if row.name == "kernel alone"}
    for name in ("throughput kept", "throughput, plain streams", "throughput, priorities only"):
        assert 100 * Run.from_series(rows[name].series, alone).kept() == pytest.approx(rows[name].value, rel=1e-3)


def test_a_report_is_a_line_a_result(saved: Path, tmp_path: Path) -> None:
    report = BenchmarkReport.load(saved)
    assert sum(line.startswith('{"name"') for line in saved.read_text().splitlines()) == len(report.results)
    report.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == saved.read_text()


def test_priorities_follow_the_shares() -> None:
    assert priorities_of((0.2, 0.5, 0.2, 0.1)) == [-1, -2, -1, 0]
    assert priorities_of(tuple(i / 100 for i in range(8))) == [0, -1, -2, -3, -4, -5, -5, -5]


def test_points_of_a_picture() -> None:
    assert thinned([float(i) for i in range(10)], 4) == [0.0, 3.0, 6.0, 9.0]
    assert thinned([], 4) == []
    points = distribution([float(i) for i in range(1000)], 10)
    assert points[0] == [0.0, 0.001] and points[-1] == [999.0, 1.0] and [990.0, 0.991] in points
    assert [label(value) for value in (0.1964, 19_572.2, 100.0, 55.27)] == ["0.196", "19,600", "100", "55.3"]
