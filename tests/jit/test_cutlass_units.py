"""Units that include CUTLASS or CuTe: found by the #include, mended, translated; what is said where headers lack."""

from __future__ import annotations

from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError, DriverError, ModelNotFoundError
from pygpukit.jit.compile import nvrtc
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.sim_source import blank
from pygpukit.jit.cutlass import mended, place, simulated, units
from pygpukit.jit.ptx.statement import KEYWORD
from pygpukit.jit.ptx.translate import translate
from pygpukit.models import cutlass
from pygpukit.ops.matmul.cutlass import room

KERNEL = """// a cell
#include <cute/tiny.hpp>
extern "C" __global__ void k(int *out) { out[threadIdx.x] = cute::USED(threadIdx.x); }
"""
TINY = """#pragma once
namespace cute {
__device__ inline int one_more(int x) {
  asm volatile("add.s32 %0, %0, 1;"
               : "+r"(x));
  return x;
}
__device__ inline int strange(int x) {
  asm volatile("tcgen05.wait::ld.sync.aligned;\\n"
               ::);
  return x;
}
__device__ inline int line() { return __LINE__; }  // 13
__device__ inline int thirteen(int) { return line(); }
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the headers come, with none of them."""
    monkeypatch.setenv("PYGPUKIT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path / "cache"))
    mended.texts.cache_clear()
    return place.folder() / "include"


def played(folder: Path, tiny: str = TINY) -> None:
    for name in mended.MENDS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "cute" / "tiny.hpp").write_text(tiny)


@pytest.fixture(scope="module")
def real() -> Path:
    try:
        return cutlass.get() / "include"
    except ModelNotFoundError as error:
        pytest.skip(f"the headers of CuTe are not here: {error}")


@pytest.mark.parametrize("arch", ["sim", "sm_90a"])
def test_without_headers_the_include_s_line_says_the_command(folder: Path, arch: str) -> None:
    if arch != "sim" and nvrtc.missing():
        pytest.skip(nvrtc.missing())
    with pytest.raises(CompileError, match="pygpukit get cutlass") as caught:
        compile_source(KERNEL, name="cell", arch=arch)
    assert [found.line for found in caught.value.diagnostics] == [2]


def test_a_folder_of_the_user_s_own_comes_first(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own" / "cute"
    own.mkdir(parents=True)
    (own / "tiny.hpp").write_text("namespace cute { __device__ int mine(int x) { return x + 7; } }")
    out = gp.zeros(4, gp.int32)
    gp.jit(KERNEL.replace("USED", "mine"), include=[tmp_path / "own"])[1, 4](out)
    assert out.to_numpy().tolist() == [7, 8, 9, 10]


def test_statements_run_and_lines_stay(folder: Path) -> None:
    played(folder)
    out = gp.zeros(4, gp.int32)
    gp.jit(KERNEL.replace("USED", "one_more"))[1, 4](out)
    assert out.to_numpy().tolist() == [1, 2, 3, 4]
    gp.jit(KERNEL.replace("USED", "thirteen"))[1, 4](out)
    assert out.to_numpy().tolist() == [13] * 4


def test_an_instruction_that_cannot_run_is_named_where_a_kernel_uses_it(folder: Path) -> None:
    played(folder)
    with pytest.raises(CompileError, match=r"tcgen05\.wait::ld\.sync\.aligned cannot run on the simulated device"):
        compile_source(KERNEL.replace("USED", "strange"), name="cell", arch="sim")


def test_other_headers_are_another_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(folder)
    first = compile_source(KERNEL.replace("USED", "one_more"), name="cell", arch="sim")
    again = compile_source(KERNEL.replace("USED", "one_more"), name="cell", arch="sim")
    assert again.key == first.key and again.origin == "memory"
    monkeypatch.setattr(place, "VERSION", "9.9")
    played(place.folder() / "include", TINY.replace("%0, 1", "%0, 5"))
    other = compile_source(KERNEL.replace("USED", "one_more"), name="cell", arch="sim")
    assert other.key != first.key


def test_options_are_for_nvrtc_alone_and_debug_stays_when_asked_for() -> None:
    assert "-DNDEBUG" in units.nvrtc_flags("sm_80", (), {})
    assert "-DNDEBUG" not in units.nvrtc_flags("sm_80", ("-UNDEBUG",), {})
    assert "-DNDEBUG" not in units.nvrtc_flags("sm_80", (), {"NDEBUG": "1"})
    pdl = "-DCUTLASS_ENABLE_GDC_FOR_SM90=1"
    assert pdl in units.nvrtc_flags("sm_90a", (), {}) and pdl not in units.nvrtc_flags("sm_100a", (), {})
    assert not units.included(["cutevalues.h", "mycutlass/x.h", "cuda_fp16.h"], [])


def made_of(statement: str) -> str:
    return translate(statement, blank(statement), lambda offset: True, lambda start, end: "")[0]


MATRICES = " {%0,%1,%2,%3}, [%4];"
SUMS = " {%0,%1}, {%2}, {%3}, {%0,%1};"


@pytest.mark.parametrize(
    ("documented", "other", "operands"),
    [
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.x4.m8n8.shared.b16", MATRICES),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16", MATRICES),
        (
            "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32",
            "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32.satfinite",
            SUMS,
        ),
    ],
)
def test_modifiers_where_ptxas_takes_them_too(documented: str, other: str, operands: str) -> None:
    outs = ", ".join(f'"+r"(x[{i}])' for i in range(5))
    first, second = (made_of(f'asm volatile("{one}{operands}" : {outs});') for one in (documented, other))
    assert first == second


def test_every_mend_changes_its_header(real: Path) -> None:
    for name, text in mended.texts(real).items():
        before = (real / name).read_text()
        assert text != before, name
        assert text.startswith(before) or text.count("\n") == before.count("\n"), name


def test_no_statement_is_left_that_a_simulated_kernel_reaches(real: Path) -> None:
    for name in ("cute/arch/copy_sm75.hpp", "cute/arch/copy_sm80.hpp", "cute/arch/mma_sm80.hpp"):
        text = (real / name).read_text()
        made = simulated.translated(text, name)
        assert not KEYWORD.search(blank(made)) and "ldmatrix" not in blank(made).replace("pk_sim_ldmatrix", "")
        head, _, body = made.partition(f'#line 1 "{name}"\n')
        assert head.startswith("#include <pk_sim_ptx.h>") and body.count("\n") == text.count("\n"), name
        assert "pk_sim_refused" not in made or name.endswith("mma_sm80.hpp")


def test_wgmma_ends_a_kernel_by_name(real: Path) -> None:
    source = """#include <cute/arch/mma_sm90_gmma.hpp>
    extern "C" __global__ void k(int *x) { x[0] = 1; cute::warpgroup_arrive(); }"""
    out = gp.zeros(1, gp.int32)
    with pytest.raises(DriverError, match=r"Attempting to use wgmma\.fence"):
        gp.jit(source)[1, 1](out)
        out.to_numpy()


@pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing() or "NVRTC is here")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_nvrtc_compiles_a_cell_and_tensor_maps_have_the_host_s_alignment(real: Path, arch: str) -> None:
    source = """
    #include <cute/tensor.hpp>
    #include <cutlass/numeric_types.h>
    #include <cute/arch/copy_sm90_desc.hpp>
    static_assert(sizeof(cute::TmaDescriptor) == 128 && alignof(cute::TmaDescriptor) == 128);
    static_assert(std::is_pointer_v<std::void_t<int> *> && std::max(1, 2) == 2);
    extern "C" __global__ void k(cutlass::half_t *x, int n) {
      auto all = cute::make_tensor(cute::make_gmem_ptr(x), cute::make_shape(n, n));
      auto [i, j] = cute::make_tuple(threadIdx.x, blockIdx.x);
      all(i, j) = cute::get<1>(cute::seq<3, 4>{}) * all(i, j);
    }"""
    image = compile_source(source, name="cell", arch=arch)
    assert image.arch == arch and "k" in image.ptx and not image.log.strip()


def test_cutlass_is_left_out_where_libcudacxx_is_not_beside_an_older_nvrtc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(room.place, "missing", lambda: "")
    monkeypatch.setattr(nvrtc, "missing", lambda: "")
    monkeypatch.setattr(nvrtc, "open_nvrtc", lambda: (None, (13, 0)))
    monkeypatch.setattr(nvrtc, "_headers", lambda: (tmp_path,))
    assert "libcu++ is not beside NVRTC 13.0; install it with" in room.lacking() and "cccl" in room.lacking()
    (tmp_path / "cuda" / "std").mkdir(parents=True)
    (tmp_path / "cuda" / "std" / "cassert").touch()
    assert not room.lacking()
    monkeypatch.setattr(nvrtc, "_headers", tuple)
    monkeypatch.setattr(nvrtc, "open_nvrtc", lambda: (None, (13, 5)))
    assert not room.lacking()
