"""Which part of what takes long has its turn in this run: a number of the commit's, so one commit has one result.

python tests/turn.py    prints it
"""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path


@functools.cache
def of_commit() -> int:
    """The commit's own number; 0 where there is no repository, as in an unpacked release."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60)
    except OSError:  # no git
        return 0
    return int(done.stdout.strip()[:12], 16) if done.returncode == 0 else 0


if __name__ == "__main__":
    print(of_commit())
