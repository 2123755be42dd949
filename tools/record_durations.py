"""Writes tests/durations.json: the seconds of tests that take long, all cases together: a run takes a part of these.

    python tools/record_durations.py REPORT.xml

REPORT.xml: of `pytest --all --junitxml=REPORT.xml` on a machine that does little else. It also prints how long the
tests of README's command take by that report, in one process.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.append(str(TESTS))

import turn  # noqa: E402


def seconds_of_tests(report: Path) -> dict[str, float]:
    """Seconds of each test, its cases and what their fixtures took together."""
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        module, *classes = re.split(r"(?<=\.)(?=Test)", case.get("classname", ""))
        file = module.rstrip(".").replace(".", "/") + ".py"
        test = "::".join([file, *(name.rstrip(".") for name in classes), case.get("name", "").partition("[")[0]])
        seconds[test] += float(case.get("time", 0))
    return seconds


def main(report: str) -> int:
    seconds = seconds_of_tests(Path(report))
    long = {test: round(s, 1) for test, s in sorted(seconds.items()) if s > turn.LIMIT_S}
    turn.RECORD.write_text(json.dumps(long, indent=1) + "\n", encoding="utf-8")
    expected = sum(s / turn.commits_for(s) for s in seconds.values())
    print(f"{sum(seconds.values()):.0f} s in all, {expected:.0f} s of them without --all, {len(long)} tests in part")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
