"""Child processes that run a module of this package: the one that the parent runs, whatever folder it stands in."""

from __future__ import annotations

import sys

# With -m Python would look in the present folder first, where a source tree without its compiled core may lie.
_CODE = """import runpy, sys
sys.path[:] = {path!r}
runpy.run_module({module!r}, run_name="__main__")"""


def command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with the modules that this process finds."""
    return [sys.executable, "-c", _CODE.format(path=sys.path, module=module), *arguments]
