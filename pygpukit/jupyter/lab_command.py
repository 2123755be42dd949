"""`pygpukit lab`: JupyterLab on the tour or on a notebook, or a notebook run without a browser."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from pygpukit.core.extras import require
from pygpukit.jupyter.working_copy import TOUR, originals, working_copy

TOUR_MODULES = ("jupyter_client", "nbformat", "ipykernel", "ipywidgets", "anywidget", "matplotlib")
LAB_MODULES = ("jupyterlab", *TOUR_MODULES)
OWN = ("--notebook-dir", "--ServerApp.root_dir", "--LabApp.default_url", "--ServerApp.default_url")
ROOT = ("--allow-root", "--ServerApp.allow_root")


def command(args: argparse.Namespace, rest: Sequence[str], run_headless: Callable[[Path], int]) -> int:
    """Do it; `rest`: a notebook's name and options of JupyterLab. Exit code 1, and a sentence, when it cannot be."""
    named = [word for word in rest if word.endswith(".ipynb") and not word.startswith("-")]
    try:
        require("lab", "pygpukit lab", *(TOUR_MODULES if args.headless else LAB_MODULES))
        if len(named) > 1:
            raise ValueError(f"pygpukit lab opens one notebook, not {', '.join(named)}")
        notebook, done = _notebook(named, copied=not (args.headless or args.here))
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    if args.headless:
        return run_headless(notebook)
    print(f"notebooks: {notebook.parent}{f' ({done})' if done else ''}", flush=True)
    options = [word for word in rest if word not in named]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and not any(word.startswith(ROOT) for word in options):
        print("warning: this is root, and so is whoever has the address with its token", file=sys.stderr, flush=True)
        options.append("--allow-root")
    return subprocess.call([sys.executable, "-m", "jupyterlab", *opening(notebook, options), *options])


def _notebook(named: Sequence[str], copied: bool) -> tuple[Path, str]:
    if named:
        notebook = Path(named[0]).resolve()
        if not notebook.is_file():
            raise FileNotFoundError(f"pygpukit lab: there is no notebook {notebook}; without a name it opens the tour")
        return notebook, ""
    if not copied:
        return originals() / TOUR, ""
    try:
        folder, done = working_copy()
    except OSError as error:
        raise OSError(
            f"pygpukit lab: the notebooks cannot be copied to {error.filename or Path.cwd()} "
            f"({error.strerror or error}): run it in a folder of yours, or with --here to open the originals"
        ) from None
    return folder / TOUR, done


def opening(notebook: Path, options: Sequence[str]) -> list[str]:
    """Commands that open a notebook in JupyterLab, also by the address that it prints; less if the user has options."""
    if any(word.startswith(OWN) for word in options):
        return [str(notebook)]
    return [f"--ServerApp.root_dir={notebook.parent}", f"--LabApp.default_url=/lab/tree/{quote(notebook.name)}"]
