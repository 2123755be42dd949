"""Products by CUTLASS on the simulated device, where its headers are let reach SM 9.0, against NumPy."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import ModelNotFoundError
from pygpukit.jit.cutlass import simulated
from pygpukit.models import cutlass
from pygpukit.ops.matmul.cutlass import block_scaled, grouped, mixed, room
from pygpukit.ops.matmul.fp4.matrices import filled
from pygpukit.ops.matmul.tile.fp8 import Scale

SEED = secrets.randbits(32)
REPLACED = [  # what the host's compiler does not take, or is for a host
    (re.compile(r"using McastDirection = McastDirection;"), ""),
    (re.compile(r"std::is_const_v<"), "cuda::std::is_const_v<"),
    (re.compile(r"KernelHardwareInfo::query_device_multiprocessor_count\([^;]*\);"), "0;"),
]


@pytest.fixture
def on_sm_90(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_sim():
        pytest.skip("of the simulated device")
    try:
        cutlass.get()
    except ModelNotFoundError as error:
        pytest.skip(f"the headers of CUTLASS are not here: {error}")
    told = simulated.translated

    def translated(text: str, name: str) -> str:
        for pattern, other in REPLACED:
            text = pattern.sub(other, text)
        return told(text, name)

    monkeypatch.setattr(simulated, "translated", translated)
    monkeypatch.setattr(simulated, "_NEVER", re.compile(r"sm90_gmma(_sparse)?_ext|(mma|copy)_sm1\d\d|tmem"))
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYGPUKIT_SIM_COMPILE_TIMEOUT_S", "600")
    monkeypatch.setenv("PYGPUKIT_SIM_COMPILE_MEMORY", "6GB")
    for module in (grouped, mixed):  # whole 1024 bytes: then they begin at such an address, as swizzled reads ask
        reaching = module.SOURCE.of("", options=("-D__CUDA_ARCH_FEAT_SM90_ALL=1",), shared_bytes=226 * 1024)
        monkeypatch.setattr(module, "SOURCE", reaching)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.turns(20)  # the kernel is compiled for most of a minute
def test_groups_equal_numpy(on_sm_90: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles a cluster, stages that are filled again, groups that are empty, rows of no group."""
    rng = np.random.default_rng(SEED)
    cases = [(2, np.array([40, 0, 300, 129]), 500, 96, 136), (1, np.array([700]), 700, 512, 128)]
    for _ in range(3):
        counts = rng.integers(-1, 300, 5) * rng.integers(0, 2, 5)
        rows = int(np.maximum(counts, 0).sum() + rng.integers(1, 100))
        k, n = (8 * int(x) for x in rng.integers(1, 60, 2))
        cases.append((int(rng.integers(1, 8)), counts, rows, k, n))
    for clusters, counts, rows, k, n in cases:
        monkeypatch.setattr(room, "clusters", lambda clusters=clusters: clusters)
        x, w = (
            gp.from_numpy(rng.standard_normal(shape, np.float32)).astype("bfloat16")
            for shape in ((rows, k), (len(counts), k, n))
        )
        out = gp.full((rows, n), float("nan"), "bfloat16")
        grouped.product(x, w, gp.from_numpy(counts), out)
        a, b, got = (each.astype("float64").to_numpy() for each in (x, w, out))
        wanted, first = np.zeros((rows, n)), 0
        for group, count in enumerate(np.maximum(counts, 0)):
            wanted[first : first + count] = a[first : first + count] @ b[group]
            first += count
        wrong = ~(np.abs(got - wanted) <= 2.0**-8 * np.abs(wanted) + 2.0**-17 * np.abs(wanted).max())
        assert not wrong.any(), f"{counts} of {rows}, k {k}, n {n}, {clusters} clusters, seed {SEED}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.turns(20)
@pytest.mark.parametrize("result", ["bfloat16", "float32"])
def test_weights_of_fp8_equal_numpy(on_sm_90: None, monkeypatch: pytest.MonkeyPatch, result: str) -> None:
    """Scales of all, rows and columns; sizes that are no whole tiles; rows have the same bits in any batch."""
    rng = np.random.default_rng(SEED)
    for clusters, m, n, k in ((1, 200, 328, 392), (2, 77, 136, 128), (3, 1, 513, 50)):
        monkeypatch.setattr(room, "clusters", lambda clusters=clusters: clusters)
        x, w = (gp.from_numpy(rng.standard_normal(shape, np.float32)) for shape in ((m, k), (n, k)))
        a, b = x.astype("bfloat16"), w.astype("float8_e4m3").T
        of_rows, of_columns = (rng.uniform(0.5, 2, count).astype(np.float32) for count in (m, n))
        left, right = (Scale(gp.from_numpy(scales), 1, (1, 0)) for scales in (of_rows, of_columns))
        number = Scale(None, 1, (0, 0), 0.75)
        numbers = [each.astype("float64").to_numpy() for each in (a, b)]
        for scales, rows, columns in ((left, right), of_rows[:, None], of_columns), ((number, right), 0.75, of_columns):
            out = gp.full((m, n), float("nan"), result)
            mixed.product(a, b, *scales, out)
            wanted, got = rows * (numbers[0] @ numbers[1]) * columns, out.astype("float64").to_numpy()
            near = 2.0**-8 if result == "bfloat16" else 2.0**-20
            wrong = ~(np.abs(got - wanted) <= near * np.abs(wanted) + 2.0**-17 * np.abs(wanted).max())
            assert not wrong.any(), f"{m} x {n} x {k}, {clusters} clusters, seed {SEED}"
        last = gp.full((1, n), float("nan"), result)
        mixed.product(a[-1:], b, number, right, last)
        assert last.to_numpy().tobytes() == out[-1:].clone().to_numpy().tobytes()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.turns(20)
@pytest.mark.parametrize("in_groups", [False, True])
def test_weights_of_int8_equal_numpy(on_sm_90: None, monkeypatch: pytest.MonkeyPatch, in_groups: bool) -> None:
    """Each number of the type; scales of columns after the sums, of groups rounded with the numbers; odd sizes."""
    rng = np.random.default_rng(SEED)
    for clusters, m, n, k in ((1, 200, 328, 512), (2, 77, 136, 128), (3, 1, 513, 49)):
        monkeypatch.setattr(room, "clusters", lambda clusters=clusters: clusters)
        x = gp.from_numpy(rng.standard_normal((m, k), np.float32)).astype("bfloat16")
        w = rng.integers(-128, 128, (n, k), np.int8)
        plain, of_groups, numbers, factors = Scale(None, 1, (0, 0)), None, w.astype(np.float64), np.ones(n, np.float32)
        right = plain
        if in_groups:
            of_groups = gp.from_numpy(rng.uniform(0.5, 2, (max(k // 256, 1), n)).astype(np.float32)).astype("bfloat16")
            scales = of_groups.astype("float32").to_numpy().T.repeat(k // of_groups.shape[0], axis=1)
            numbers = gp.from_numpy(w.astype(np.float32) * scales).astype("bfloat16").astype("float64").to_numpy()
        else:
            factors = rng.uniform(0.5, 2, n).astype(np.float32)
            right = Scale(gp.from_numpy(factors), 1, (1, 0))
        out = gp.full((m, n), float("nan"), "float32")
        mixed.product(x, gp.from_numpy(w).T, plain, right, out, of_groups)
        wanted = x.astype("float64").to_numpy() @ numbers.T * factors
        wrong = ~(np.abs(out.to_numpy() - wanted) <= 2.0**-20 * np.abs(wanted) + 2.0**-17 * np.abs(wanted).max())
        assert not wrong.any(), f"{m} x {n} x {k}, {clusters} clusters, seed {SEED}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.turns(20)
@pytest.mark.parametrize("kind", ["nvfp4", "mxfp4"])
def test_two_operands_of_fp4_equal_numpy(on_sm_90: None, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Several tiles a block, stages that are filled again, sizes that are no whole tiles, a scale of all."""
    monkeypatch.setattr(simulated, "_NEVER", re.compile(r"(mma|copy)_sm10\d|tmem"))
    enabled = tuple(f"-DCUTE_ARCH_MXF4NVF4_{form}_MMA_ENABLED" for form in ("2X_UE8M0", "4X_UE4M3"))
    monkeypatch.setattr(block_scaled, "SOURCE", block_scaled.SOURCE.of("", options=enabled))
    rng = np.random.default_rng(SEED)
    quantise = gp.ops.quantize_nvfp4 if kind == "nvfp4" else gp.ops.quantize_mxfp4
    for blocks, m, n, k in ((1, 200, 264, 704), (8, 5, 129, 64), (2, 128, 128, 128)):
        monkeypatch.setattr(block_scaled, "multiprocessors", lambda blocks=blocks: blocks)
        a, b = (filled(quantise(gp.from_numpy(rng.standard_normal((lines, k), np.float32)))) for lines in (m, n))
        out = gp.full((m, n), float("nan"), "float32")
        block_scaled.product(a, b, out)
        numbers = [gp.ops.dequantize_fp4(each).astype("float64").to_numpy() for each in (a, b)]
        wanted = numbers[0] @ numbers[1].T
        wrong = ~(np.abs(out.to_numpy() - wanted) <= 2.0**-17 * np.abs(wanted).max())
        assert not wrong.any(), f"{m} x {n} x {k} of {kind}, {blocks} blocks, seed {SEED}"
