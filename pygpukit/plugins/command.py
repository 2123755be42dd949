"""The command `pygpukit plugins`: the plugins of this environment, and their operations beside the built-in ones."""

from __future__ import annotations

import argparse
import sys

from pygpukit.core.errors import GPUError
from pygpukit.core.text import visible
from pygpukit.plugins.check import check
from pygpukit.plugins.entries import plugins


def command(args: argparse.Namespace) -> int:
    """Do what was asked. Exit code 1 for a plugin that is not within its numeric family, or cannot be compared."""
    if args.action != "check":
        lines = [
            f"{one.group:<18} {one.name:<24} {one.distribution:<28} {one.problem or one.value}" for one in plugins()
        ]
        print(visible("\n".join(lines)) if lines else "no plugins are installed; docs/plugins.md says how to write one")
        return 0
    try:
        reports = check(args.name, args.seed)
    except GPUError as error:
        print(visible(f"pygpukit plugins check: {error}"), file=sys.stderr)
        return 1
    for report in reports:
        print(visible(str(report)))
    return 0 if all(report.ok for report in reports) else 1
