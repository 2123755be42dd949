"""Suite shapes: its operations run on every layout, its bytes are those of the arrays, its map is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import shape_peers, shapes
from bench.figures import FIGURES, MissingDataError
from bench.figures.cli import main
from bench.shape_cases import DTYPES, LAYOUTS, OPERATIONS, elements, function
from pygpukit.benchmark import BenchmarkReport, BenchmarkResult, GPUInfo
from pygpukit.benchmark.result import Unavailable
from pygpukit.benchmark.suite import LONG, BenchmarkSuite


def test_the_map_is_of_sixty_operations_and_sixteen_layouts() -> None:
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS) == 60
    assert len({layout.name for layout in LAYOUTS}) == len(LAYOUTS) == 16
    assert "shapes" in LONG and not set(LONG) & set(BenchmarkSuite().add_all().names)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_runs_on_every_layout(dtype: str) -> None:
    for layout in LAYOUTS:
        small = layout.at("sim")
        names = shapes.arrays(small, dtype)
        x = names["x"]
        assert x.shape == small.shape and x.dtype.name == dtype and layout.at("cuda") is layout
        assert elements(small) * x.itemsize >= x.offset + x.nbytes
        assert x.is_contiguous() == (not layout.margin) and (x.offset > 0) == (layout.offset > 0)
        for operation in OPERATIONS:
            if operation.suits(dtype):
                function(operation.gp, names)()


def test_bytes_are_of_operands_and_results() -> None:
    names = shapes.arrays(LAYOUTS[10].at("sim"), "float32")
    size = names["x"].nbytes
    by_name = {operation.name: operation.gp for operation in OPERATIONS}
    for name, moved in (
        ("add", 3 * size),
        ("exp", 2 * size),
        ("stack", 4 * size),
        ("sum", size + 4),
        ("less", size * 9 // 4),
    ):
        assert shapes.moved_bytes(function(by_name[name], names), names) == moved, name


def test_rows_have_their_place_and_failures_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "LAYOUTS", LAYOUTS[8:9])
    monkeypatch.setattr(shapes, "DTYPES", ("int64",))
    monkeypatch.setattr(shapes, "OPERATIONS", OPERATIONS[:2])
    found = list(shapes.rows(True))
    keys = [row.key for row in found]
    assert keys[1] == "shapes/add[dtype=int64,layout=tiny,shape=11x11]" and "shapes/sub on the host" in keys
    assert all(isinstance(row, BenchmarkResult) and row.value for row in found)
    peers = list(shapes.peer_rows([], True))
    assert isinstance(peers[0], Unavailable) and "simulated" in peers[0].reason
    failed = shapes._measured("add", {"dtype": "int64"}, "gp.add(x)", shapes.arrays(LAYOUTS[8], "int64"), True)
    assert isinstance(failed, Unavailable) and "gp.add(x)" in failed.reason


def test_a_peer_that_is_not_there_is_said() -> None:
    (key, reason), *rest = list(shape_peers.peer_times("no such library"))
    assert key == "shapes/all other rows" and "KeyError" in str(reason) and not rest


def report(backend: str, peer: str | None = None) -> BenchmarkReport:
    own: dict[str, Any] = {"layout": "odd", "shape": "8190x5121", "dtype": "bfloat16"}
    found = BenchmarkReport(GPUInfo("card", 9, 0, 80.0), environment={"backend": backend})
    for name, rate in (("add", 500.0), (shapes.COPY, 1000.0)):
        row = BenchmarkResult(name, "shapes", own, value=10.0)
        row.bandwidth_gbps = rate
        found.add(row)
    if peer:
        found.add(BenchmarkResult("add", "shapes", own, value=10.0, peer=peer, peer_value=20.0))
    return found


def test_the_map_shows_what_was_measured(tmp_path: Path) -> None:
    speeds, shares = FIGURES["shapes-beside-pytorch"], FIGURES["shapes-of-copy"]
    cells = speeds.numbers(report("cuda", "torch"))["cells"]
    assert cells["bfloat16"]["add"][2] == 2.0 and cells["float32"]["add"][2] is None
    assert shares.numbers(report("cuda"))["cells"]["bfloat16"]["add"][2] == 50.0
    with pytest.raises(MissingDataError, match="torch"):
        speeds.numbers(report("cuda", "cupy"))
    with pytest.raises(MissingDataError, match="GPU"):
        shares.numbers(report("sim"))
    pytest.importorskip("matplotlib")
    report("cuda", "torch").save(tmp_path / "r.json")
    names = ["--figure", speeds.name, "--figure", shares.name]
    assert main([str(tmp_path / "r.json"), "--out", str(tmp_path), *names]) == 0
    assert (tmp_path / f"{speeds.name}.svg").stat().st_size < 100_000
