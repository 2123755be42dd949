"""`pygpukit run FILE.cu ...`: compile a CUDA program without nvcc and run it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

TIMED_OUT = 124  # exit code, as of timeout(1)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", nargs="+", type=Path, help="the program's .cu and .cpp files")
    parser.add_argument(
        "-I", dest="folders", action="append", type=Path, default=[], metavar="DIR", help="look for headers here, too"
    )
    parser.add_argument(
        "-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro"
    )
    parser.add_argument("--std", default="c++17", help="the language's version (%(default)s)")
    parser.add_argument("--check", action="store_true", help="find bad accesses and races on the simulated device")
    parser.add_argument("--timeout", type=float, metavar="S", help="end the program after so many seconds")
    parser.add_argument(
        "--profile", action="store_true", help="tell its kernels and copies, their times, and when they ran, at the end"
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write when they ran for Perfetto, as JSON")


def command(args: argparse.Namespace, words: Sequence[str]) -> int:
    """Do what `pygpukit run` was asked. The program's exit code; 1 where it does not compile."""
    from pygpukit.core.backend import is_sim
    from pygpukit.core.errors import CompileError, NvrtcError
    from pygpukit.program.build import Source, build
    from pygpukit.program.process import TIMES, Process, names_of

    times = TIMES if args.profile or args.trace else 0

    missing = [path for path in args.file if not path.is_file()]
    if missing:
        print(f"pygpukit run: there is no file {missing[0]}", file=sys.stderr)
        return 2
    with Process() as process:
        sources = [
            Source(path.read_text(errors="replace"), name, path.parent.resolve())
            for path, name in zip(args.file, names_of(args.file), strict=True)
        ]
        options = [f"-std={args.std}", *(f"-D{define}" for define in args.defines)]
        folders = [folder.resolve() for folder in args.folders]
        try:
            program = build(sources, folders, options, args.check or ("count" if args.profile and is_sim() else None))
        except (CompileError, NvrtcError, ValueError) as error:
            print(error, file=sys.stderr)
            return 1
        try:
            result = process.run(program, [str(args.file[0]), *words], args.timeout, times)
        except KeyboardInterrupt:
            return 130
    if result.timeout_s is not None:
        print(f"pygpukit run: {result.ending}", file=sys.stderr)
        return TIMED_OUT
    if result.crowded:
        print(f"pygpukit run: {result.ending}", file=sys.stderr)
    if args.profile:
        from pygpukit.profiling.limits import limits
        from pygpukit.program.table import table

        print(table(result, None if is_sim() else limits(), is_sim()), file=sys.stderr)
    if args.trace:
        from pygpukit.profiling.chrome import write_works

        write_works(result.works, args.trace)
    return result.exit_code
