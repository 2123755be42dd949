"""The benchmark command's frame: rows, reports, comparison, goals, flags; and a quick run on the simulation."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import bench
from bench import promptness, variants
from pygpukit import benchmark
from pygpukit.benchmark import BenchmarkReport, BenchmarkResult, GPUInfo, compare_reports, launch, main
from pygpukit.benchmark import environment as where
from pygpukit.benchmark.base import Benchmark
from pygpukit.benchmark.goals import GOALS, check_goals
from pygpukit.benchmark.render import goals_text, markdown, text
from pygpukit.benchmark.result import from_samples
from pygpukit.benchmark.suite import SUITES, BenchmarkSuite, load


def report(*rows: BenchmarkResult, device: str = "card", backend: str = "sim") -> BenchmarkReport:
    gpu = GPUInfo(device, 9, 0, 80.0)
    return BenchmarkReport(gpu, list(rows), version="1.0", environment={"backend": backend})


def row(value: float, name: str = "copy", spread: float = 0.0, **more: object) -> BenchmarkResult:
    return BenchmarkResult(name, "arrays", value=value, spread=spread, **more)  # type: ignore[arg-type]


def test_from_samples_takes_the_median_and_repeats_times_in_microseconds() -> None:
    result = from_samples("x", "y", [1.0, 2.0, 300.0], "ms")
    assert (result.value, result.median_us, result.min_us, result.max_us) == (2.0, 2000.0, 1000.0, 300_000.0)
    assert result.iterations == 3
    assert from_samples("x", "y", [5.0], "GB/s").median_us is None


def test_documented_result_fields_construct_a_row() -> None:
    result = BenchmarkResult("mm", "gemm", {"n": 64}, median_us=3.0, min_us=2.0, max_us=9.0, std_us=0.5, tflops=1.5)
    assert (result.value, result.unit, result.correct, result.rel_error) == (3.0, "us", True, 0.0)
    with pytest.raises(ValueError, match="neither a value nor median_us"):
        BenchmarkResult("mm", "gemm")


def test_report_survives_its_file(tmp_path: Path) -> None:
    saved = report(row(3.5, peer="cupy", peer_value=7.0), row(1.0, "add", params={"MiB": 4}))
    saved.save(tmp_path / "r.json")
    again = BenchmarkReport.load(tmp_path / "r.json")
    assert again.to_dict() == saved.to_dict()
    assert again.results[0].ratio == 0.5
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == 1


def test_a_brief_report_keeps_what_its_readers_use(tmp_path: Path) -> None:
    own = from_samples("add", "shapes", [1.23456, 2.34567, 3.0, 9.0], "us", params={"n": 4}, bandwidth_gbps=98765.4)
    alone = BenchmarkResult("mul", "shapes", value=5.0, unit="GB/s", better="higher", peer="torch", peer_value=4.0)
    peers = [
        BenchmarkResult("add", "shapes", {"n": 4}, value=own.value, peer=name, peer_value=value)
        for name, value in (("torch", 7.123456), ("cupy", 8.0))
    ]
    saved = report(own, alone, *peers)
    saved.save(tmp_path / "r.json", brief=True)
    text = (tmp_path / "r.json").read_text()
    assert sum(line.startswith('{"name"') for line in text.splitlines()) == 2 and "samples" not in text
    again = BenchmarkReport.load(tmp_path / "r.json")
    assert [one.key for one in again.results] == [one.key for one in saved.results]
    assert {one.timestamp for one in again.results} == {saved.timestamp}
    for was, now in zip(saved.results, again.results, strict=True):
        for name in ("value", "spread", "bandwidth_gbps", "peer_value"):
            told = getattr(was, name)
            assert getattr(now, name) == (told if told is None else pytest.approx(told, rel=1e-3)), name
        assert (now.unit, now.better) == (was.unit, was.better)
    again.save(tmp_path / "again.json", brief=True)
    assert (tmp_path / "again.json").read_text() == text
    with pytest.raises(SystemExit):
        benchmark.main(["--brief"])


@pytest.mark.parametrize("content", ["", "{}", '{"schema": 99}', "[1]"])
def test_foreign_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"bad\.json"):
        BenchmarkReport.load(path)


@pytest.mark.parametrize(
    ("now", "then", "better", "slower"),
    [(1.2, 1.0, "lower", True), (0.8, 1.0, "lower", False), (0.8, 1.0, "higher", True), (1.2, 1.0, "higher", False)],
)
def test_comparison_knows_which_direction_is_worse(now: float, then: float, better: str, slower: bool) -> None:
    comparison = compare_reports(report(row(now, better=better)), report(row(then, better=better)))
    assert comparison.has_regression() is slower
    assert len(comparison.regressions) == slower
    assert len(comparison.improvements) == (not slower)


def test_comparison_ignores_what_is_within_threshold_or_noise() -> None:
    assert not compare_reports(report(row(1.04)), report(row(1.0))).regressions
    assert compare_reports(report(row(1.06)), report(row(1.0))).regressions
    assert not compare_reports(report(row(1.2, spread=0.15)), report(row(1.0, spread=0.1))).regressions


def test_comparison_lists_missing_and_new_rows_and_refuses_another_device() -> None:
    comparison = compare_reports(report(row(1, "new")), report(row(1, "old")))
    assert (comparison.missing, comparison.new) == (["arrays/old"], ["arrays/new"])
    assert "arrays/old" in comparison.summary()
    with pytest.raises(ValueError, match="measure a baseline on this device"):
        compare_reports(report(row(1)), report(row(1), device="other card"))


def test_a_row_is_compared_whatever_plan_it_took_and_error_it_had() -> None:
    then = BenchmarkResult("a product", "matmul", {"plan": "tile 64x64x64: fast", "error": 0.1, "dtype": "int8"}, 1.0)
    now = BenchmarkResult("a product", "matmul", {"plan": "mma 64x64x64: slow", "error": 0.2, "dtype": "int8"}, 2.0)
    comparison = compare_reports(report(now), report(then))
    assert comparison.has_regression() and not comparison.missing and not comparison.new
    assert "a product[dtype=int8]: 1 -> 2 us, by mma 64x64x64, then tile 64x64x64" in comparison.summary()


def test_a_zero_that_rises_is_a_regression() -> None:
    assert compare_reports(report(row(1.0)), report(row(0.0))).has_regression()
    assert not compare_reports(report(row(0.0)), report(row(0.0))).has_regression()


def test_goals_pass_fail_and_stay_open() -> None:
    slow = BenchmarkResult("import pygpukit over a bare interpreter", "imports", value=41.0, unit="ms")
    fast = BenchmarkResult("pool hit, Rust", "pool", value=59.0, unit="ns")
    by_key = {v.goal.key: v for v in check_goals(report(slow, fast))}
    assert len(by_key) == len(GOALS)
    assert by_key["imports/import pygpukit over a bare interpreter"].met is False
    assert by_key["pool/pool hit, Rust"].met is True
    launch = by_key["launch/Python launch over C++ loop"]
    assert (launch.met, launch.reason) == (None, "needs a GPU")
    assert goals_text(report(slow)).startswith("FAIL  imports/import pygpukit")


def test_text_and_markdown_show_every_row_and_peer() -> None:
    shown = report(row(2.0, peer="cupy", peer_value=4.0), row(5.0, "add"))
    for output in (text(shown), markdown(shown)):
        assert "cupy" in output and "0.5" in output and "add" in output
    assert markdown(shown).count("\n| arrays: ") == 2


def test_every_suite_has_rows_and_unknown_ones_are_refused() -> None:
    for name in SUITES:
        assert callable(load(name).rows)
    with pytest.raises(ValueError, match="there is no suite 'gemm'"):
        BenchmarkSuite().add_suite("gemm")


def test_every_suite_of_the_checkout_is_registered_and_the_wheel_names_where_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_bench = {
        path.stem for path in Path(bench.__file__).parent.glob("*.py") if "\ndef rows(quick: bool)" in path.read_text()
    }
    assert of_bench == {name for name, module in SUITES.items() if module.startswith("bench.")}
    alone = "from pygpukit.benchmark import main; main(['--suite', 'churn'])"
    ended = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and "no suite 'churn'" in ended.stderr and "python -m bench" in ended.stderr
    with pytest.raises(SystemExit):
        main(["--suite", "churns"])
    assert "churn, llm" in capsys.readouterr().err


def test_a_report_names_the_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYGPUKIT_GIT", "v9-1-gabcdef0")
    monkeypatch.setattr(where, "__file__", str(tmp_path / "pygpukit" / "benchmark" / "environment.py"))
    assert where.environment()["git"] == "v9-1-gabcdef0", "as installed"
    monkeypatch.delenv("PYGPUKIT_GIT")
    assert where.environment()["git"] == ""
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PYGPUKIT_GIT", "of a wheel")
    monkeypatch.setattr(where, "_output", lambda command, cwd=None: "of the checkout" if cwd == tmp_path else "")
    assert where.environment()["git"] == "of the checkout"


def test_measure_kernel_by_events_and_by_the_host_clock() -> None:
    import pygpukit as gp

    a, b = gp.ones(1024), gp.ones(1024)
    for sync in (None, gp.synchronize):
        middle, low, high, deviation = benchmark.measure_kernel(lambda: gp.add(a, b), 1, 5, sync)
        assert 0 <= low <= middle <= high
        assert deviation >= 0
    with pytest.raises(ValueError, match="at least 1"):
        benchmark.measure_kernel(lambda: None, 0, 0)


def test_the_cost_of_frames_is_what_the_batches_near_them_took_longer() -> None:
    ms = 1_000_000
    batches = [(at * 10 * ms, at * 10 * ms + 2 * ms) for at in range(20)]
    slow = [(begin, end + ms) if begin in (50 * ms, 150 * ms) else (begin, end) for begin, end in batches]
    frames = [(50 * ms, 50 * ms + ms), (148 * ms, 149 * ms)]
    assert launch.added_percent(slow, frames) == pytest.approx(2 * 1 / (20 * 2) * 100)
    assert launch.added_percent(slow, frames[:1]) < 3  # a slow batch without a frame is no frame's doing
    assert launch.added_percent(batches, frames) == pytest.approx(0)
    assert math.isnan(launch.added_percent(batches[:1], [(0, ms)]))
    assert math.isnan(launch.added_percent(batches, []))  # a sampler that made none costs nothing that was seen


def test_an_interrupt_is_timed_only_while_its_wait_lasts() -> None:
    event = threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        _time_interrupts(event)
    finally:
        signal.signal(signal.SIGINT, before)


def _time_interrupts(event: threading.Event) -> None:
    assert promptness.interrupt_ms(lambda: event.wait(60), lambda: True) >= 0
    with pytest.raises(RuntimeError, match="ended before it was interrupted"):
        promptness.interrupt_ms(lambda: None, lambda: False)
    assert not event.wait(2 * promptness.SETTLE_S), "no signal comes later"


def test_every_wait_of_promptness_has_a_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = {wait: [3.0, 9.0, 1.0] for wait in promptness.ROWS}
    monkeypatch.setattr(promptness, "interpreter_json", lambda *_, **__: samples)
    monkeypatch.setattr(promptness, "subshells", lambda: True)
    monkeypatch.setattr(promptness, "lab_samples", lambda _: ([2.0, 4.0], [5.0, 1.0]))
    found = BenchmarkSuite(quick=True).add_suite("promptness").run(verbose=False)
    verdicts = {v.goal.key: v for v in check_goals(found) if v.goal.key.startswith("promptness/")}
    assert found.skipped == {} and {row.key for row in found.results} == set(verdicts)
    assert [row.value for row in found.results] == [9.0, 9.0, 9.0, 4.0, 5.0]


def test_a_run_that_is_cut_short_leaves_what_it_measured(tmp_path: Path) -> None:
    class Cut(Benchmark):
        def run(self) -> list[BenchmarkResult]:
            raise KeyboardInterrupt

    saved = tmp_path / "report.json"
    with pytest.raises(KeyboardInterrupt):
        BenchmarkSuite(quick=True).add_suite("limits").add(Cut).run(verbose=False, save=saved)
    assert {row.category for row in BenchmarkReport.load(saved).results} == {"limits"}


def test_launches_are_timed_while_something_else_is_made() -> None:
    made_ms, longest_ms = variants.beside_launches(lambda text: time.sleep(0.05), b"")
    assert made_ms >= 50 and longest_ms > 0


def test_own_benchmarks_join_a_report() -> None:
    class Mine(Benchmark):
        category = "mine"

        def run(self) -> list[BenchmarkResult]:
            return [BenchmarkResult("x", self.category, median_us=float(self.iterations))]

    found = BenchmarkSuite(iterations=9).add(Mine(iterations=7)).add(Mine).run(verbose=False)
    assert [r.value for r in found.results] == [7.0, 9.0]
    assert found.environment["backend"] == "sim"
    assert found.gpu.name


def test_attention_of_chosen_lengths(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--attention", "--decode", "--seq-lens", "16,40", "--warmup", "1", "--iterations", "2", "--quiet"]
    assert benchmark.main(command) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("attention")]
    for line, shape in zip(lines, ("prompt 1 32 8 16", "prompt 1 32 8 40", "decode 1 32 8 16"), strict=False):
        assert shape in line and "error=0.00" in line and "the host's" in line
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seq-lens", "16"], "--seq-lens is of --attention and --decode"),
        (["--iterations", "3"], "--iterations is of --gemm, --gemv, --fp8, --attention, --decode"),
        (["--decode", "--sizes", "16"], "--sizes is of --gemm, --gemv and --fp8"),
        (["--attention", "--all"], "--all excludes"),
        (["--attention", "--seq-lens", "0"], "'0' is no whole number from 1 on"),
    ],
)
def test_flags_that_would_be_ignored_are_refused(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        benchmark.main(["--quick", *flags])
    assert stop.value.code == 2 and message in capsys.readouterr().err


def test_command_saves_compares_and_fails_on_a_regression(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    command = [sys.executable, "-m", "pygpukit.benchmark", "--quick", "--suite", "pool"]
    done = subprocess.run([*command, "--save", str(baseline)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gp.empty and release, Python" in done.stdout

    content = json.loads(baseline.read_text())
    assert content["environment"]["backend"] == "sim"
    for result in content["results"]:  # as if the past had been a thousand times faster, and without noise
        result["value"] /= 1000
        result["spread"] = 0
        result["samples"] = []
    baseline.write_text(json.dumps(content))
    again = [*command, "--compare", str(baseline), "--fail-on-regression", "--markdown"]
    done = subprocess.run(again, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "slower" in done.stdout and "| what | figure |" in done.stdout


def test_fail_on_regression_needs_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmark.main(["--fail-on-regression"])
    assert "needs --compare" in capsys.readouterr().err


def test_what_would_fail_after_measuring_is_refused_before(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BenchmarkSuite, "run", lambda *_: pytest.fail("measured"))
    report(row(1.0)).save(tmp_path / "ok.json")
    compare = ["--compare", str(tmp_path / "ok.json"), "--fail-on-regression", "--threshold"]
    for command, message in [
        ([*compare, "nan"], "argument --threshold: 'nan' is no finite number from 0 on"),
        ([*compare, "inf"], "argument --threshold: 'inf'"),
        ([*compare, "-1"], "argument --threshold: '-1'"),
        ([*compare, "much"], "argument --threshold: 'much'"),
        (["--save", str(tmp_path / "none" / "x.json")], "x.json: name a file in a folder that exists"),
        (["--save", str(tmp_path)], f"--save {tmp_path}: name a file"),
        (["--compare", str(tmp_path / "none.json")], "--compare: [Errno 2] No such file"),
    ]:
        with pytest.raises(SystemExit) as stop:
            benchmark.main(["--quick", "--suite", "pool", *command])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
