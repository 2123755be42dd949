"""Runs the notebooks in place and stores their outputs: `python tools/run_notebooks.py [FILE.ipynb ...]`

What is stored is what nbval compares, so widget state, kernel details and execution times are left out; of sounds
their pictures are stored, for the sounds of one notebook are megabytes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
TIMEOUT_S = 300
SOUND = re.compile(r'<audio controls style="display: block" src="data:audio/wav;base64,[^"]*"></audio>')
WIDGET = "application/vnd.jupyter.widget-view+json"


def run(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book,
        timeout=TIMEOUT_S,
        iopub_timeout=TIMEOUT_S,
        raise_on_iopub_timeout=True,  # an output that is late is never left out
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    book.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number:02d}"
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if WIDGET in output.get("data", {}):
                del output["data"][WIDGET]  # a dead model id: without it the text or picture beside it is shown
            if "text/html" in output.get("data", {}):
                output["data"]["text/html"] = SOUND.sub("", output["data"]["text/html"])
    nbformat.validate(book)
    nbformat.write(book, path)
    print(f"{path.name}: {sum(c.cell_type == 'code' for c in book.cells)} cells ran")


def main(argv: list[str]) -> None:
    for path in map(Path, argv) if argv else sorted(FOLDER.glob("*.ipynb")):
        run(path)


if __name__ == "__main__":
    main(sys.argv[1:])
