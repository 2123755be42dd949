"""Which part of what takes long has its turn in this run: a number of the commit's, so one commit has one result.

The number is the hash of CHANGELOG.md at the commit. What users see has a line there and brings other cases; what
mends a fault and has none is checked by the cases that found the fault.

Of a test that takes longer than LIMIT_S, all its cases together, one case of n runs and others at other commits, so
that a run spends about LIMIT_S on it. durations.json has the seconds, as tools/record_durations.py wrote them.

python tests/turn.py    prints the commit's number
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
from pathlib import Path
from zlib import crc32

LIMIT_S = 1.0
RECORD = Path(__file__).with_name("durations.json")


@functools.cache
def of_commit() -> int:
    """The commit's number; 0 where there is no repository, as in an unpacked release."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD:CHANGELOG.md"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60)
    except OSError:  # no git
        return 0
    return int(done.stdout.strip()[:12], 16) if done.returncode == 0 else 0


@functools.cache
def recorded() -> dict[str, float]:
    """Seconds of each test that takes longer than LIMIT_S: "tests/ops/fft/test_fft.py::test_lengths" to 12.3."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def commits_a_case(test: str) -> int:
    """At one commit of how many each case of a test runs."""
    return commits_for(recorded().get(test, 0.0))


def commits_for(seconds: float) -> int:
    """The same of a test that takes so long."""
    return max(1, math.ceil(seconds / LIMIT_S))


def has_come(test: str, case: int, commits: int) -> bool:
    """True where the case, counted from 0, of a test runs, which it does at one commit of so many."""
    return (crc32(test.encode()) + case + of_commit()) % commits == 0


if __name__ == "__main__":
    print(of_commit())
