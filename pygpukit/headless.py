"""Runs notebooks without a browser and prints what their cells say: `python -m pygpukit.headless FILE.ipynb ...`"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CELL_TIMEOUT_S = 300


def run_notebook(path: Path) -> int:
    """Execute every cell in a fresh kernel; print the text of their results. Exit code 0, or 1 at the first error."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=CELL_TIMEOUT_S, resources={"metadata": {"path": str(path.parent)}})
    begin = time.monotonic()
    count = 0
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            count += 1
            print(f"--- cell {count}: {first_line(cell.source)}", flush=True)
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                print(str(error), file=sys.stderr)
                print(f"{path.name}: cell {count} failed", file=sys.stderr)
                return 1
            for output in cell.outputs:
                print(text_of(output), flush=True)
    print(f"{path.name}: {count} cells ran in {time.monotonic() - begin:.1f} s")
    return 0


def main(paths: Sequence[str]) -> int:
    """Run notebooks one after the other. Exit code 0, 1 when one failed, 2 when none is given."""
    if not paths:
        print("python -m pygpukit.headless FILE.ipynb ...: name the notebooks to run", file=sys.stderr)
        return 2
    return max(run_notebook(Path(path)) for path in paths)


def first_line(source: str) -> str:
    """The cell's first line that is not a comment, as its title."""
    lines = [line.strip() for line in source.splitlines()]
    return next((line for line in lines if line and not line.startswith("#")), "(empty)")


def text_of(output: Any) -> str:
    """What an output says in plain text; pictures and widgets by their text form."""
    if output.output_type == "stream":
        return str(output.text).rstrip("\n")
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    return str(output.data.get("text/plain", ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
