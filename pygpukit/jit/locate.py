"""Where the kernel cache lies, and the folders with the text of the package's kernels."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from pygpukit import _core
from pygpukit.core.errors import InvalidSpecError

_PACKAGE = Path(_core.__file__).parent


def cache_directory() -> Path:
    """$PYGPUKIT_CACHE_DIR, else the platform's folder for caches. Raises InvalidSpecError where neither can be told."""
    chosen = os.environ.get("PYGPUKIT_CACHE_DIR")
    if chosen:
        try:
            return Path(chosen).expanduser()
        except RuntimeError:
            user = Path(chosen).parts[0]
            raise InvalidSpecError(
                f"PYGPUKIT_CACHE_DIR={chosen}: there is no home folder for {user}; give a folder by its full path",
                "PYGPUKIT_CACHE_DIR",
            ) from None
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local"
        return Path(root, "pygpukit", "cache")
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "pygpukit"
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache", "pygpukit")


def _home() -> Path:
    """The user's folder, as the system knows it where HOME does not say: never the present folder."""
    if os.environ.get("HOME") == "" and sys.platform != "win32":
        import pwd

        with contextlib.suppress(KeyError):
            return Path(pwd.getpwuid(os.getuid()).pw_dir)
    else:
        with contextlib.suppress(RuntimeError):
            return Path.home()
    raise InvalidSpecError(
        "the folder for compiled kernels is unknown: HOME is not set and the system knows no home folder of this user; "
        "set PYGPUKIT_CACHE_DIR to a folder",
        "PYGPUKIT_CACHE_DIR",
    )


def kernel_folder() -> Path | None:
    """$PYGPUKIT_KERNELS: a folder laid out as the package is, whose kernel sources and headers take the place of the
    package's. None where it is not set. Raises InvalidSpecError for what is no folder."""
    chosen = os.environ.get("PYGPUKIT_KERNELS")
    if not chosen:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise InvalidSpecError(
            f"PYGPUKIT_KERNELS={chosen}: there is no such folder; name one that has ops/ or kernels/include/ in it, or "
            "unset the variable",
            "PYGPUKIT_KERNELS",
        )
    return folder


def models_directory() -> Path:
    """$PYGPUKIT_MODELS, else the folder `models` in the platform's folder for caches."""
    chosen = os.environ.get("PYGPUKIT_MODELS")
    return Path(chosen).expanduser() if chosen else cache_directory() / "models"


def kernel_folders() -> list[Path]:
    """Where the package's kernel text is looked for, first one first: $PYGPUKIT_KERNELS, the package."""
    chosen = kernel_folder()
    return [_PACKAGE] if chosen is None else [chosen, _PACKAGE]
