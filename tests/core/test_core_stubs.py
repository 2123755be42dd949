"""The stubs of the compiled modules say what these have."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native

pytestmark = pytest.mark.usefixtures("backend_name")


def public(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Statements of a stub by the public name that they declare."""
    names = {}
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
        name = getattr(target, "name", None) or getattr(target, "id", None)
        if name is not None and not name.startswith("_"):
            names[name] = node
    return names


def parameters(node: ast.FunctionDef) -> list[str]:
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name != "self"]


@pytest.mark.parametrize(("stub", "real"), [("_core.pyi", _core), ("_core_native.pyi", native)])
def test_stubs_say_what_there_is(stub: str, real: ModuleType) -> None:
    names = public(ast.parse((Path(gp.__file__).parent / stub).read_text()).body)
    assert set(names) == {name for name in dir(real) if not name.startswith("_")}
    for name, node in names.items():
        value = getattr(real, name)
        members = {name: node}
        if isinstance(node, ast.ClassDef):
            assert inspect.isclass(value), name
            members = public(node.body)
            assert set(members) == {key for key in dir(value) if not key.startswith("_")}, name
        for key, member in members.items():
            call = getattr(value, key) if isinstance(node, ast.ClassDef) else value
            if isinstance(member, ast.FunctionDef) and getattr(call, "__text_signature__", None):
                got = [p for p in inspect.signature(call).parameters if p not in ("self", "$self")]
                assert got == parameters(member), f"{name}.{key}"
