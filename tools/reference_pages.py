"""A hook of mkdocs: the pages of the reference, one a public namespace, each name by the place where it is defined.

mkdocs build --strict          the site of docs/ in build/site; needs the extra docs
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc, isclass, isroutine
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# Whose __all__ is public; a name that two of them have stands in the more exact one.
NAMESPACES = (
    *("pygpukit.asr", "pygpukit.benchmark", "pygpukit.cache", "pygpukit.dashboard"),
    *("pygpukit.fft", "pygpukit.jit", "pygpukit.jupyter", "pygpukit.linalg", "pygpukit.llm", "pygpukit.memory"),
    *("pygpukit.models", "pygpukit.ops.audio", "pygpukit.pipeline", "pygpukit.plugins", "pygpukit.random"),
    *("pygpukit.scheduler", "pygpukit.tts", "pygpukit.worker", "pygpukit.ops", "pygpukit", "pygpukit.array_api"),
)


def names(namespace: str) -> dict[str, Any]:
    """The public names of a namespace and what they are, submodules left out. Fetching one completes its docstring."""
    module = import_module(namespace)
    public = {name: getattr(module, name) for name in sorted(module.__all__) if not name.startswith("_")}
    return {name: value for name, value in public.items() if not isinstance(value, ModuleType)}


def pages() -> dict[str, str]:
    """The pages by path below docs/."""
    shown: set[int] = set()
    texts = {}
    for namespace in NAMESPACES:
        lines = list(_page(namespace, shown))
        texts[f"reference/{namespace}.md"] = "\n".join([f"# {namespace}", "", *lines])
    listed = "\n".join(f"- [{namespace}]({namespace}.md)" for namespace in sorted(NAMESPACES))
    texts["reference/index.md"] = f"# Reference\n\nEvery public name, from its docstring.\n\n{listed}\n"
    return texts


def _page(namespace: str, shown: set[int]) -> Iterator[str]:
    elsewhere, constants = [], []
    for name, value in names(namespace).items():
        if not (isclass(value) or isroutine(value)) or not value.__module__.startswith("pygpukit"):
            constants.append(f"- `{name}`: `{_short(value)}`")
        elif id(value) in shown:
            elsewhere.append(f"`{name}`")
        else:
            shown.add(id(value))
            yield from _entry(name, value)
    if constants:
        yield from ("## Values and types of others", "", *constants, "")
    if elsewhere:
        yield from ("## Also here", "", ", ".join(elsewhere), "")


def _entry(name: str, value: Any) -> Iterator[str]:
    """The entry of a name as mkdocstrings shows it; of one that its module has otherwise or not, the docstring."""
    place = f"{value.__module__}.{name}"
    if value.__qualname__ == name and vars(sys.modules[value.__module__]).get(name) is value:
        yield from (f"::: {place}", "")
        return
    text = "\n".join(f"    {line}" for line in (getdoc(value) or "").splitlines())
    yield from (f"### {name}", "", text, "")


def _short(value: Any) -> str:
    text = " ".join(repr(value).split()).replace("`", "'")
    return text if len(text) <= 80 else f"{text[:77]}..."


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs when it has found the files of docs/."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files
