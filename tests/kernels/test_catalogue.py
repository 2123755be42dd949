"""The built-in kernels: listed completely, and each unit compiles for the oldest and the newest supported device."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY
from pygpukit.jit import toolchain
from pygpukit.jit.compile.nvrtc import get_nvrtc_version
from pygpukit.kernels import registry, sources
from pygpukit.ops import elementwise, host
from pygpukit.ops.elementwise import operations, pointwise

UNITS = list(registry.catalogue())
TILES = [unit for unit in UNITS if unit.spec.front_end == "tile"]
OPS = (pointwise.ADD, pointwise.SUB, pointwise.MUL, pointwise.DIV, pointwise.NE, pointwise.LT, pointwise.LE)
COMPUTE = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY]


def test_no_kernel_is_listed_twice() -> None:
    listed = [(unit.source, expression) for unit in UNITS for expression in unit.expressions]
    assert len(listed) == len(set(listed))


def test_every_source_has_kernels() -> None:
    package = Path(gp.__file__).parent
    assert {unit.source for unit in UNITS} == {path.relative_to(package).as_posix() for path in package.rglob("*.cu")}


def test_generic_lambdas_are_compiled_as_the_oldest_compiler_needs_it() -> None:
    """NVRTC 13.0 refuses those of templates without an option that later ones do not need."""
    texts = {u.spec: sources.texts(u.source) for u in UNITS}
    wanting = {
        spec
        for spec, files in texts.items()  # those of CUTLASS are compiled with it anyhow
        if any("](auto " in text for text in files.values())
        and not any("#include <cutlass/" in text for text in files.values())
    }
    assert wanting
    for spec in wanting:
        assert set(kernels.GENERIC_LAMBDAS) <= set(spec.options), spec.source


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the device path asks for, recorded instead of launched."""
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(host, "computes", lambda: False)
    monkeypatch.setattr(pointwise, "_learn", lambda *_: None)
    monkeypatch.setattr(kernels, "launch", lambda spec, *_: asked.append((spec.source, spec.expression)))
    return asked


def test_everything_that_operations_ask_for_is_listed(launched: list[tuple[str, str]]) -> None:
    listed = {(unit.source, expression) for unit in UNITS for expression in unit.expressions}
    for dtype in COMPUTE:
        x = gp.empty((4, 6), dtype)
        for view in (x, x[:, ::2]):
            for op in OPS:
                for other in (view, True, x[0, : view.shape[1]]):
                    try:
                        elementwise.binary(op, view, other, None)
                        elementwise.binary(op, other, view, None)
                    except gp.DTypeError:
                        assert dtype.name in ("bool", "complex64", "complex128")
            for op in operations.UNARY:
                with contextlib.suppress(gp.DTypeError):
                    elementwise.unary(op, view, None)
            for op in operations.BINARY:
                with contextlib.suppress(gp.DTypeError):
                    elementwise.binary(op, view, view, None)
                    elementwise.binary(op, True, view, None)
            with contextlib.suppress(gp.DTypeError):
                gp.where(view, view, 0)
                gp.clamp(view, 0, 1)
            for target in COMPUTE:
                view.astype(target)
            if dtype != "bool":
                gp.neg(view)
            view @ x.T[: view.shape[1]].T[:, : view.shape[1]].T
    for storage in STORAGE_ONLY:
        gp.empty((4, 6), storage)[:, ::2].clone()
    assert len(launched) > 500
    assert set(launched) <= listed


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
@pytest.mark.parametrize("unit", [UNITS[0], UNITS[-1]], ids=str)
def test_units_compile(unit: registry.Unit, arch: str) -> None:
    from pygpukit.kernels.builder import compile_unit

    image = compile_unit(unit, arch)
    assert image.image
    assert set(image.symbols) == set(unit.expressions)
    assert len({image.symbol(expression) for expression in unit.expressions}) == len(unit.expressions)


@pytest.mark.skipif(toolchain.tileiras() is None, reason="needs tileiras: the extra `tile`")
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_a_tile_kernel_compiles_without_spilling(arch: str) -> None:
    """One of them, each day another: all are compiled with the wheel's bundle."""
    from pygpukit.jit.inspect.cubin import read_cubin
    from pygpukit.kernels.builder import compile_unit

    known = [unit for unit in TILES if arch not in ("sm_80", "sm_86") or "fp8" not in unit.expressions[0]]
    unit = known[int(time.time() / 86400) % len(known)]
    image = compile_unit(unit, arch)
    kernels = read_cubin(image.image).kernels
    found = {expression: kernels[image.symbol(expression)].local_bytes for expression in unit.expressions}
    assert arch != "sm_90a" or not any(found.values()), f"registers are spilled: {found}"


@pytest.mark.gpu
def test_kernels_on_the_device_equal_numpy() -> None:
    """Beside tests/ops: large, odd and misaligned dense operands reach the vector and the scalar path."""
    rng = np.random.default_rng(0)
    for size in (1, 3, 1023, 1 << 20, (1 << 20) + 3):
        a, b = rng.standard_normal((2, size + 1), np.float32)
        x, y = gp.from_numpy(a), gp.from_numpy(b)
        np.testing.assert_array_equal((x[1:] * y[1:]).to_numpy(), a[1:] * b[1:])
        np.testing.assert_array_equal((x[:-1] * y[1:]).to_numpy(), a[:-1] * b[1:])
