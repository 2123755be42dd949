"""`python -m pygpukit.benchmark`: measure, save, compare."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from .compare import compare_reports
from .goals import check_goals
from .products import DTYPES, KINDS, Products
from .render import goals_text, markdown, text
from .result import BenchmarkReport
from .suite import LONG, SUITES, BenchmarkSuite

# Flags of the documented command whose suites do not exist in this version: refused by name, never ignored.
ABSENT = {
    "--attention": "attention",
    "--seq-lens": "attention",
}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m pygpukit.benchmark", description="Measure pygpukit, beside its peers where they are installed."
    )
    p.add_argument("--quick", action="store_true", help="fewer samples, smaller arrays, no peers")
    p.add_argument(
        "--all", action="store_true", help=f"every suite but {', '.join(LONG)} (also the default when none is named)"
    )
    p.add_argument("--suite", action="append", choices=SUITES, help="only this suite; may be given several times")
    p.add_argument("--arrays", action="store_true", help="the array operators beside a device copy: --suite operators")
    p.add_argument("--conv", action="store_true", help="convolutions of models beside cuDNN: --suite conv")
    p.add_argument(
        "--gemm",
        action="store_true",
        help="matrix products beside cuBLAS: --suite matmul; with one of the next options, square ones of these sizes",
    )
    p.add_argument("--gemv", action="store_true", help="products of one row with a square weight")
    p.add_argument("--fp8", action="store_true", help="square products of float8_e4m3")
    p.add_argument("--sizes", type=_sizes, default=(), metavar="N,N", help="of --gemm, --gemv and --fp8")
    p.add_argument(
        "--dtypes", type=_dtypes, default=(), metavar="T,T", help=f"of --gemm and --gemv: {', '.join(DTYPES)}"
    )
    p.add_argument("--warmup", type=_count, help="calls of each of these products before it is measured")
    p.add_argument("--iterations", type=_count, help="samples of each of these products, at most")
    p.add_argument("--quiet", action="store_true", help="do not say what is being measured")
    p.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, help="measure installed peers too (default: unless --quick)"
    )
    p.add_argument("--save", metavar="F", help="write the report as JSON")
    p.add_argument("--brief", action="store_true", help="with --save: without samples, with four digits")
    p.add_argument("--compare", metavar="F", help="compare with a saved report of the same device")
    p.add_argument(
        "--threshold", type=_threshold, default=0.05, help="relative change that counts (default 0.05; noise is added)"
    )
    p.add_argument(
        "--fail-on-regression", action="store_true", help="with --compare: exit code 1 when a row got slower"
    )
    p.add_argument(
        "--check-goals", action="store_true", help="print the limits of this version; exit code 1 when one is missed"
    )
    p.add_argument("--markdown", action="store_true", help="print Markdown tables")
    for flag, what in ABSENT.items():
        p.add_argument(flag, nargs="?", const="", help=f"(not in this version: {what})")
    return p


def _simulated() -> bool:
    from ..core.backend import ensure, is_sim

    ensure()
    return is_sim()


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.split(","))


def _count(text: str) -> int:
    if not text.strip().isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _threshold(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no finite number from 0 on")
    return number


def _dtypes(text: str) -> tuple[str, ...]:
    for name in (names := tuple(part.strip() for part in text.split(","))):
        if name not in DTYPES:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(DTYPES)}")
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 for a regression or missed goal that was asked about; 2 for a refused flag or baseline."""
    p = parser()
    args = p.parse_args(argv)
    for flag, what in ABSENT.items():
        if getattr(args, flag[2:].replace("-", "_")) is not None:
            p.error(f"{flag}: this version has no suite for {what}; it measures {', '.join(SUITES)}")
    if args.fail_on_regression and not args.compare:
        p.error("--fail-on-regression needs --compare FILE")
    if args.brief and not args.save:
        p.error("--brief needs --save FILE")
    if args.save and (Path(args.save).is_dir() or not Path(args.save).parent.is_dir()):
        p.error(f"--save {args.save}: name a file in a folder that exists")
    kinds = [kind for kind in KINDS if getattr(args, kind)]
    settings = {"sizes": args.sizes, "dtypes": args.dtypes, "warmup": args.warmup, "iterations": args.iterations}
    given = [f"--{name}" for name, value in settings.items() if value]
    if args.dtypes and not {"gemm", "gemv"} & set(kinds):
        p.error("--dtypes is of --gemm and --gemv: name one of them; --fp8 is of float8_e4m3")
    if given and not kinds:
        p.error(f"{given[0]} is of --gemm, --gemv and --fp8: name one of them")
    names = [*(args.suite or ()), *(["operators"] if args.arrays else ()), *(["conv"] if args.conv else ())]
    if kinds == ["gemm"] and not given and not _simulated():
        names.append("matmul")
        kinds = []
    if args.all and (names or kinds):
        p.error("--all excludes --suite, --arrays, --conv, --gemm, --gemv and --fp8")
    try:
        baseline = BenchmarkReport.load(args.compare) if args.compare else None
    except (OSError, ValueError) as error:
        p.error(f"--compare: {error}")

    peers = not args.quick if args.peers is None else args.peers
    suite = BenchmarkSuite(quick=args.quick, peers=peers)
    suite = suite.add_suite(*dict.fromkeys(names)) if names or kinds else suite.add_all()
    if kinds:
        suite.add(Products(kinds, **settings, peers=peers))
    report = suite.run(not args.quiet, lambda line: print(line, file=sys.stderr, flush=True), args.save)
    if args.brief:
        report.save(args.save, brief=True)
    print(markdown(report) if args.markdown else text(report))

    failed = False
    if args.check_goals:
        if not args.markdown:  # the Markdown report holds the same table
            print(goals_text(report))
        failed = any(v.met is False for v in check_goals(report))
    if baseline is not None:
        try:
            comparison = compare_reports(report, baseline, args.threshold)
        except ValueError as error:
            p.error(str(error))
        print(comparison.summary())
        failed |= args.fail_on_regression and comparison.has_regression(args.threshold)
    return 1 if failed else 0
