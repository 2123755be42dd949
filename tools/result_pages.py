#!/usr/bin/env python3
"""Writes a page beside each file of measurements in docs/results, and the table of docs/performance.md from them.

python tools/result_pages.py          after a result file came or changed
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from performance_rows import ROWS, Row  # noqa: E402

from pygpukit.benchmark import BenchmarkReport, BenchmarkResult  # noqa: E402
from pygpukit.benchmark.render import markdown, number  # noqa: E402

DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
TABLE = DOCS / "performance.md"
BEGIN, END = "<!-- made by tools/result_pages.py -->\n", "<!-- end -->\n"


def pages() -> dict[Path, str]:
    """Every page and the table, by path."""
    texts = {path.with_suffix(".md"): page(path) for path in sorted(RESULTS.rglob("*.json")) if measured(path)}
    head, _, rest = TABLE.read_text(encoding="utf-8").partition(BEGIN)
    return {**texts, TABLE: f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"}


def measured(path: Path) -> bool:
    """True if a file holds measurements of a device, or a report of the benchmark: others have pages of their own."""
    return path.parent.name in {"h100", "h200"} or is_report(json.loads(path.read_text(encoding="utf-8")))


def is_report(content: Any) -> bool:
    return isinstance(content, dict) and content.keys() >= {"gpu", "results", "environment"}


def page(path: Path) -> str:
    """The page of one file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    lines = [f"# {path.parent.name}/{path.stem}", ""]
    lines += [f"Made by `python tools/result_pages.py` of [{path.name}]({path.name}), which holds more digits.", ""]
    if is_report(content):
        report = BenchmarkReport.load(path)
        shown = replace(report, results=[_plain(row) for row in report.results])
        lines += [markdown(shown, only_measured=True)]
        lines += ["", *(f"Not measured: {key}: {reason}" for key, reason in report.skipped.items())]
    else:
        lines += _described(content, 2)
    return "\n".join(line.rstrip() for line in lines).rstrip().replace("\n\n\n", "\n\n") + "\n"


def _plain(row: BenchmarkResult) -> BenchmarkResult:
    """A row whose parameters can stand in a cell of a table."""
    short = {key: number(value) if isinstance(value, float) else value for key, value in row.params.items()}
    return replace(row, params=short)


def _described(content: Any, level: int) -> Iterator[str]:
    """JSON of any form: plain values as a list, records of plain values as a table, what is nested below headings."""
    if isinstance(content, Mapping):
        plain = {key: value for key, value in content.items() if _is_plain(value)}
        if plain:
            yield from (f"- {key}: {_cell(value)}" for key, value in plain.items())
            yield ""
        for key, value in content.items():
            if key not in plain:
                yield from (f"{'#' * min(level, 6)} {key}", "")
                yield from _described(value, level + 1)
        return
    records = [row if isinstance(row, Mapping) else dict(enumerate(row, 1)) for row in content]
    columns = list(dict.fromkeys(key for row in records for key in row))
    yield "| " + " | ".join(map(_cell, columns)) + " |"
    yield "|" + " --- |" * len(columns)
    yield from ("| " + " | ".join(_cell(row.get(key, "")) for key in columns) + " |" for row in records)
    yield ""


def _is_plain(value: Any) -> bool:
    """A number, a text, or a list of them."""
    if isinstance(value, list):
        return not any(isinstance(item, (dict, list)) for item in value)
    return not isinstance(value, dict)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_cell(one)}" for key, one in value.items())
    return str(value).replace("|", "\\|")


def table() -> str:
    """The lines of docs/performance.md: what, ours, the peer, the ratio, where it stands and what measures it."""
    reports = {row.file: BenchmarkReport.load(RESULTS / f"{row.file}.json") for row in ROWS}
    lines = ["| what | ours | peer | ratio | file | suite |", "| --- | ---: | --- | ---: | --- | --- |"]
    for row in ROWS:
        entry = find(reports[row.file], row)
        peer = f"{entry.peer} {number(entry.peer_value)} {entry.unit}" if entry.peer else ""
        link = f"[{row.file}](results/{row.file}.md)"
        ours = f"{number(entry.value)} {entry.unit}"
        lines.append(f"| {row.what} | {ours} | {peer} | {number(entry.ratio)} | {link} | `{entry.category}` |")
    return "\n".join(lines) + "\n"


def find(report: BenchmarkReport, row: Row) -> BenchmarkResult:
    """The one result that a row is about. Raises LookupError where there is none, or more than one."""
    matches = [
        result
        for result in report.results
        if result.name == row.name
        and (result.peer or "").startswith(row.peer)
        and bool(result.peer) == bool(row.peer)
        and row.params.items() <= result.params.items()
    ]
    if len(matches) != 1:
        raise LookupError(f"{row.file}.json has {len(matches)} results for {row}; name it more exactly")
    return matches[0]


def main() -> int:
    """Writes all."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
