"""Adds up pytest's own counts: `python tools/count_tests.py REPORT.xml ...` prints one closing line."""

from __future__ import annotations

import sys
from xml.etree import ElementTree


def main(paths: list[str]) -> int:
    total = failed = skipped = 0
    for path in paths:
        for suite in ElementTree.parse(path).getroot().iter("testsuite"):
            total += int(suite.get("tests", 0))
            failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped += int(suite.get("skipped", 0))
    print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or total == skipped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
