"""Prints this machine's other interpreters: one CPython of each minor version from 3.10 on, without the running one."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = 10, 14
PROBE = "import platform, sys; print(platform.python_implementation(), *sys.version_info[:3], sys.executable)"


def candidates() -> list[str]:
    """Paths that may be a Python: by name on PATH, and pyenv's, whose names on PATH may be switched off."""
    paths = [shutil.which(f"python3.{minor}") for minor in range(OLDEST, NEWEST + 1)]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return [p for p in paths if p] + sorted(map(str, pyenv.glob("versions/*/bin/python3")), reverse=True)


def interpreters() -> dict[int, str]:
    """Minor version to executable, the running minor left out."""
    by_minor: dict[int, str] = {}
    for path in candidates():
        done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            continue
        implementation, major, minor, _, executable = done.stdout.split(maxsplit=4)
        is_supported = implementation == "CPython" and major == "3" and OLDEST <= int(minor) <= NEWEST
        if is_supported and int(minor) != sys.version_info.minor:
            by_minor.setdefault(int(minor), executable.strip())
    return by_minor


if __name__ == "__main__":
    assert platform.python_implementation() == "CPython"
    for _, path in sorted(interpreters().items()):
        print(path)
