"""Pre-compiled mode: a driver and no NVRTC. Built-in operations come from a bundle, jit says what to install."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from mock_cuda import build, run

import pygpukit as gp
from pygpukit.core.extras import install_command
from pygpukit.jit.cutlass import place
from pygpukit.kernels import bundle, registry, sources
from pygpukit.kernels.builder import compile_unit
from pygpukit.kernels.registry import Unit, catalogue
from pygpukit.ops.matmul.cutlass import scaled

ADD = "pk::binary_dense<float, float, pk::Add>"
ARCH = "sm_90a"  # the mock's device
HIDE_NVRTC = """
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.jit.compile import nvrtc
def nothing(candidates):
    raise NvrtcError("tried libnvrtc.so.13", NvrtcErrorCode.NotLoaded)
nvrtc.native.nvrtc_open = nothing
assert gp.backend() == "cuda"
"""


def add_float32() -> Unit:
    """The unit that holds the dense float32 addition."""
    units = [unit for unit in catalogue() if ADD in unit.expressions]
    assert units, f"no unit has {ADD}"
    return units[0]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if gp.get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed (extra cuda13)")
    target = tmp_path_factory.mktemp("bundle") / "kernels.bundle"
    unit = add_float32()
    image = compile_unit(unit, ARCH)
    assert bundle.write(target, [(ARCH, unit, image)]) == 1
    return target


def test_a_bundled_operation_launches_without_nvrtc(packed: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = HIDE_NVRTC + "x = gp.from_numpy(np.ones(1000, dtype=np.float32))\ngp.add(x, x)\ngp.synchronize()"
    environment = {"PYGPUKIT_BUNDLE": str(packed), "PYGPUKIT_CACHE_DIR": str(tmp_path), "MOCK_CUDA_LOG": str(log)}
    run(code, build() / "mock", **environment)
    assert sum(line.startswith("cuLaunchKernel ") for line in log.read_text().splitlines()) == 1


def test_what_is_not_bundled_and_jit_say_what_to_install(packed: Path, tmp_path: Path) -> None:
    code = HIDE_NVRTC + (
        "x = gp.from_numpy(np.ones(1000, dtype=np.int16))\n"
        "for call in (lambda: gp.matmul(x, x), lambda: gp.jit('__global__ void k() {}')):\n"
        "    try:\n"
        "        call()\n"
        "    except NvrtcError as error:\n"
        "        print(error)\n"
    )
    out = run(code, build() / "mock", PYGPUKIT_BUNDLE=str(packed), PYGPUKIT_CACHE_DIR=str(tmp_path)).splitlines()
    assert [line.startswith("[NotLoaded] NVRTC JIT compiler not available") for line in out] == [True, True]
    assert str(packed) in out[0] and install_command("cuda") in out[1]


def test_an_image_of_other_text_is_not_found(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_BUNDLE", str(packed))
    unit = add_float32()
    spec = unit.spec.of(unit.expressions[0])
    assert bundle.find(ARCH, spec) is not None
    assert bundle.find("sm_80", spec) is None
    texts = sources.texts
    monkeypatch.setattr(sources, "texts", lambda key: texts(key) | {"walk.cuh": "another version"})
    assert bundle.find(ARCH, spec) is None


def test_an_image_made_with_other_headers_of_cutlass_is_not_found(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found depends on the version that this package knows, not on headers that are here."""
    monkeypatch.setenv("PYGPUKIT_MODELS", str(tmp_path))  # none
    (unit, *_) = registry.units(scaled.SOURCE.source)
    image, target = compile_unit(add_float32(), ARCH), tmp_path / "own.bundle"
    bundle.write(target, [(ARCH, one, image) for one in (unit, add_float32())])
    monkeypatch.setenv("PYGPUKIT_BUNDLE", str(target))
    kernel, other = scaled.SOURCE.of(unit.expressions[0]), add_float32().spec.of(ADD)
    assert bundle.find(ARCH, kernel) is not None and bundle.find(ARCH, other) is not None
    monkeypatch.setattr(place, "VERSION", "9.9")
    assert bundle.find(ARCH, kernel) is None and bundle.find(ARCH, other) is not None


def test_an_edit_of_one_source_leaves_the_others_in_the_bundle(packed: Path, tmp_path: Path) -> None:
    """So that a bundle serves a source install in which one kernel is worked on."""
    unit = add_float32()
    code = (
        "from pathlib import Path\n"
        "from pygpukit.kernels import bundle, registry\n"
        f"units = [one for one in registry.catalogue() if one.source == {unit.source!r}]\n"
        f"print(len(units) - len(bundle.missing(Path({str(packed)!r}), [{ARCH!r}], units)))"
    )
    for edited, found in (("ops/scan/scan.cu", 1), ("kernels/include/scan.cuh", 1), ("kernels/include/walk.cuh", 0)):
        own = tmp_path / edited
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text("// edited")
        assert int(run(code, build() / "mock", PYGPUKIT_KERNELS=str(tmp_path))) == found, edited


def test_a_bundle_says_what_it_lacks(packed: Path) -> None:
    unit = add_float32()
    assert bundle.missing(packed, [ARCH], [unit]) == []
    other = Unit(unit.spec, unit.expressions[:1])
    assert bundle.missing(packed, [ARCH, "sm_80"], [unit, other]) == [
        f"{ARCH}: {unit.source} (1 kernels)",
        f"sm_80: {unit.source} ({len(unit.expressions)} kernels)",
        f"sm_80: {unit.source} (1 kernels)",
    ]


def test_a_damaged_bundle_is_said_and_nothing_of_it_is_loaded(packed: Path, tmp_path: Path) -> None:
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 1
    broken = tmp_path / "kernels.bundle"
    broken.write_bytes(content)
    code = HIDE_NVRTC + (
        "x = gp.from_numpy(np.ones(1000, dtype=np.float32))\n"
        "try:\n"
        "    gp.add(x, x)\n"
        "except NvrtcError as error:\n"
        "    print(error)\n"
    )
    out = run(code, build() / "mock", PYGPUKIT_BUNDLE=str(broken), PYGPUKIT_CACHE_DIR=str(tmp_path))
    assert f"{broken} cannot be read as an archive" in out and install_command("cuda") in out


def test_equal_kernels_make_equal_bundles(packed: Path, tmp_path: Path) -> None:
    unit = add_float32()
    image = compile_unit(unit, ARCH)
    bundle.write(tmp_path / "again", [(ARCH, unit, image)])
    assert (tmp_path / "again").read_bytes() == packed.read_bytes()


def test_a_wheel_with_an_incomplete_bundle_is_refused(packed: Path, tmp_path: Path) -> None:
    sys.path.append(str(Path(__file__).parents[2] / "tools"))
    from check_wheel import BUNDLE, bundle_problems
    from compile_kernels import ARCHITECTURES, part

    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("pygpukit/__init__.py", "")
    assert bundle_problems(wheel) == [], "a wheel built without NVRTC has none"
    with zipfile.ZipFile(wheel, "a") as file:
        file.write(packed, BUNDLE)
    found = bundle_problems(wheel)
    assert len(found) == sum(unit.is_ahead(arch) for unit in catalogue() for arch in ARCHITECTURES) - 1
    assert all(f"{BUNDLE} lacks sm_" in problem and "--bundle" in problem for problem in found)
    place = next(n for n, unit in enumerate(catalogue()) if unit == add_float32())
    assert bundle_problems(wheel, [ARCH], part(f"{place}/1000000")) == []
    assert len(bundle_problems(wheel, [ARCH], part(f"{place + 1}/1000000"))) == 1
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(BUNDLE, b"damaged")
    assert "cannot be read as an archive" in bundle_problems(wheel)[0]
