"""The pages of measurements are what tools/result_pages.py makes of the result files; the table names rows of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import result_pages  # noqa: E402
from performance_rows import ROWS, Row  # noqa: E402

from pygpukit.benchmark import BenchmarkReport, BenchmarkResult, GPUInfo  # noqa: E402


def test_every_page_is_what_the_tool_makes() -> None:
    made = result_pages.pages()
    assert len(made) > 20
    old = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert not old, "run python tools/result_pages.py"


def test_performance_is_one_page_that_leads_to_every_file() -> None:
    text = result_pages.TABLE.read_text(encoding="utf-8")
    assert text.count("\n") <= 120
    for path in result_pages.pages().keys() - {result_pages.TABLE}:
        assert f"({path.relative_to(result_pages.DOCS)})" in text, path
    for path in (result_pages.DOCS / "performance").glob("*.md"):
        assert f"(performance/{path.name})" in text, path


def test_a_page_has_every_number_of_its_file(tmp_path: Path) -> None:
    content = {
        "device": "card",
        "rows": [{"n": 1, "us": 2.5, "blocks": {"32x64": 13.5}}, {"n": 3, "torch | eager": 4}],
        "steps": {"1B": {"rates": [773.8, 772.7], "pairs": [[83, 1.304], [84, 1.5]]}},
    }
    path = tmp_path / "some.json"
    path.write_text(json.dumps(content))
    page = result_pages.page(path)
    words = ("card", "2.5", "32x64: 13.5", r"torch \| eager", "773.8, 772.7", "1.304", "84")
    assert [word for word in words if word not in page] == []
    assert page.startswith(f"# {tmp_path.name}/some\n") and "\n## steps\n\n### 1B\n" in page


def test_a_row_of_the_table_is_one_result() -> None:
    assert len({row.what for row in ROWS if not row.what.startswith(("the same", "work kept"))}) > 40
    rows = [
        BenchmarkResult("add", "arrays", value=2.0),
        BenchmarkResult("add", "arrays", {"Mi": 64}, value=3.0),
        BenchmarkResult("add", "arrays", {"Mi": 64}, value=3.0, peer="cupy", peer_value=4.0),
    ]
    report = BenchmarkReport(GPUInfo("card", 9, 0, 80.0), rows)
    assert result_pages.find(report, Row("addition", "f", "add", params={"Mi": 64})).value == 3.0
    assert result_pages.find(report, Row("addition", "f", "add", "cupy")).peer_value == 4.0
    for wanted in (Row("addition", "f", "add"), Row("addition", "f", "add", "torch"), Row("none", "f", "sub")):
        with pytest.raises(LookupError, match="name it more exactly"):
            result_pages.find(report, wanted)
