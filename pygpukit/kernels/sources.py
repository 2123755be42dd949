"""The text of kernel sources: beside their modules, or in the folder that $PYGPUKIT_KERNELS names.

That folder is laid out as the package is: its ops/nn/softmax/softmax.cu and kernels/include/rows.cuh take the place of
the package's; what it lacks is the package's. So kernels are tuned without installing anything.
"""

from __future__ import annotations

from pathlib import Path

from pygpukit import _core

_PACKAGE = Path(_core.__file__).parent
_places: dict[str, Path] = {}  # source key to the file that is installed


def locate(module: str, file: str) -> str:
    """The key of the source `file` beside a module: its path in the package, "ops/nn/softmax/softmax.cu"; elsewhere the
    folder's name and its own. Reads nothing. Raises ValueError for two files of one key."""
    path = Path(module).parent / file
    inside = path.is_relative_to(_PACKAGE)
    key = (path.relative_to(_PACKAGE) if inside else Path(*path.parts[-2:])).as_posix()
    if _places.setdefault(key, path) != path:
        raise ValueError(f"{path} and {_places[key]} would both be the kernel source {key}: rename one")
    return key


def text(key: str) -> str:
    """The text of a source, read once. Raises FileNotFoundError where there is none, InvalidSpecError for a wrong
    $PYGPUKIT_KERNELS."""
    from pygpukit.jit.compile import headers  # and with it the compiler: whoever makes a spec does without
    from pygpukit.jit.locate import kernel_folder

    chosen = kernel_folder()
    instead = chosen / key if chosen is not None else None
    return headers.text(instead if instead is not None and instead.is_file() else _places.get(key, _PACKAGE / key))


def texts(key: str) -> dict[str, str]:
    """The source and the headers of the package that it reaches, by name."""
    from pygpukit.jit.compile import headers

    source = text(key)
    return {key: source, **headers.reached(headers.included(source))}
