"""Import paths of the older project: importing one gives the module that has those names now."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PATHS = {
    "pygpukit._native_loader": "pygpukit.compat.native_loader",
    "pygpukit._pygpukit_rust": "pygpukit.compat.rust",
    "pygpukit.core.array": "pygpukit.ops.methods.bind",
    "pygpukit.core.factory": "pygpukit.array.factory",
    "pygpukit.core.memory": "pygpukit.compat.raw_copies",
    "pygpukit.jit.bench": "pygpukit.profiling.bench",
    "pygpukit.jit.compiler": "pygpukit.jit",
    "pygpukit.jit.count": "pygpukit.worker.counting",
    "pygpukit.jit.limits": "pygpukit.profiling.limits",
    "pygpukit.ops.basic": "pygpukit.ops",
    "pygpukit.ops.embedding": "pygpukit.compat.ops.embedding",
    "pygpukit.ops.reduction": "pygpukit.ops",
    "pygpukit.ops.sampling": "pygpukit.ops.nn.sampling",
    "pygpukit.ops.tensor": "pygpukit.compat.ops.tensor",
    "pygpukit.ops.unary": "pygpukit.ops",
}
# Operations that were in these packages, and are in others now.
MOVED = {
    "pygpukit.ops.matmul": ("transpose",),
    "pygpukit.ops.nn": ("geglu", "gelu", "relu2", "sigmoid", "silu", "swiglu", "tanh"),
}


class _Finder:
    """Asked after every other finder, so that what has a file of its own comes first."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, _Loader()) if name in PATHS else None  # type: ignore[arg-type]


class _Loader:
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(PATHS[spec.name])
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # the import system has put the alias's there


def install() -> None:
    """Make the paths importable in this process."""
    sys.meta_path.append(_Finder())
