"""Copies the notebooks and their data to where the wheel carries them: share/pygpukit/notebooks of the environment."""

from __future__ import annotations

import shutil
from pathlib import Path

TARGET = Path("pygpukit.data/data/share/pygpukit/notebooks")
PATTERNS = ("*.ipynb", "data/*")


def stage_notebooks(root: Path) -> None:
    """Mirror the notebooks under `root`; without their folder (a source distribution) what is staged already stays."""
    source, target = root / "notebooks", root / TARGET
    if not source.is_dir():
        if not target.is_dir():
            raise SystemExit("pygpukit cannot be built: the notebooks are missing.")
        return
    shutil.rmtree(target, ignore_errors=True)
    for pattern in PATTERNS:
        for path in source.glob(pattern):
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


if __name__ == "__main__":
    stage_notebooks(Path(__file__).resolve().parent.parent)
