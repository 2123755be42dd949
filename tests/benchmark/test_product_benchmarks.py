"""`python -m pygpukit.benchmark --gemm --gemv --fp8` with sizes and types: rows, errors, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygpukit import benchmark
from pygpukit.benchmark import BenchmarkReport, BenchmarkSuite
from pygpukit.benchmark.products import Products, product, shape_of, work


def test_the_command_measures_saves_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "products.json"
    command = ["--gemm", "--gemv", "--fp8", "--sizes", "16,33", "--dtypes", "bfloat16,int8", "--no-peers", "--quiet"]
    command += ["--warmup", "1", "--iterations", "3"]
    assert benchmark.main([*command, "--save", str(saved), "--markdown"]) == 0
    printed = capsys.readouterr()
    assert not printed.err
    rows = BenchmarkReport.load(saved).results
    kinds = [
        f"{kind} {dtype} {size}" for kind in ("gemm", "gemv") for dtype in ("bfloat16", "int8") for size in (16, 33)
    ]
    assert [row.name for row in rows] == [*kinds, "fp8 float8_e4m3 16", "fp8 float8_e4m3 33"]
    for row in rows:
        assert row.params == {"plan": "numpy", "times": "the host's"} and len(row.samples) == 3
        assert (row.value or 0) > 0 and 0 <= row.rel_error < 0.01
        assert row.name in printed.out
        assert row.unit == ("GB/s" if "gemv" in row.name else "TOP/s" if "int8" in row.name else "TFLOP/s")
    assert all(row.rel_error == 0 for row in rows if "int8" in row.name)
    again = [*command, "--compare", str(saved), "--fail-on-regression", "--threshold", "1e9"]
    assert benchmark.main(again) == 0


def test_without_sizes_and_types_there_are_some() -> None:
    every = Products(("gemm", "gemv", "fp8"))
    assert len(every.asked(on_host=False)) == 3 * 3 + 3 * 3 + 3
    assert {size for _, _, size in every.asked(on_host=True)} == {64, 256}
    assert work("gemm", "bfloat16", shape_of("gemm", 1000)) == (2000.0, "TFLOP/s")
    assert work("gemv", "float32", shape_of("gemv", 1000)) == (4000.0, "GB/s")
    for dtype in ("float32", "tf32", "float64", "float16"):
        assert product("gemm", dtype, (9, 5, 7))[2] < 1e-3


def test_short_names_of_types_and_weights_of_eight_bits(tmp_path: Path) -> None:
    saved = tmp_path / "gemv.json"
    command = ["--gemv", "--dtypes", "bf16,fp8", "--sizes", "48", "--no-peers", "--quiet", "--iterations", "2"]
    assert benchmark.main([*command, "--save", str(saved)]) == 0
    rows = BenchmarkReport.load(saved).results
    assert [row.name for row in rows] == ["gemv bfloat16 48", "gemv float8_e4m3 48"]
    assert all(row.unit == "GB/s" and 0 <= row.rel_error < 0.02 for row in rows)
    assert work("gemv", "float8_e4m3", shape_of("gemv", 1000)) == (1000.0, "GB/s")


def test_every_suite_and_products_of_eight_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[BenchmarkSuite] = []

    class Told(Exception):
        pass

    def run(suite: BenchmarkSuite, *_: object) -> BenchmarkReport:
        asked.append(suite)
        raise Told

    monkeypatch.setattr(BenchmarkSuite, "run", run)
    with pytest.raises(Told):
        benchmark.main(["--all", "--fp8", "--quick"])
    assert asked[0].names == BenchmarkSuite().add_all().names != []
    assert [one.kinds for one in asked[0].benchmarks if isinstance(one, Products)] == [["fp8"]]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["--sizes", "64"], "--sizes is of --gemm, --gemv and --fp8"),
        (["--warmup", "2", "--suite", "pool"], "--warmup is of --gemm"),
        (["--gemm", "--sizes", "64,0"], "'0' is no whole number from 1 on"),
        (["--gemm", "--sizes", ""], "'' is no whole number"),
        (["--gemv", "--dtypes", "bfloat16,int4"], "'int4' is none of bfloat16"),
        (["--all", "--gemv"], "--all excludes"),
        (["--fp8", "--dtypes", "float32"], "--dtypes is of --gemm and --gemv"),
        (["--dtypes", "float32"], "--dtypes is of --gemm and --gemv"),
    ],
)
def test_what_cannot_be_is_refused(command: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        benchmark.main(["--quick", *command])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
