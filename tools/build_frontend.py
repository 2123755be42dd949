"""Builds the browser bundles (widgets and lab extension) from extension/ when they are missing or stale.

    python tools/build_frontend.py [--force]

Needs Node.js 20.19 or newer with npm, and on the first run the npm registry.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = Path("pygpukit/jupyter/widgets.json")
WIDGETS = Path("pygpukit/jupyter/widgets/static")
LABEXTENSION = Path("pygpukit.data/data/share/jupyter/labextensions/pygpukit")
TEMPLATE = Path("pygpukit.data/data/share/jupyter/nbconvert/templates/pygpukit")
OUTPUTS = (
    *(WIDGETS / f"{widget['name']}.js" for widget in json.loads((ROOT / LISTED).read_text(encoding="utf-8"))),
    WIDGETS / "widgets.css",
    TEMPLATE / "conf.json",
    TEMPLATE / "index.html.j2",
    LABEXTENSION / "package.json",
    LABEXTENSION / "install.json",
    *(LABEXTENSION / "schemas/pygpukit" / f"{plugin}.json" for plugin in ("assembly", "editor", "pictures", "status")),
)
DIGEST = WIDGETS / "sources.sha256"

SOURCE_FOLDERS = ("core/src", "views/src", "widgets/src", "labext/src", "labext/schema", "labext/style", "nbconvert")
SOURCE_FILES = ("package.json", "package-lock.json", "build.mjs", "labext/package.json")

TOOLS = tuple(
    f"node_modules/{name}"
    for name in ("esbuild", "dompurify", "@jupyter/builder", "@jupyterlab/core-meta", "@codemirror/lint")
)
MIN_NODE = (20, 19)
NODE_HELP = "Install Node.js 20.19 or newer with npm (https://nodejs.org or your distribution)."
INSTALL_JSON = {
    "packageManager": "python",
    "packageName": "pygpukit",
    "uninstallInstructions": "Use your Python package manager (pip, conda, ...) to uninstall the package pygpukit",
}


def build_frontend(root: Path, force: bool = False) -> bool:
    """Bring the bundles under `root` up to date; True when something was built.

    Raises SystemExit with one sentence when Node is missing or too old, or a step fails.
    """
    extension = root / "extension"
    complete = all((root / output).is_file() for output in OUTPUTS)
    if not extension.is_dir():
        if complete:
            return False  # a source distribution carries the built files only
        raise SystemExit(
            "pygpukit cannot be built: the browser bundles are missing and so is extension/, their source."
        )
    digest = source_digest(extension)
    stored = (root / DIGEST).read_text().strip() if (root / DIGEST).is_file() else ""
    if complete and stored == digest and not force:
        return False
    npm = require_node()
    install_packages(extension, npm)
    shutil.rmtree(root / WIDGETS, ignore_errors=True)
    run("the widget bundles", ["node", "build.mjs", str(root / WIDGETS)], extension)
    core_meta = extension / "node_modules/@jupyterlab/core-meta/core.package.json"
    builder = extension / "node_modules/@jupyter/builder/lib/build-labextension.js"
    # The output folder is named in labext/package.json, where the lab's builder looks for it.
    run("the lab extension", ["node", str(builder), "--core-package-file", str(core_meta), "labext"], extension)
    (root / LABEXTENSION / "install.json").write_text(json.dumps(INSTALL_JSON, indent=2) + "\n")
    shutil.copytree(extension / "nbconvert", root / TEMPLATE, dirs_exist_ok=True)
    missing = [str(output) for output in OUTPUTS if not (root / output).is_file()]
    if missing:
        raise SystemExit(f"pygpukit cannot be built: the front-end build left out {', '.join(missing)}.")
    (root / DIGEST).write_text(digest + "\n")
    return True


def source_digest(extension: Path) -> str:
    """SHA-256 over every source file's name and contents, and over this file."""
    whole = hashlib.sha256(Path(__file__).read_bytes())
    for path in source_files(extension):
        whole.update(f"\0{path.relative_to(extension).as_posix()}\0".encode())
        whole.update(path.read_bytes())
    whole.update((ROOT / LISTED).read_bytes())
    return whole.hexdigest()


def source_files(extension: Path) -> Iterator[Path]:
    yield from (extension / name for name in SOURCE_FILES)
    for folder in SOURCE_FOLDERS:
        yield from sorted(path for path in (extension / folder).rglob("*") if path.is_file())


def require_node() -> str:
    """npm's path. Raises SystemExit with what to install."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        name = "node" if node is None else "npm"
        raise SystemExit(
            f"pygpukit cannot be built: {name} was not found, and the browser bundles need it. {NODE_HELP}"
        )
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    numbers = tuple(int(part) for part in version.lstrip("v").split(".")[:2])
    if numbers < MIN_NODE:
        raise SystemExit(f"pygpukit cannot be built: Node.js is {version}, which is too old. {NODE_HELP}")
    return npm


def install_packages(extension: Path, npm: str) -> None:
    """Install what the lockfile pins, without test tools, unless the build tools are there at those versions."""
    locked = json.loads((extension / "package-lock.json").read_text())["packages"]
    for tool in TOOLS:
        manifest = extension / tool / "package.json"
        if not manifest.is_file() or json.loads(manifest.read_text())["version"] != locked[tool]["version"]:
            run("npm's packages", [npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"], extension)
            return


def run(what: str, command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    )
    if done.returncode:
        sys.stderr.write(done.stdout)
        raise SystemExit(
            f"pygpukit cannot be built: building {what} failed ({' '.join(command[:2])} in {folder.name}/)."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--force", action="store_true", help="build even when nothing changed")
    built = build_frontend(ROOT, parser.parse_args().force)
    print("built the browser bundles" if built else "the browser bundles are up to date")


if __name__ == "__main__":
    main()
