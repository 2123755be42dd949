"""The older project's settings of the build: told what they do, or refused; CMake's arguments reach CMake."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from build_settings import notices  # noqa: E402


def test_settings_without_effect_are_told() -> None:
    lines = notices({"CMAKE_CUDA_ARCHITECTURES": "90", "PYGPUKIT_MODULE_SUFFIX": "_cu131", "PATH": "/bin"})
    assert [line.split()[0] for line in lines] == ["CMAKE_CUDA_ARCHITECTURES", "PYGPUKIT_MODULE_SUFFIX"]
    assert all("has no effect: " in line for line in lines)
    assert notices({"PYGPUKIT_DISABLE_CUTLASS": "", "PYGPUKIT_SKIP_NATIVE_BUILD": "0"}) == []


def test_a_build_without_the_core_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"PYGPUKIT_SKIP_NATIVE_BUILD is set.*Unset it"):
        notices({"PYGPUKIT_SKIP_NATIVE_BUILD": "1"})


def test_the_backend_asks_and_cmake_is_given_its_arguments() -> None:
    assert "notices(os.environ)" in (ROOT / "tools/build_backend.py").read_text()
    build = (ROOT / "rust/pygpukit-python/build.rs").read_text()
    assert build.index('"CMAKE_ARGS").unwrap') < build.index("config.build()")
