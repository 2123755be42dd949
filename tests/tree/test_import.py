"""What importing loads, and that the lazy namespace is complete, typed and closed."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit.ops import audio, names, nn

REPORT = """
import sys
before = set(sys.modules)
import pygpukit
{use}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
heavy = loaded & {{"numpy", "IPython", "ipykernel", "ipywidgets", "anywidget", "matplotlib", "jupyterlab"}}
maps = open("/proc/self/maps").read() if sys.platform == "linux" else ""
libraries = [name for name in ("libcuda.so", "libnvrtc", "libcublas") if name in maps]
print(sorted(heavy), libraries)
"""

EVERY_NAME = """
for name in {*dir(pygpukit), *pygpukit.__all__}:
    if name not in ("benchmark", "jupyter", "scheduler", "worker"):
        getattr(pygpukit, name)
"""


def child(use: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", REPORT.format(use=use)], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_import_loads_nothing_heavy() -> None:
    assert child("") == "[] []"


def test_fetching_every_name_loads_neither_numpy_nor_the_driver() -> None:
    assert child(EVERY_NAME) == "[] []"


CACHED = """
gp = pygpukit
kernel = gp.jit("__global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }")
kernel(gp.zeros(10), n=10)
print(kernel.compiled.origin, *sorted(name for name in sys.modules if name.startswith("pygpukit.jit.")))
"""
ONLY_FOR_COMPILES_AND_INSPECTION = ("manifest", "lookup_files", "flight", "globals", "inspect", "cubin", "parallel")


def test_a_kernel_from_the_cache_loads_what_it_needs() -> None:
    lines = [child(CACHED).splitlines()[0].split() for _ in range(2)]
    assert [line[0] for line in lines] == ["compiled", "disk"]
    assert "pygpukit.jit.cache.flight" in lines[0]
    assert not {f"pygpukit.jit.{name}" for name in ONLY_FOR_COMPILES_AND_INSPECTION} & set(lines[1])


def test_every_name_of_all_is_there() -> None:
    assert len(set(gp.__all__)) == len(gp.__all__)
    for name in gp.__all__:
        assert getattr(gp, name) is not None or name == "newaxis"
    namespace: dict[str, object] = {}
    exec("from pygpukit import *", namespace)
    assert set(gp.__all__) <= set(namespace)


def test_type_checkers_see_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "tools"))
    import name_stubs

    callable_packages = {"array": "pygpukit.array.factory", "jit": "pygpukit.jit"}
    tables = (
        (gp, {**gp._HOME_OF, **names.public(), **callable_packages}),
        (gp.ops, gp.ops.homes()),
        (nn, nn.homes()),
        (audio, audio.homes()),
        (gp.llm, gp.llm._HOME_OF),
        (gp.tts, gp.tts._HOME_OF),
    )
    for package, homes in tables:
        path = Path(package.__file__).with_suffix(".pyi")
        typed = {
            alias.asname: f"{statement.module}.{alias.name}"
            for statement in ast.parse(path.read_text()).body
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
        }
        for name, home in homes.items():
            assert typed.pop(name) == f"{home}.{name}", f"{path}: run python tools/name_stubs.py"
        assert set(typed) <= {*gp._SUBMODULES}
    stubs = name_stubs.stubs()
    written = {path.parent.name: text for path, text in stubs.items()}
    for package in (gp, gp.ops, nn, audio):
        path = Path(package.__file__).with_suffix(".pyi")
        assert path.read_text() == written[path.parent.name], f"{path}: run python tools/name_stubs.py"
    methods = Path(gp.__file__).parent / "array" / "methods.pyi"
    assert methods.read_text() == stubs[methods], f"{methods}: run python tools/name_stubs.py"


def test_type_checkers_see_the_methods_that_arrays_have() -> None:
    from pygpukit.ops.methods.bind import Methods

    (stub,) = (
        node
        for node in ast.parse((Path(gp.__file__).parent / "array" / "methods.pyi").read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    typed = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    bound = {name for one in Methods.__mro__[:-1] for name in vars(one)} - {"__doc__", "__module__", "__slots__"}
    assert typed == bound - {"__static_attributes__", "__firstlineno__"}  # of classes, since Python 3.13


def test_every_operation_has_one_module() -> None:
    lists = names._lists()
    assert not lists["__all__"].keys() & (lists["LOW_LEVEL"].keys() | gp._HOME_OF.keys())
    assert len(names.public()) > 200
    for name, home in names.every().items():
        module = getattr(importlib.import_module(home), name).__module__
        assert module.startswith(("pygpukit.ops", "pygpukit.compat.ops")), name


def test_names_of_a_package_apart_are_its_own() -> None:
    assert callable(gp.ops.audio.stft) and "audio" in names.APART[0]
    assert not hasattr(gp, "stft") and not hasattr(gp.ops, "stft")
    for name, home in audio.homes().items():
        assert getattr(audio, name) is getattr(importlib.import_module(home), name)


def test_operations_are_functions_whatever_modules_were_imported() -> None:
    for module in sorted(set(names.every().values())):
        importlib.import_module(module)
    for name in gp.ops.__all__:
        assert callable(getattr(gp.ops, name)), f"a module of pygpukit.ops hides the function {name}"
        assert getattr(gp, name, getattr(gp.ops, name)) is getattr(gp.ops, name)


@pytest.mark.parametrize(
    "module", ["array.array", "ops.elementwise", "ops.matmul.gemm", "jit.compile.compiler", "memory.pool"]
)
def test_function_names_survive_importing_modules_of_the_same_name(module: str) -> None:
    importlib.import_module(f"pygpukit.{module}")
    assert callable(gp.jit)
    assert callable(gp.matmul)
    assert callable(gp.ops.matmul)
    assert callable(gp.backend)


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="module 'pygpukit' has no attribute 'fft2d'"):
        gp.fft2d


def test_rust_alias() -> None:
    import _pygpukit_rust as rust

    assert rust.MemoryPool is gp.memory.RustMemoryPool
    assert importlib.import_module("_pygpukit_rust._pygpukit_rust") is rust
    assert importlib.import_module("pygpukit._pygpukit_rust") is rust
    assert importlib.import_module("_pygpukit_rust.memory").PoolStats is rust.PoolStats
    assert importlib.import_module("_pygpukit_rust.scheduler").QosClass is rust.QosClass
    with pytest.raises(AttributeError, match=r"no 'Teleporter'; it has .*MemoryBlock, MemoryPool"):
        rust.Teleporter
