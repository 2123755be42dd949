"""What the tests of matrix instructions run is what NVRTC takes, too: their sources compiled for real devices."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest
from corpus.cases import CASES

from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.toolchain import nvrtc_candidates

pytestmark = pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)
ARCHITECTURES = ("sm_80", "sm_90a")
FRAGMENTS = [case for case in CASES if case.file.startswith(("wmma_", "mma_"))]


@pytest.fixture
def of_both(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The modules beside this one that make sources."""
    return {name: importlib.import_module(name) for name in ("test_mma_sync", "test_wmma")}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_suite(arch: str) -> None:
    assert len(FRAGMENTS) >= 26
    for case in FRAGMENTS:
        image = compile_source(case.source, name=case.file, arch=arch, name_expressions=[case.kernel])
        assert image.image, case.file


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products_of_fragments(of_both: dict[str, ModuleType], arch: str) -> None:
    wmma = of_both["test_wmma"]
    for kinds in wmma.GROUPS.values():
        assert compile_source(wmma.HEAD + "".join(wmma.kernel(one, f"k{i}") for i, one in enumerate(kinds)), arch=arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_instructions(of_both: dict[str, ModuleType], arch: str) -> None:
    mma = of_both["test_mma_sync"]
    # Devices before 8.9 have no floats of 8 bits, those before 9.0 only the smallest product of doubles.
    kinds = [
        one for one in mma.KINDS
        if arch != "sm_80" or not (one.a in ("e4m3", "e5m2") or (one.a == "f64" and one.m == 16))
    ]  # fmt: skip
    source = "".join(mma.source_of(one, f"k{i}") for i, one in enumerate(kinds))
    assert compile_source(source, arch=arch).image
