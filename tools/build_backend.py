"""PEP 517 backend: builds the browser bundles when they are missing or stale, then lets maturin do everything else."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import maturin

sys.path.insert(0, str(Path(__file__).parent))

from build_frontend import build_frontend
from build_settings import notices
from stage_notebooks import stage_notebooks

ROOT = Path(__file__).resolve().parent.parent


def _require(program: str, sentence: str) -> None:
    if shutil.which(program) is None:
        raise SystemExit(f"pygpukit cannot be built: {sentence}")


def _prepare(native: bool) -> None:
    if native:
        for line in notices(os.environ):
            print(line, file=sys.stderr)
        _require("cargo", "cargo was not found. Install Rust 1.80 or newer (https://rustup.rs or your distribution).")
        compilers = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
        if not any(name and shutil.which(name) for name in compilers):
            raise SystemExit(
                "pygpukit cannot be built: no C++ compiler was found. Install g++ 11 or newer, or clang 14 or newer."
            )
    build_frontend(ROOT)
    stage_notebooks(ROOT)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return []


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return []


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    return []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    _prepare(native=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Any = None) -> str:
    _prepare(native=True)
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _prepare(native=True)
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _prepare(native=True)
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    _prepare(native=False)
    return maturin.build_sdist(sdist_directory, config_settings)
