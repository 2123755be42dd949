"""Which part of what takes long has its turn in this run: by the day of the commit, so one commit has one result.

Of a test that takes longer than LIMIT_S, all its cases together, one case of n runs and others on other days, so
that a run spends about LIMIT_S on it. durations.json has the seconds, as tools/record_durations.py wrote them. A day,
and not the commit's hash: what mends a fault is checked by the cases that found it, and no case waits for longer
than n days.

python tests/turn.py    prints the number of the commit's day
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
def of_day() -> int:
    """Days from 1970 to the commit, in UTC; 0 where there is no repository, as in an unpacked release."""
    command = ["git", "show", "--no-patch", "--format=%ct", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60)
    except OSError:  # no git
        return 0
    return int(done.stdout) // 86400 if done.returncode == 0 else 0


@functools.cache
def recorded() -> dict[str, float]:
    """Seconds of each test that takes longer than LIMIT_S: "tests/ops/fft/test_fft.py::test_lengths" to 12.3."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def days_a_case(test: str) -> int:
    """On one day of how many each case of a test runs."""
    return days_for(recorded().get(test, 0.0))


def days_for(seconds: float) -> int:
    """The same of a test that takes so long."""
    return max(1, math.ceil(seconds / LIMIT_S))


def has_come(test: str, case: int, days: int) -> bool:
    """True where the case, counted from 0, of a test runs, which it does on one day of so many."""
    return (crc32(test.encode()) + case + of_day()) % days == 0


if __name__ == "__main__":
    print(of_day())
