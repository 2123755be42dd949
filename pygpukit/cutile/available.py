"""cuTile itself: whether it is installed, its version, and the module that kernels import as `ct`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType

from pygpukit.core.extras import need


def cutile_available() -> bool:
    """True where cuTile is installed (extra `cutile`); it is not imported.

    Returns
    -------
    bool

    Examples
    --------
    >>> gp.cutile.cutile_available() in (True, False)
    True
    """
    if "cuda.tile" in sys.modules:
        return sys.modules["cuda.tile"] is not None
    try:
        return find_spec("cuda.tile") is not None
    except ModuleNotFoundError:  # nor any other package of that folder
        return False


def get_cutile() -> ModuleType:
    """The module `cuda.tile`. Raises ModuleNotFoundError with the command that installs it."""
    return need("cuda.tile", "cutile", "a cuTile kernel on a GPU")


def cutile_version() -> str:
    """Version of cuTile, "1.7.0". Raises ModuleNotFoundError as get_cutile()."""
    return str(get_cutile().__version__)
