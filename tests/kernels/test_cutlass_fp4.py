"""Products of two fp4 operands by CUTLASS: how scales lie, what a pretended device launches, refusals, the compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import GPUError, ModelNotFoundError
from pygpukit.jit.compile import nvrtc
from pygpukit.jit.cutlass import place
from pygpukit.jit.inspect.cubin import read_cubin
from pygpukit.kernels import builder, registry
from pygpukit.kernels.planning import planning
from pygpukit.models import cutlass
from pygpukit.ops.matmul.cutlass import block_scaled
from pygpukit.ops.matmul.fp4.encoding import Fp4Matrix
from pygpukit.ops.matmul.sm90 import tensor_maps

pytestmark = pytest.mark.skipif(bool(nvrtc.missing()), reason="what is launched depends on the compiler: needs NVRTC")


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests go without CUTLASS."""
    monkeypatch.delenv("PYGPUKIT_NO_CUTLASS", raising=False)


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for models in which the headers seem to be."""
    monkeypatch.setenv("PYGPUKIT_MODELS", str(tmp_path))
    place.folder().joinpath("include").mkdir(parents=True)
    return tmp_path


def matrix(rows: int, k: int, kind: str) -> Any:
    """Of NVFP4 or MXFP4, its codes 0."""
    block, scales = (16, "float8_e4m3") if kind == "nvfp4" else (32, "uint8")
    return gp.zeros((rows, k // 2), "uint8"), gp.zeros((rows, k // block), scales)


@pytest.mark.parametrize(
    ("rows", "k", "block"), [(1, 64, 16), (128, 128, 16), (300, 448, 16), (5, 64, 32), (260, 640, 32)]
)
def test_scales_lie_in_atoms(rows: int, k: int, block: int) -> None:
    rng = np.random.default_rng()
    scales = rng.integers(1, 200, (rows, k // block), np.uint8)
    given = Fp4Matrix(gp.zeros((rows, k // 2), "uint8"), gp.from_numpy(scales).view("float8_e4m3"))
    found = block_scaled.in_atoms(given).to_numpy().reshape(-1)
    wide = -(-k // 128) * 128 // block
    assert found.size == -(-rows // 128) * 128 * wide
    wanted = np.zeros_like(found)
    for r in range(rows):
        for s in range(k // block):
            atom = (r // 128 * (wide // 4) + s // 4) * 512
            wanted[atom + r % 32 * 16 + r % 128 // 32 * 4 + s % 4] = scales[r, s]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize(("kind", "types"), [("nvfp4", "float_ue4m3_t, 16"), ("mxfp4", "float_ue8m0_t, 32")])
def test_two_fp4_operands_are_handed_over(kind: str, types: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[tuple[Any, ...]] = []
    maps: list[tuple[tuple[int, ...], dict[str, Any]]] = []
    monkeypatch.setattr(block_scaled, "launch", lambda *launched: launches.append(launched))
    told = tensor_maps.tail
    monkeypatch.setattr(tensor_maps, "tail", lambda *fields, **more: (maps.append((fields, more)), told(*fields))[1])
    with planning("sm_120a"):
        a, w = matrix(300, 448, kind), (*matrix(520, 448, kind), 0.25)
        out = gp.matmul_fp4(a, w, out_dtype="bfloat16", backend="cutlass")
        plan = gp.ops.matmul_fp4_plan(a, w, backend="cutlass")
        assert gp.ops.matmul_fp4_plan(a, w).backend == "blocks", "by name alone: no GPU has run it"
    assert plan.backend == "cutlass" and "by CUTLASS for the tensor cores of SM 12.0" in plan.reason
    ((spec, grid, block, call, _, left, _, right, a_scales, w_scales, *_, into),) = launches
    assert spec.expression == f"pk::cutlass_block_scaled<pk::bfloat16_t, cutlass::{types}>"
    assert grid[0] <= 15 and block == (384, 1, 1) and out.shape == into.shape == (300, 520)  # 3 x 5 tiles
    assert call[:32] == np.array([300, 520, 4, 5, 15], np.int32).tobytes() + np.float32(0.25).tobytes() + bytes(8)
    assert maps == [((1, 128, 224, lines, 224, 1, 0), {"line": 64}) for lines in (300, 520)]
    each = 512 // (16 if kind == "nvfp4" else 32)
    assert (a_scales.size, w_scales.size, len(left), len(right)) == (384 * each, 640 * each, 120, 120)


def test_what_it_does_not_take_is_refused(headers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, w = matrix(4, 64, "nvfp4"), matrix(8, 64, "nvfp4")

    def said(a: Any, w: Any) -> str:
        with pytest.raises(GPUError) as caught:
            gp.matmul_fp4(a, w, backend="cutlass")
        return str(caught.value)

    assert "the simulated device does not run CUTLASS's kernels for SM 12.0; leave backend out" in said(a, w)
    with pytest.raises(ValueError, match="backend='tile'; it is 'cutlass', or None"):
        gp.matmul_fp4(a, w, backend="tile")
    with planning("sm_120a"):
        assert "CUTLASS's kernels take two fp4 operands" in said(gp.zeros((4, 64), "bfloat16"), w)
    for arch, name in (("sm_90a", "9.0"), ("sm_100a", "10.0")):
        with planning(arch):
            assert f"are those of SM 12.0; this device is SM {name}" in said(a, w)
    monkeypatch.setenv("PYGPUKIT_MODELS", str(headers / "elsewhere"))
    with planning("sm_120a"):
        assert "fetch them with: pygpukit get cutlass; leave backend out" in said(a, w)


@pytest.mark.timeout(900)
@pytest.mark.turns(2)  # each takes a minute of a processor
@pytest.mark.parametrize(("kind", "words"), [("float_ue4m3_t, 16", "4X"), ("float_ue8m0_t, 32", "2X")])
def test_a_kernel_compiles_for_sm_120a(kind: str, words: str) -> None:
    try:
        cutlass.get()
    except ModelNotFoundError as error:
        pytest.skip(f"the headers of CUTLASS are not here: {error}")
    expression = f"pk::cutlass_block_scaled<pk::half_t, cutlass::{kind}>"
    (unit,) = (one for one in registry.units(block_scaled.SOURCE.source) if one.expressions == (expression,))
    compiled = builder.compile_unit(unit, "sm_120a")
    (kernel,) = read_cubin(compiled.image).kernels.values()
    assert kernel.registers <= 168
    assert f"mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::{words}.m16n8k64" in compiled.ptx
