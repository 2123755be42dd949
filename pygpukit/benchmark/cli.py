"""`python -m pygpukit.benchmark`: measure, save, compare."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from .attention import Attention
from .base import Benchmark
from .compare import compare_reports
from .drawn import CATEGORY as RANDOM
from .drawn import COUNT, Drawn
from .goals import check_goals
from .measure import simulated
from .products import DTYPES, KINDS, SHORT, Products
from .render import goals_text, markdown, text
from .result import BenchmarkReport
from .suite import LONG, SUITES, BenchmarkSuite

# Flags of chosen products and lengths.
_CHOOSING = ("gemm", "gemv", "fp8", "attention", "decode")


def parser(prog: str) -> argparse.ArgumentParser:
    """The command's options, with the suites that are registered."""
    p = argparse.ArgumentParser(prog=prog, description="Measure pygpukit, beside its peers where they are installed.")
    p.add_argument("--quick", action="store_true", help="fewer samples, smaller arrays, no peers")
    but = f" but {', '.join(sorted(LONG))}" if LONG else ""
    p.add_argument(
        "--all", action="store_true", help=f"every suite{but} (also the default when none is named); --fp8 may be added"
    )
    p.add_argument(
        "--suite",
        action="append",
        type=_suite,
        metavar="S",
        help=f"may be given several times: {', '.join((*SUITES, RANDOM))}",
    )
    p.add_argument("--seed", type=_seed, help="of --suite random: which shapes are drawn (default 0)")
    p.add_argument("--count", type=_count, help=f"of --suite random: cases of each family (default {COUNT})")
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
        "--attention",
        action="store_true",
        help="prompts and decoding beside cuDNN: --suite attention; with --seq-lens causal prompts of these lengths",
    )
    p.add_argument("--decode", action="store_true", help="steps of decoding of one sequence, by its length")
    p.add_argument("--seq-lens", type=_sizes, default=(), metavar="N,N", help="of --attention and --decode")
    p.add_argument(
        "--dtypes", type=_dtypes, default=(), metavar="T,T", help=f"of --gemm and --gemv: {', '.join(DTYPES)}"
    )
    p.add_argument("--warmup", type=_count, help="calls of each of these before it is measured")
    p.add_argument("--iterations", type=_count, help="samples of each of these, at most")
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
    return p


def _suite(name: str) -> str:
    if name not in (*SUITES, RANDOM):
        raise argparse.ArgumentTypeError(
            f"there is no suite {name!r}, but {', '.join((*SUITES, RANDOM))}; a checkout has more: python -m bench"
        )
    return name


def _seed(text: str) -> int:
    if not text.strip().isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


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
    for name in (names := tuple(SHORT.get(part.strip(), part.strip()) for part in text.split(","))):
        if name not in DTYPES:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join((*DTYPES, *SHORT))}")
    return names


def _chosen(p: argparse.ArgumentParser, args: argparse.Namespace, peers: bool) -> tuple[list[str], list[Benchmark]]:
    """The suites and the benchmarks that flags name. Ends the command for flags that would be ignored."""
    kinds = [kind for kind in KINDS if getattr(args, kind)]
    steps = [kind for kind, asked in (("prompt", args.attention), ("decode", args.decode)) if asked]
    if args.dtypes and not {"gemm", "gemv"} & set(kinds):
        p.error("--dtypes is of --gemm and --gemv: name one of them; --fp8 is of float8_e4m3")
    if args.sizes and not kinds:
        p.error("--sizes is of --gemm, --gemv and --fp8: name one of them")
    if args.seq_lens and not steps:
        p.error("--seq-lens is of --attention and --decode: name one of them")
    samples = {"warmup": args.warmup, "iterations": args.iterations}
    for name, value in samples.items():
        if value and not kinds and not steps:
            p.error(f"--{name} is of {', '.join(f'--{one}' for one in _CHOOSING)}: name one of them")
    names = [*(args.suite or ()), *(["operators"] if args.arrays else ()), *(["conv"] if args.conv else ())]
    whole_suites = not any(samples.values()) and not simulated()
    if kinds == ["gemm"] and not (args.sizes or args.dtypes) and whole_suites:
        names, kinds = [*names, "matmul"], []
    if steps == ["prompt"] and not args.seq_lens and whole_suites:
        names, steps = [*names, "attention"], []
    if args.all and (names or steps or set(kinds) - {"fp8"}):
        others = ", ".join(f"--{one}" for one in _CHOOSING if one != "fp8")
        p.error(f"--all excludes --suite, --arrays, --conv, {others}")
    benchmarks: list[Benchmark] = []
    drawn = {name: value for name in ("seed", "count") if (value := getattr(args, name)) is not None}
    if drawn and RANDOM not in names:
        p.error(f"--{next(iter(drawn))} is of --suite {RANDOM}: name it")
    if RANDOM in names:
        names = [name for name in names if name != RANDOM]
        benchmarks.append(Drawn(**{"seed": 0, **drawn}, quick=args.quick, peers=peers))
    if kinds:
        benchmarks.append(Products(kinds, args.sizes, args.dtypes, **samples, peers=peers))
    if steps:
        benchmarks.append(Attention(steps, args.seq_lens, **samples, peers=peers))
    return names, benchmarks


def main(argv: Sequence[str] | None = None, prog: str = "python -m pygpukit.benchmark") -> int:
    """Exit code 0; 1 for a regression or missed goal that was asked about; 2 for a refused flag or baseline."""
    p = parser(prog)
    args = p.parse_args(argv)
    if args.fail_on_regression and not args.compare:
        p.error("--fail-on-regression needs --compare FILE")
    if args.brief and not args.save:
        p.error("--brief needs --save FILE")
    if args.save and (Path(args.save).is_dir() or not Path(args.save).parent.is_dir()):
        p.error(f"--save {args.save}: name a file in a folder that exists")
    try:
        baseline = BenchmarkReport.load(args.compare) if args.compare else None
    except (OSError, ValueError) as error:
        p.error(f"--compare: {error}")

    peers = not args.quick if args.peers is None else args.peers
    names, benchmarks = _chosen(p, args, peers)
    suite = BenchmarkSuite(quick=args.quick, peers=peers)
    chosen = (names or benchmarks) and not args.all
    suite = suite.add_suite(*dict.fromkeys(names)) if chosen else suite.add_all()
    for benchmark in benchmarks:
        suite.add(benchmark)
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
