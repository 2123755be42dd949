"""Optional libraries: asked for before anything is fetched, with the command that installs what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "pygpukit"  # of the installed project; the package index has another one of this name


def install_command(*extras: str) -> str:
    """The command that installs these extras of the pygpukit that runs here.

    It names the folder of its source ("." where that is the current one), or the file or address that it was
    installed from; where that is not known, or gone, the libraries themselves. Never the bare name, by which the
    package index has another project.
    """
    source = _source()
    if source is None and (libraries := requirements(extras)):
        return "python -m pip install " + " ".join(f'"{one}"' for one in libraries)
    editable, place = source or (True, "CLONE")
    option = f"[{','.join(extras)}]"
    if editable:
        return f'python -m pip install -e "{"." if Path(place) == Path.cwd() else place}{option}"'
    return f'python -m pip install "{f"{NAME}{option} @ {place}" if "://" in place else place + option}"'


def need(module: str, extra: str, why: str) -> ModuleType:
    """The module, which the extra brings. Raises ModuleNotFoundError with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # the library is there, but one of its own is not
        raise _absent([module], extra, why) from None


def require(extra: str, why: str, *modules: str) -> None:
    """See, without loading them, that an extra's modules are there. Raises ModuleNotFoundError as need() does."""
    absent = [module for module in modules if find_spec(module) is None]
    if absent:
        raise _absent(absent, extra, why)


def _absent(modules: list[str], extra: str, why: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"{why} needs {' and '.join(modules)}: {install_command(extra)}", name=modules[0])


@cache
def _source() -> tuple[bool, str] | None:
    """Finds out if this package runs from its source, and where that is, or what it was installed from; or None."""
    from urllib.parse import unquote, urlsplit

    folder = Path(__file__).resolve().parents[2]
    if (folder / "pyproject.toml").is_file() and (folder / "tools" / "build_backend.py").is_file():
        return True, str(folder)
    origin = _origin()
    url = str(origin.get("url", ""))
    if url.startswith("file:"):
        path = unquote(urlsplit(url).path)
        return (False, path) if Path(path).exists() else None
    vcs = origin.get("vcs_info")
    return (False, f"{vcs['vcs']}+{url}" if vcs else url) if url else None


def _origin() -> dict[str, Any]:
    """The record of pip on where this package came from; {} where it has none."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return dict(json.loads(distribution(NAME).read_text("direct_url.json") or "{}"))
    except (PackageNotFoundError, ValueError):
        return {}


def requirements(extras: Sequence[str]) -> list[str]:
    """The requirements of these extras, those within others included, by the metadata of the installed package."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        asked = [re.fullmatch(r"(.*?) ?; extra == ['\"](.*)['\"]", line) for line in requires(NAME) or ()]
    except PackageNotFoundError:  # a folder that was copied
        return []
    names: list[str] = []
    for one in asked:
        if one and one[2] in extras:
            own = re.fullmatch(rf"{NAME}\[(.*)\]", one[1])
            names += requirements(own[1].split(",")) if own else [one[1]]
    return list(dict.fromkeys(names))
