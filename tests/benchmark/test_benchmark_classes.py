"""The documented benchmark classes measure what they are given, with its error, and say on what."""

from __future__ import annotations

import pytest

import pygpukit as gp
from pygpukit import benchmark


def rows(suite: benchmark.BenchmarkSuite) -> dict[str, benchmark.BenchmarkResult]:
    report = suite.run(verbose=False)
    assert not report.skipped
    return {row.name: row for row in report.results}


def test_a_suite_measures_products_of_the_given_shapes() -> None:
    suite = benchmark.BenchmarkSuite(warmup=1, iterations=3)
    suite.add_gemm([(33, 20, 64)], ["bf16", "tf32", "int8", "fp64"]).add_fp8_gemm([(16, 32, 64)])
    suite.add_gemv([(64, 48, "own")]).add_w8a8_gemv([(64, 48, "own")])
    found = rows(suite)
    assert list(found) == [
        "gemm bfloat16 33x20x64",
        "gemm tf32 33x20x64",
        "gemm int8 33x20x64",
        "gemm float64 33x20x64",
        "fp8 float8_e4m3 16x32x64",
        "gemv bf16 own 64x48",
        "gemv fp8 own 64x48",
        "gemv nvf4 own 64x48",
        "gemv w8a8 own 64x48",
    ]
    for name, row in found.items():
        assert row.category == name.partition(" ")[0].replace("fp8", "gemm")
        assert row.value and row.min_us and row.median_us and row.max_us and len(row.samples) == 3
        assert 0 < row.min_us <= row.median_us <= row.max_us
        assert row.params["times"] == "the host's" and 0 <= row.rel_error < 0.01
    assert found["gemm int8 33x20x64"].rel_error == 0 < found["gemm bfloat16 33x20x64"].rel_error
    row = found["gemm bfloat16 33x20x64"]
    assert row.median_us and row.value == pytest.approx(2e-6 * 33 * 20 * 64 / row.median_us, rel=1e-6)


def test_a_suite_measures_attention_of_the_given_lengths() -> None:
    suite = benchmark.BenchmarkSuite(warmup=1, iterations=2)
    found = rows(suite.add_attention([16], 2, 32).add_gqa([16, 33], 4, 2, 32))
    assert list(found) == ["prompt 1 2 2 16 32 causal", "prompt 1 4 2 16 32 causal", "prompt 1 4 2 33 32 causal"]
    assert len(benchmark.GQABenchmark([8, 9], 4, 2, 32, 1, 1).run()) == 2
    for row in found.values():
        assert row.category == "attention" and row.params["times"] == "the host's" and 0 < row.params["error"] < 0.01


def test_classes_have_their_defaults_and_refuse_types() -> None:
    assert [config[2] for config in benchmark.LLM_CONFIGS] == [
        f"{model}_{part}" for model in ("7B", "72B") for part in ("hidden", "mlp_up", "mlp_down")
    ]
    made = benchmark.GEMMBenchmark(), benchmark.GEMVBenchmark(), benchmark.SDPABenchmark(), benchmark.GQABenchmark()
    assert [(one.category, one.warmup, one.iterations) for one in made] == [
        (category, 10, 50) for category in ("gemm", "gemv", "attention", "attention")
    ]
    assert made[3].num_heads == 32 and made[3].num_kv_heads == 8 and made[2].num_kv_heads == 32
    with pytest.raises(gp.DTypeError, match="float13"):
        benchmark.GEMMBenchmark([(2, 2, 2)], ["float13"]).run()
