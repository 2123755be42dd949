"""Optional libraries: loaded when first needed, with a sentence that says how to install what is missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def need(module: str, extra: str, why: str) -> ModuleType:
    """The module, which the extra brings. Raises ModuleNotFoundError with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # the library is there, but one of its own is not
        raise ModuleNotFoundError(f'{why} needs {module}: pip install "pygpukit[{extra}]"', name=module) from None
