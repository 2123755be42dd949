"""Runs the browser tests against several versions of Jupyter: `python tools/jupyter_matrix.py [ROW ...]`

Each row is an environment of its own under build/matrix/, with this checkout in it as an installed wheel would be.
Needs the built core and bundles, `npm ci` in extension/, Chromium, and pip's index. --install only makes it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/matrix"
LABEXTENSION = "share/jupyter/labextensions/pygpukit"
LIBRARIES = ("numpy", "ipywidgets==8.1.*", "anywidget==0.11.*", "nbclient", "matplotlib")
IN_LAB = tuple(
    f"lab/{name}.spec.ts"
    for name in ("busy", "cuda", "edits", "figures", "reopened", "reruns", "saved", "tour", "workbench")
)


@dataclass(frozen=True)
class Row:
    """Requirements of one environment, and the tests that run in it."""

    requirements: tuple[str, ...]
    specs: tuple[str, ...] = IN_LAB


ROWS = {
    f"ipykernel-{kernel}-lab-{lab}": Row((f"ipykernel=={kernel}.*", f"jupyterlab=={lab}.*"))
    for kernel in ("6.31", "7.3", "7.4")
    for lab in ("4.5", "4.6")
} | {
    "notebook-7.6": Row(("notebook==7.6.*", "ipykernel==7.4.*"), ("lab/notebook7.spec.ts",)),
    "lsp-5.3": Row(("jupyterlab-lsp==5.3.*", "jupyterlab==4.6.*", "ipykernel==7.4.*"), (*IN_LAB, "lab/clangd.spec.ts")),
}
SHOWN = ("jupyterlab", "ipykernel", "notebook", "jupyterlab-lsp")


def python_of(row: str) -> Path:
    return FOLDER / row / "bin/python"


def site_packages(row: str) -> Path:
    return next((FOLDER / row / "lib").glob("python3.*/site-packages"))


def install(row: str) -> None:
    """Make the row's environment, or bring it up to what the row asks for."""
    if not python_of(row).exists():
        venv.create(FOLDER / row, with_pip=True)
    command = [str(python_of(row)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *ROWS[row].requirements, *LIBRARIES], check=True)
    (site_packages(row) / "pygpukit.pth").write_text(f"{ROOT}\n")
    link = FOLDER / row / LABEXTENSION
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(ROOT / "pygpukit.data/data" / LABEXTENSION)


def versions(row: str) -> str:
    """The versions that the environment has of the packages that the table names."""
    installed = {one.name: one.version for one in distributions(path=[str(site_packages(row))])}
    return ", ".join(f"{name} {installed[name]}" for name in SHOWN if name in installed)


def test(row: str, only: str) -> dict[str, Any]:
    """Run the row's tests, or those of the files whose names begin so, and return Playwright's counts."""
    report = FOLDER / row / "report.json"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "PYGPUKIT_PYTHON": str(python_of(row)), "PLAYWRIGHT_JSON_OUTPUT_NAME": str(report)}
    environment.pop("PYTHONPATH", None)  # what is imported comes from the environment
    command = ["npx", "playwright", "test", "--reporter=list,json", f"--output={FOLDER / row / 'failed'}"]
    specs = [spec for spec in ROWS[row].specs if Path(spec).name.startswith(only)]
    if not specs:
        raise SystemExit(f"The row {row} has no tests {only!r}: it has {', '.join(ROWS[row].specs)}.")
    subprocess.run([*command, *specs], cwd=ROOT / "extension/ui-tests", env=environment, check=False)
    if not report.is_file():
        raise SystemExit(f"No tests ran for {row}: Playwright left no report. What it printed above says why.")
    return json.loads(report.read_text())["stats"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; all when none is named")
    parser.add_argument("--install", action="store_true", help="only make the environments")
    parser.add_argument("--only", default="", metavar="NAME", help="run only the test files whose names begin so")
    options = parser.parse_args(argv)
    rows = options.rows or list(ROWS)
    if unknown := set(rows) - set(ROWS):
        parser.error(f"there is no row {', '.join(sorted(unknown))}; the rows are {', '.join(ROWS)}")
    table = ["| versions | passed | failed | skipped |", "| --- | --- | --- | --- |"]
    failed = 0
    for row in rows:
        install(row)
        if options.install:
            print(f"{row}: {versions(row)}", flush=True)
            continue
        counts = test(row, options.only)
        failed += counts["unexpected"]
        passed = counts["expected"] + counts["flaky"]
        table.append(f"| {versions(row)} | {passed} | {counts['unexpected']} | {counts['skipped']} |")
    if not options.install:
        print("\n".join(table))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
