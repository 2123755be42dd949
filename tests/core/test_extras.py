"""The command that installs what is missing: from wherever this package is, and never the other project of its name."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pygpukit.core import extras

ROOT = Path(__file__).parents[2]
NEEDS = ("tokenizers>=0.20", "jinja2>=3.1.5")
METADATA = f"""Metadata-Version: 2.4
Name: pygpukit
Version: 1
Requires-Dist: numpy>=1.24
Requires-Dist: {NEEDS[0]} ; extra == 'models'
Requires-Dist: {NEEDS[1]} ; extra == "models"
Requires-Dist: scipy ; extra == 'audio'
Requires-Dist: pygpukit[models,audio] ; extra == 'all'
"""
LIBRARIES = " ".join(f'"{one}"' for one in NEEDS)


def installed(folder: Path, origin: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as an installation of its own, from `origin` by what pip writes down; None: pip wrote nothing."""
    about = folder / "pygpukit-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(METADATA)
    if origin is not None:
        (about / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
    return copied(folder, monkeypatch)


def copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    place = folder / "pygpukit" / "core" / "extras.py"
    place.parent.mkdir(parents=True)
    place.write_text(Path(extras.__file__).read_text())
    monkeypatch.setattr(sys, "path", [str(folder)])
    spec = importlib.util.spec_from_file_location("extras_elsewhere", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_from_a_clone_it_names_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyproject.toml", "tools/build_backend.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    module = copied(tmp_path, monkeypatch)
    assert module.install_command("models") == f'python -m pip install -e "{tmp_path}[models]"'
    monkeypatch.chdir(tmp_path)
    assert module.install_command("cuda13", "tile") == 'python -m pip install -e ".[cuda13,tile]"'


def test_of_a_wheel_it_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "a wheel" / "pygpukit-1.whl"
    wheel.parent.mkdir()
    wheel.touch()
    module = installed(tmp_path, {"archive_info": {}, "url": wheel.as_uri()}, monkeypatch)
    assert module.install_command("models") == f'python -m pip install "{wheel}[models]"'


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"url": "https://a.b/x.whl", "archive_info": {}}, '"pygpukit[models] @ https://a.b/x.whl"'),
        ({"url": "https://a.b/c", "vcs_info": {"vcs": "git"}}, '"pygpukit[models] @ git+https://a.b/c"'),
        ({"url": "file:///no/longer/there.whl", "archive_info": {}}, LIBRARIES),
        (None, LIBRARIES),
        ("no JSON", LIBRARIES),
        ("[]", LIBRARIES),
    ],
)
def test_elsewhere_it_names_an_address_or_the_libraries(
    origin: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installed(tmp_path, origin, monkeypatch).install_command("models") == f"python -m pip install {words}"


def test_an_extra_of_extras_is_all_of_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = installed(tmp_path, None, monkeypatch)
    assert module.install_command("all") == f'python -m pip install {LIBRARIES} "scipy"'


def test_a_copied_folder_asks_for_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert copied(tmp_path, monkeypatch).install_command("all") == 'python -m pip install -e "CLONE[all]"'


def test_what_is_absent_is_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "install_command", lambda *names: f"install {names}")
    extras.require("models", "a chat", "json")
    with pytest.raises(
        ModuleNotFoundError, match=r"^a chat needs no_such and nor_this: install \('models',\)$"
    ) as caught:
        extras.require("models", "a chat", "no_such", "json", "nor_this")
    assert caught.value.name == "no_such"
    with pytest.raises(ModuleNotFoundError, match=r"^a chat needs no_such: install \('models',\)$"):
        extras.need("no_such", "models", "a chat")


def test_every_extra_that_the_package_names_is_one() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    known = set(
        re.findall(r"^(\w+) = \[", text.partition("[project.optional-dependencies]")[2].partition("\n[")[0], re.M)
    )
    asked = re.compile(r"""(?:install_command\(|require\(|need\(\s*f?"[\w.]+",)\s*((?:["']\w+["'](?:, )?)+)""")
    named = {
        word
        for path in (ROOT / "pygpukit").rglob("*.py")
        if "core.extras import" in (text := path.read_text(encoding="utf-8"))
        for found in asked.findall(text)
        for word in re.findall(r"\w+", found)
    }
    assert {"models", "tts", "lab", "serve", "audio"} <= named <= known


def test_no_page_installs_the_other_project() -> None:
    """By its bare name the package index gives another project."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        pytest.skip("this is no checkout")
    bare = re.compile(rb"pip\d? install[^\n&|;]{0,60}?[ '\"\\]pygpukit(?:\[|[\s'\"`\\]|$)")
    wrong = {
        name: found
        for name in listed.stdout.decode().split("\0")
        if name and (ROOT / name).is_file() and not (ROOT / name).is_symlink()
        for found in bare.findall((ROOT / name).read_bytes())
        if b"--no-index" not in found
    }
    assert not wrong
