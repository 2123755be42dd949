"""`python -m bench.figures`: draw a saved report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pygpukit.benchmark.render import heading
from pygpukit.benchmark.result import BenchmarkReport

from .catalogue import FIGURES
from .picture import Figure, MissingDataError, svg

PAGE = "figures.md"


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m bench.figures",
        description="Draw what python -m pygpukit.benchmark --save measured. Needs matplotlib (extra lab).",
    )
    p.add_argument("report", type=Path, help="the JSON that --save wrote")
    p.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the pictures go, as SVG")
    p.add_argument(
        "--figure",
        action="append",
        choices=list(FIGURES),
        help=f"only this one, or an error; may be given several times (default: all that the report has, and {PAGE})",
    )
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0; 2 for a report that cannot be read or does not hold what was asked for, or without matplotlib."""
    p = parser()
    args = p.parse_args(argv)
    try:
        report = BenchmarkReport.load(args.report)
        pictures: dict[str, bytes] = {}
        for name in args.figure or FIGURES:
            try:
                pictures[name] = svg(FIGURES[name], report)
            except MissingDataError as missing:
                if args.figure:
                    raise
                print(f"left out: {missing}")
        if not pictures:
            raise MissingDataError(f"{args.report} holds nothing of {', '.join(FIGURES)}")
    except (OSError, ValueError, ModuleNotFoundError) as error:
        p.error(str(error))
    args.out.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (args.out / f"{name}.svg").write_bytes(picture)
        print(args.out / f"{name}.svg")
    if not args.figure:
        text = page(report, args.report.name, [FIGURES[name] for name in pictures])
        (args.out / PAGE).write_text(text, encoding="utf-8")
        print(args.out / PAGE)
    return 0


def page(report: BenchmarkReport, source: str, figures: list[Figure]) -> str:
    """A page that shows the pictures beside it. source: the report's file, as the page names it."""
    lines = [
        f"# Figures of {report.gpu.name}",
        "",
        f"Drawn from [{source}]({source}) by `python -m bench.figures {source} --out .`.",
        "",
        *heading(report),
    ]
    for figure in figures:
        lines += ["", f"## {figure.caption}", "", f"![{figure.caption}]({figure.name}.svg)"]
        lines += ["", f"Measured by `python -m bench --suite {figure.suite}`."]
    return "\n".join(lines) + "\n"
