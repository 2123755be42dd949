#!/usr/bin/env python3
"""Runs the built-in kernels on the simulator in checked mode and writes what was seen of each.

    python tools/checked_kernels.py          where sources changed since the report, or a kernel failed
    python tools/checked_kernels.py --all    all
    python tools/checked_kernels.py --new    of kernels that the report lacks, or that failed

The report is docs/results/sim/checked_kernels.json: for each kernel the shapes of the operands, the largest error
relative to the largest number of a float64 reference, and the verdict. Fails when a kernel has a finding, gives wrong
results, or is launched by no call of the sweep.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]
os.environ["PYGPUKIT_BACKEND"] = "sim"

from sweep.engine import groups, run, without_family  # noqa: E402
from sweep.families import FAMILIES  # noqa: E402

import pygpukit as gp  # noqa: E402
from pygpukit.jit.compile import simulator  # noqa: E402
from pygpukit.kernels import sources  # noqa: E402

REPORT = ROOT / "docs" / "results" / "sim" / "checked_kernels.json"
CLEAN = "no finding"


def digest(source: str) -> str:
    """Of a kernel source and the headers that it reaches."""
    return blake2b(json.dumps(sources.texts(source), sort_keys=True).encode(), digest_size=8).hexdigest()


def written(report: dict[str, Any]) -> str:
    """The report as JSON, one kernel a line."""
    head = json.dumps({key: value for key, value in report.items() if key != "kernels"}, indent=1)[:-2]
    sources = []
    for source, kernels in sorted(report["kernels"].items()):
        lines = (f"   {json.dumps(name)}: {json.dumps(seen)}" for name, seen in sorted(kernels.items()))
        sources.append(f"  {json.dumps(source)}: {{\n" + ",\n".join(lines) + "\n  }")
    return f'{head},\n "kernels": {{\n' + ",\n".join(sources) + "\n }\n}\n"


def main() -> int:
    """Exit status 1 when a kernel is not clean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="run the kernels of sources that did not change, too")
    parser.add_argument("--new", action="store_true", help="leave out what the report has, though its source changed")
    chosen = parser.parse_args()
    if missing := without_family(FAMILIES):
        print(f"no family of the sweep has the kernels of {', '.join(missing)}; add calls that launch them")
        return 1
    before = json.loads(REPORT.read_text()) if REPORT.exists() else {"sources": {}, "kernels": {}}
    every = groups(FAMILIES)
    digests = {source: digest(source) for source in sorted({source for group in every for source, _ in group.kernels})}
    kernels: dict[str, dict[str, Any]] = {source: {} for source in digests}
    kept: set[str] = set()  # sources of which a kernel was not run again
    for group in every:
        known = all(
            (chosen.new or before["sources"].get(source) == digests[source])
            and before["kernels"].get(source, {}).get(name, {}).get("verdict") == CLEAN
            for source, name in group.kernels
        )
        if known and not chosen.all:
            for source, name in group.kernels:
                kernels[source][name] = before["kernels"][source][name]
                kept.add(source)
            continue
        start = time.perf_counter()
        for (source, name), seen in run(group).items():
            verdict = seen.failure or CLEAN
            kernels[source][name] = {
                "shapes": list(seen.shapes),
                "error": float(f"{seen.error:.1e}"),
                "verdict": verdict,
            }
            if seen.failure:
                print(f"{source}: {name}: {verdict}")
        print(f"{group.name}: {len(group.kernels)} kernels, {time.perf_counter() - start:.1f} s", flush=True)
    report = {
        "version": gp.__version__,
        "command": "python tools/checked_kernels.py --all",
        "compiler": simulator.compiler_identity().partition(", cpu")[0],
        "sources": {source: before["sources"][source] if source in kept else digests[source] for source in digests},
        "kernels": kernels,
    }
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(written(report))
    bad = sum(seen["verdict"] != CLEAN for own in kernels.values() for seen in own.values())
    print(f"{sum(map(len, kernels.values())) - bad} kernels without a finding, {bad} with one or without a call")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
