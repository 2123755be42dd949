"""Triton itself: whether it is installed, its version, and the device that it compiles for."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from types import ModuleType

from pygpukit.core.backend import is_sim
from pygpukit.core.extras import need


def triton_available() -> bool:
    """True where Triton is installed (extra `triton`); it is not imported.

    Returns
    -------
    bool

    Examples
    --------
    >>> gp.triton.triton_available() in (True, False)
    True
    """
    spec = find_spec("triton")
    return spec is not None and spec.origin is not None  # a folder of that name is no package


def get_triton() -> ModuleType:
    """The module `triton`. Raises ModuleNotFoundError with the command that installs it.

    On the simulated device it is imported with its interpreter, TRITON_INTERPRET=1, unless the variable is set.
    """
    if is_sim() and "triton" not in sys.modules:
        os.environ.setdefault("TRITON_INTERPRET", "1")
    need("triton.compiler", "triton", "a Triton kernel")
    return sys.modules["triton"]


def triton_version() -> str:
    """Version of Triton, "3.5.0". Raises ModuleNotFoundError as get_triton()."""
    return str(get_triton().__version__)


def get_triton_device() -> str:
    """The device that kernels run on: "cuda", or "interpreter" on the simulated device."""
    return "interpreter" if is_sim() else "cuda"


def use_triton_backend() -> bool:
    """True where PYGPUKIT_USE_TRITON=1 is set and Triton is installed.

    Nothing is replaced by that alone: `gp.plugins.replace("triton")` and `gp.llm.load(..., replace="triton")` do it.
    """
    return os.environ.get("PYGPUKIT_USE_TRITON") == "1" and triton_available()
