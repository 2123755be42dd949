"""The suite's PTX rewritten for slicing: which kernels slice, why the others do not, and what an assembler says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from corpus.case import Case
from corpus.cases import CASES
from corpus.slices import REFUSED

from pygpukit import _core
from pygpukit.core.errors import UnsliceableError
from pygpukit.jit.compile.nvrtc import get_nvrtc_version
from pygpukit.jit.launch.slicing import sliced_ptx
from pygpukit.jit.launch.unit import Unit

pytestmark = pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
ARCH = "sm_90a"
NAMES = [case.name for case in CASES]


@cache
def unit(name: str) -> Unit:
    case = CASES[NAMES.index(name)]
    expressions = [case.kernel] if "<" in case.kernel else []
    return Unit(
        case.source, name=case.file, options=case.options, defines=case.defines, arch=ARCH, name_expressions=expressions
    )


def sliced(case: Case, newest: tuple[int, int] | None = None) -> str:
    one = unit(case.name)
    return sliced_ptx(one, next(s for s in one.signatures.values() if case.kernel in (s.name, s.expression)), newest)


def symbol(case: Case) -> str:
    return unit(case.name).image.symbol(case.kernel)


def test_most_of_the_suite_slices() -> None:
    """At least fifty kernels of sixty: the share of the suite that the goal asks for."""
    assert set(REFUSED) <= set(NAMES)
    assert len(NAMES) - len(REFUSED) >= 50
    assert (len(NAMES) - len(REFUSED)) * 60 >= len(NAMES) * 50


@pytest.mark.turns(4)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_kernel_slices_or_is_refused_by_name(case: Case) -> None:
    if case.name in REFUSED:
        with pytest.raises(UnsliceableError) as refused:
            sliced(case)
        assert refused.value.reason == REFUSED[case.name]
        assert refused.value.reason in _core.SLICE_REASONS
        line = unit(case.name).image.ptx.splitlines()[refused.value.line - 1]
        assert refused.value.function and line.strip()
        return
    text = sliced(case)
    assert text == sliced(case)
    assert f"{symbol(case)}_pk_slice[24]" in text
    for register in re.findall(r"%(?:nctaid|ctaid)\.\w", text):
        assert register.startswith("%ctaid")
    with pytest.raises(UnsliceableError, match="AlreadySliced"):
        _core.slice_ptx(text, symbol(case))


def find_ptxas() -> str | None:
    """NVIDIA's assembler: $PYGPUKIT_PTXAS, on the path, or of the nvidia-cuda-nvcc package."""
    named = os.environ.get("PYGPUKIT_PTXAS") or shutil.which("ptxas")
    if named:
        return named
    spec = find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return next((str(path) for folder in folders for path in Path(folder).glob("*/bin/ptxas")), None)


PTXAS = find_ptxas()


def registers(text: str, folder: Path) -> dict[str, int]:
    """Registers by entry, as the assembler tells them."""
    (folder / "k.ptx").write_text(text)
    command = [str(PTXAS), "-v", f"-arch={ARCH}", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    entries = re.findall(r"Compiling entry function '(\S+)'", done.stderr)
    used = re.findall(r"Used (\d+) registers", done.stderr)
    return dict(zip(entries, map(int, used), strict=True))


def allocated(registers: int) -> int:
    """Registers of a thread that hardware sets aside: it gives them by eight, so ptxas may align groups of them."""
    return -(-registers // 8) * 8


@pytest.mark.turns(4)
@pytest.mark.skipif(PTXAS is None, reason="there is no ptxas: pip install nvidia-cuda-nvcc, or set PYGPUKIT_PTXAS")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in REFUSED], ids=[name for name in NAMES if name not in REFUSED]
)
def test_the_assembler_takes_it_and_needs_few_more_registers(case: Case, tmp_path: Path) -> None:
    whole = registers(unit(case.name).image.ptx, tmp_path)[symbol(case)]
    part = registers(sliced(case, (9, 0)), tmp_path)
    assert part.keys() == {symbol(case)}
    assert allocated(part[symbol(case)]) <= allocated(whole + 2)


CALLEES = """
__device__ int deltas[4];
__device__ __noinline__ int place() { return blockIdx.x * 100 + blockIdx.y * 10 + gridDim.x; }
__device__ __noinline__ int twice(int x) { return x > 50 ? twice(x / 2) : place() + x; }
__device__ __noinline__ int neutral(int x) { return x * threadIdx.x; }
extern "C" __global__ void calls(int *out) { out[threadIdx.x] = twice(neutral(7)) + gridDim.y; }
extern "C" __global__ void prints() { printf("%d\\n", blockIdx.x); }
extern "C" __global__ void pointer(int *out, int n) {
  int (*table[])(int) = {neutral, twice};
  out[0] = table[n](n);
}
extern "C" __global__ void counted() { atomicAdd(&deltas[0], 1); }
"""


def test_functions_that_are_called_get_the_place(tmp_path: Path) -> None:
    text = Unit(CALLEES, arch=ARCH).image.ptx
    for entry in ("calls", "prints"):
        out = _core.slice_ptx(text, entry, [], (9, 0))
        assert f"{entry}_pk_slice[24]" in out and out.count(".entry") == 1
        if PTXAS is not None:
            registers(out, tmp_path)
    for entry, reason in (("pointer", "IndirectCall"), ("counted", "ModuleVariable"), ("absent", "NoEntry")):
        with pytest.raises(UnsliceableError) as refused:
            _core.slice_ptx(text, entry)
        assert refused.value.reason == reason
