"""Pre-compiled mode: a driver and no NVRTC. Built-in operations come from a bundle, jit says what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit.jit import bundle
from pygpukit.jit.builtin import catalogue, source
from pygpukit.jit.compiler import compile_source

sys.path.append(str(Path(__file__).parent / "mock_libcuda"))

from mock_cuda import build
from test_cuda_backend import run

ARCH = "sm_90a"  # the mock's device
HIDE_NVRTC = """
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.jit import nvrtc
def nothing(candidates):
    raise NvrtcError("tried libnvrtc.so.13", NvrtcErrorCode.NotLoaded)
nvrtc.native.nvrtc_open = nothing
assert gp.backend() == "cuda"
"""


def add_float32() -> bundle.Unit:
    """The unit that holds the dense float32 addition."""
    wanted = "pk::binary_dense<float, float, pk::Add>"
    units = [unit for unit in catalogue() if any("float, float" in e and "Add" in e and "dense" in e for e in unit[1])]
    assert units, f"no unit has {wanted} or the like"
    return units[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if gp.get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed (pygpukit[cuda13])")
    target = tmp_path_factory.mktemp("bundle")
    unit = add_float32()
    image = compile_source(source(unit[0]), name=unit[0], arch=ARCH, name_expressions=unit[1])
    bundle.put(target, ARCH, unit, image)
    return target


def test_a_bundled_operation_launches_without_nvrtc(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = HIDE_NVRTC + "x = gp.from_numpy(np.ones(1000, dtype=np.float32))\ngp.add(x, x)\ngp.synchronize()"
    environment = {"PYGPUKIT_BUNDLE": str(folder), "PYGPUKIT_CACHE_DIR": str(tmp_path), "MOCK_CUDA_LOG": str(log)}
    run(code, build() / "mock", **environment)
    assert sum(line.startswith("cuLaunchKernel ") for line in log.read_text().splitlines()) == 1


def test_what_is_not_bundled_and_jit_say_what_to_install(folder: Path, tmp_path: Path) -> None:
    code = HIDE_NVRTC + (
        "x = gp.from_numpy(np.ones(1000, dtype=np.int16))\n"
        "for call in (lambda: gp.matmul(x, x), lambda: gp.jit('__global__ void k() {}')):\n"
        "    try:\n"
        "        call()\n"
        "    except NvrtcError as error:\n"
        "        print(error)\n"
    )
    out = run(code, build() / "mock", PYGPUKIT_BUNDLE=str(folder), PYGPUKIT_CACHE_DIR=str(tmp_path)).splitlines()
    assert [line.startswith("[NotLoaded] NVRTC JIT compiler not available") for line in out] == [True, True]
    assert str(folder) in out[0] and 'pip install "pygpukit[cuda13]"' in out[1]


def test_an_image_of_other_text_is_not_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_BUNDLE", str(folder))
    expression = add_float32()[1][0]
    assert bundle.find(ARCH, catalogue(), expression) is not None
    assert bundle.find("sm_80", catalogue(), expression) is None
    monkeypatch.setattr(bundle, "_texts", lambda: b"another version")
    assert bundle.find(ARCH, catalogue(), expression) is None
