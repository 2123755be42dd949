"""Where NVRTC, other CUDA libraries, headers and the cache may be: what each platform calls them and where they lie."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from pygpukit import _core
from pygpukit.core.errors import InvalidSpecError

_PACKAGE = Path(_core.__file__).parent
_MAJORS = (13, 12)
_PROGRAM_WHEEL = "nvidia/cu13/bin"
_HEADER_WHEELS = ("nvidia/cu13/include", "nvidia/cuda_runtime/include")

if sys.platform == "win32":
    _NAMES = tuple(f"nvrtc64_{major}0_0.dll" for major in _MAJORS)
    _WHEELS = ("nvidia/cu13/bin/x86_64", "nvidia/cu13/bin", "nvidia/cuda_nvrtc/bin")
    _SOLVERS: tuple[str, ...] = ("cusolver64_12.dll", "cusolver64_11.dll")
    _PRODUCTS: tuple[str, ...] = ("cublasLt64_13.dll", "cublasLt64_12.dll")
    _TOOLKIT = ("bin/x64", "bin")
    _SYSTEM: tuple[str, ...] = ()
elif sys.platform == "darwin":  # NVIDIA ships nothing for macOS
    _NAMES, _WHEELS, _TOOLKIT, _SYSTEM, _SOLVERS, _PRODUCTS = (), (), (), (), (), ()
else:
    _NAMES = tuple(f"libnvrtc.so.{major}" for major in _MAJORS)
    _WHEELS = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cusolver/lib", "nvidia/cublas/lib")
    _SOLVERS = ("libcusolver.so.12", "libcusolver.so.11")
    _PRODUCTS = tuple(f"libcublasLt.so.{major}" for major in _MAJORS)
    _TOOLKIT = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
    _SYSTEM = ("/usr/local/cuda",)


def nvrtc_candidates() -> list[str]:
    """Library files that exist, best first: pip wheels, $CUDA_PATH and $CUDA_HOME, /usr/local/cuda; then plain names,
    for which the dynamic loader searches."""
    return _candidates(_NAMES)


def cusolver_candidates() -> list[str]:
    """cuSOLVER, looked for as NVRTC is."""
    return _candidates(_SOLVERS)


def cublaslt_candidates() -> list[str]:
    """cuBLASLt, looked for as NVRTC is."""
    return _candidates(_PRODUCTS)


def _candidates(names: tuple[str, ...]) -> list[str]:
    folders = [Path(entry, wheel) for entry in dict.fromkeys(sys.path) if entry for wheel in _WHEELS]
    folders += [Path(root, part) for root in _toolkits() for part in _TOOLKIT]
    return list(
        dict.fromkeys(
            [*(str(folder / name) for folder in folders for name in names if (folder / name).is_file()), *names]
        )
    )


def cuda_headers() -> list[Path]:
    """Folders with CUDA's device headers, of the runtime's pip wheel or of a toolkit; empty where there are none.

    One that has the C++ core libraries too goes before one that lacks them: cooperative_groups.h needs them.
    """
    folders = [Path(entry, wheel) for entry in dict.fromkeys(sys.path) if entry for wheel in _HEADER_WHEELS]
    folders += [Path(root, "include") for root in _toolkits()]
    folders = [folder for folder in folders if (folder / "cuda_fp16.h").is_file()]
    for folder in folders:
        for libraries in (folder / "cccl", folder):
            if (libraries / "nv" / "target").is_file():
                return list(dict.fromkeys([folder, libraries]))
    return folders[:1]


def nvdisasm() -> str | None:
    """The disassembler's path: of the pip wheel, on PATH, or of a toolkit; None where there is none."""
    return _program("nvdisasm")


def tileiras() -> str | None:
    """The path of the assembler of tile kernels, looked for as the disassembler is."""
    return _program("tileiras")


def _program(name: str) -> str | None:
    if sys.platform == "win32":
        name += ".exe"
    folders = [Path(entry, _PROGRAM_WHEEL) for entry in dict.fromkeys(sys.path) if entry]
    folders += [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    folders += [Path(root, "bin") for root in _toolkits()]
    return next((str(folder / name) for folder in folders if os.access(folder / name, os.X_OK)), None)


def _toolkits() -> list[str]:
    return [root for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), *_SYSTEM) if root]


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


def kernel_folders() -> list[Path]:
    """Where the package's kernel text is looked for, first one first: $PYGPUKIT_KERNELS, the package."""
    chosen = kernel_folder()
    return [_PACKAGE] if chosen is None else [chosen, _PACKAGE]
