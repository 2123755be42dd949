"""The layers of docs/architecture.md hold: no module imports one above it, lazily neither, and none in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import pygpukit
from pygpukit.compat.paths import PATHS

PACKAGE = Path(pygpukit.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
WANTED = {
    "pygpukit._native_loader": "get_native_module",
    "pygpukit._pygpukit_rust": "MemoryPool",
    "pygpukit.core.array": "GPUArray",
    "pygpukit.core.factory": "from_numpy",
    "pygpukit.core.memory": "copy_to_device",
    "pygpukit.jit.bench": "bench",
    "pygpukit.jit.compiler": "JITKernel",
    "pygpukit.jit.count": "count",
    "pygpukit.jit.limits": "limits",
    "pygpukit.ops.basic": "matmul",
    "pygpukit.ops.embedding": "kv_cache_update",
    "pygpukit.ops.reduction": "sum_axis",
    "pygpukit.ops.sampling": "sample_greedy",
    "pygpukit.ops.tensor": "transpose_3d_012",
    "pygpukit.ops.unary": "exp",
}

Graph = dict[str, set[str]]
LARGEST_CIRCLE_OF_TYPES = 20


def modules() -> dict[str, Path]:
    """Every module of the package by its name in it, "" for the package itself."""
    paths = (path for path in PACKAGE.rglob("*.py"))
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
        for path in paths
    }


def imports(name: str, path: Path, known: dict[str, Path], types: bool = False) -> set[str]:
    """The modules of the package that a module imports wherever it does; types: for type checkers, too."""
    inside = ["pygpukit", *name.split(".")] if name else ["pygpukit"]
    package = inside if path.name == "__init__.py" else inside[:-1]
    found = set()
    for wanted in _names(ast.parse(path.read_text(encoding="utf-8")), package, types):
        parts = wanted.split(".")
        if parts[0] == "pygpukit":
            rest = parts[1:]
            while rest and ".".join(rest) not in known:
                rest.pop()
            found.add(".".join(rest))
    return found - {name}


def _names(node: ast.AST, package: list[str], types: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if not types and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for one in child.orelse:
                yield from _names(one, package, types)
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            outer = package[: len(package) + 1 - child.level] if child.level else []
            base = ".".join([*outer, *([child.module] if child.module else [])])
            yield from (f"{base}.{alias.name}" for alias in child.names)
        yield from _names(child, package, types)


@pytest.fixture(scope="module")
def graph() -> Graph:
    known = modules()
    return {name: imports(name, path, known) for name, path in known.items()}


@pytest.fixture(scope="module")
def layers() -> dict[str, int]:
    """Package or module: the line of its layer, counted from the top."""
    (block,) = re.findall(r"```layers\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    rows = [line.partition(":")[0].split() for line in block.splitlines()]
    return {name: number for number, names in enumerate(rows) for name in names}


def layer_of(name: str, layers: dict[str, int]) -> str:
    """The entry that a module belongs to: the longest one that is its name or a package of it."""
    parts = name.split(".")
    return next((entry for n in range(len(parts), 0, -1) if (entry := ".".join(parts[:n])) in layers), "")


def test_every_module_has_a_layer_and_every_layer_modules(graph: Graph, layers: dict[str, int]) -> None:
    homes = {name: layer_of(name, layers) for name in graph if name not in {"", "__main__"}}
    assert not [name for name, home in homes.items() if not home], f"give it a place in the list of {PAGE.name}"
    assert set(layers) == set(homes.values()) | {"pygpukit"}


def test_nothing_imports_what_is_above_it(graph: Graph, layers: dict[str, int]) -> None:
    wrong = []
    for name, found in graph.items():
        home = layer_of(name, layers)
        for other in found if home else ():
            there = layer_of(other, layers) if other else "pygpukit"
            if layers[there] < layers[home]:
                wrong.append(f"{name} ({home}) imports {other} ({there})")
    assert not wrong, "\n".join(wrong)


def test_no_circle_has_more_than_two_modules(graph: Graph) -> None:
    large = [sorted(circle) for circle in circles(graph) if len(circle) > 2]
    assert not large


def test_circles_of_types_are_small() -> None:
    """Annotations count: what GPUArray's methods are is in a stub of array/, which names no operation."""
    known = modules()
    graph = {name: imports(name, path, known, types=True) for name, path in known.items()}
    large = [sorted(circle) for circle in circles(graph) if len(circle) > LARGEST_CIRCLE_OF_TYPES]
    assert not large


def test_older_paths_are_the_modules_that_have_the_names_now() -> None:
    assert PATHS.keys() == WANTED.keys()
    for path, name in WANTED.items():
        module = import_module(path)
        assert hasattr(module, name), path
        assert module is import_module(PATHS[path]) and module.__spec__ is not None
        assert module.__spec__.name == module.__name__ == PATHS[path]
    assert import_module("_pygpukit_rust.dispatch") is import_module("pygpukit.compat.rust.dispatch")
    with pytest.raises(ModuleNotFoundError):
        import_module("pygpukit.core.factories")


def test_nothing_uses_what_is_there_for_the_older_project(graph: Graph) -> None:
    used = {other for name, found in graph.items() if not name.startswith("compat") for other in found}
    assert {other for other in used if other.startswith("compat.")} == {"compat.paths"}


def circles(graph: Graph) -> list[set[str]]:
    """The sets of modules that reach each other, of more than one module."""

    def reached(start: str, edges: Graph) -> set[str]:
        seen, pending = {start}, [start]
        while pending:
            fresh = edges[pending.pop()] - seen
            seen |= fresh
            pending += fresh
        return seen

    back: Graph = {name: set() for name in graph}
    for name, found in graph.items():
        for other in found:
            back[other].add(name)
    out, left = [], set(graph)
    while left:
        start = next(iter(left))
        circle = reached(start, graph) & reached(start, back)
        left -= circle
        if len(circle) > 1:
            out.append(circle)
    return out


def test_circles_are_found() -> None:
    graph: Graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(map(sorted, circles(graph))) == [["a", "b", "c"], ["d", "e"]]


def test_imports_in_functions_count_and_those_for_type_checkers_do_not(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\nimport pygpukit.core.errors\nfrom pygpukit.jit import locate as x\n"
        "if TYPE_CHECKING:\n    from pygpukit.array import array\n"
        "def f():\n    from ..core import stream\n    from . import layout\n"
        "    from pygpukit.jit.cache.image import Image\n"
    )
    known = {**modules(), "ops.layout": path}
    expected = {"core.errors", "jit.locate", "core.stream", "ops.layout", "jit.cache.image"}
    assert imports("ops.module", path, known) == expected
    assert imports("ops.module", path, known, types=True) == expected | {"array.array"}
