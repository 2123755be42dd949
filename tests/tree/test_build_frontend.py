"""tools/build_frontend.py: builds only what is stale, and says in one sentence what is missing."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    sys.modules.pop("build_frontend", None)
    import build_frontend

    return build_frontend


@pytest.fixture
def checkout(tool: ModuleType, tmp_path: Path) -> Path:
    """A copy of the sources with stand-ins for built files, up to date."""
    extension = REPOSITORY / "extension"
    for path in tool.source_files(extension):
        copy = tmp_path / "extension" / path.relative_to(extension)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    for output in tool.OUTPUTS:
        (tmp_path / output).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / output).write_text("built")
    (tmp_path / tool.DIGEST).write_text(tool.source_digest(tmp_path / "extension") + "\n")
    return tmp_path


@pytest.fixture
def no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


@pytest.mark.usefixtures("no_node")
def test_nothing_is_done_when_nothing_changed(tool: ModuleType, checkout: Path) -> None:
    assert tool.build_frontend(checkout) is False


@pytest.mark.usefixtures("no_node")
@pytest.mark.parametrize("source", ["core/src/frame.ts", "views/src/style.css", "labext/package.json", "build.mjs"])
def test_changed_source_makes_a_build(tool: ModuleType, checkout: Path, source: str) -> None:
    with (checkout / "extension" / source).open("a") as file:
        file.write("\n")
    with pytest.raises(SystemExit, match=r"node was not found.*Install Node\.js 20\.19"):
        tool.build_frontend(checkout)


@pytest.mark.usefixtures("no_node")
def test_lost_output_makes_a_build(tool: ModuleType, checkout: Path) -> None:
    for output in tool.OUTPUTS:
        (checkout / output).rename(checkout / "away")
        with pytest.raises(SystemExit, match="node was not found"):
            tool.build_frontend(checkout)
        (checkout / "away").rename(checkout / output)


@pytest.mark.usefixtures("no_node")
def test_source_distribution_needs_no_node(tool: ModuleType, checkout: Path) -> None:
    shutil.rmtree(checkout / "extension")
    assert tool.build_frontend(checkout) is False
    (checkout / tool.OUTPUTS[0]).unlink()
    with pytest.raises(SystemExit, match="bundles are missing"):
        tool.build_frontend(checkout)


def test_lab_extension_has_the_version_of_the_package() -> None:
    manifest = json.loads((REPOSITORY / "extension/labext/package.json").read_text())
    cargo = (REPOSITORY / "rust/Cargo.toml").read_text()
    assert re.findall(r'^version = "(.*)"', cargo, re.MULTILINE) == [manifest["version"]]


def test_old_node_is_refused_by_version(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("node", "npm"):
        (tmp_path / name).write_text("#!/bin/sh\necho v18.20.4\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(SystemExit, match=r"v18\.20\.4, which is too old"):
        tool.require_node()
