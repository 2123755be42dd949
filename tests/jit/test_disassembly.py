"""PTX and SASS by source line, for a device that need not be there."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

import pygpukit as gp  # noqa: F401  for the condition of a skip
from pygpukit.core.errors import GPUError
from pygpukit.core.extras import install_command
from pygpukit.jit import JITKernel, jit, ptx_lines, sass_lines, toolchain
from pygpukit.jit.toolchain import nvdisasm, nvrtc_candidates

pytestmark = pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)
needs_nvdisasm = pytest.mark.skipif(nvdisasm() is None, reason="nvdisasm is not installed (extra inspect)")

SOURCE = """#include <cuda_fp16.h>
__device__ __forceinline__ float square(float v) {
    return v * v;
}
extern "C" __global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = square(x[i]) + __half2float(__float2half(x[i]));
}
extern "C" __global__ void other(float* x) { x[0] = 1; }
template <class T> __global__ void fill(T* x) {
    x[threadIdx.x] = T(3);
}
"""


@pytest.fixture
def scale() -> JITKernel:
    return jit(SOURCE, "scale", arch="sm_90a", name="cell")


def test_ptx_lines_are_one_kernels_with_the_lines_of_the_source(scale: JITKernel) -> None:
    lines = ptx_lines(scale)
    assert lines[0].text.startswith(".visible .entry scale(") and lines[-1].text == "}"
    assert {one.line for one in lines if "%ctaid.x" in one.text} == {6}
    assert {one.line for one in lines if "st.global.f32" in one.text} == {8}
    assert {one.line for one in lines if "cvt.rn.f16.f32" in one.text} == {8}, "inlined from a header: its call"
    assert not any("other" in one.text or ".loc" in one.text for one in lines)


def test_a_template_is_found_by_its_symbol() -> None:
    lines = ptx_lines(jit(SOURCE, "fill<double>", arch="sm_90a"))
    assert {one.line for one in lines if "st.global" in one.text} == {12}


def test_line_information_changes_no_instruction(scale: JITKernel) -> None:
    plain = scale.ptx or ""
    instructions = [one.text.strip() for one in ptx_lines(scale) if one.text.startswith("\t") and one.text[-1] == ";"]
    assert instructions
    assert all(text in plain for text in instructions)


@pytest.mark.skipif("gp.backend() == 'cuda'", reason="kernels of the simulation")
def test_a_simulated_kernel_is_shown_for_the_architecture_that_is_asked_for() -> None:
    kernel = jit(SOURCE.replace("#include <cuda_fp16.h>", "#include <cuda_fp16.h>\n"), "other")
    assert kernel.sass is None and kernel.ptx is None
    for show in (ptx_lines, sass_lines):
        with pytest.raises(GPUError, match="other is compiled for the simulated device; give an architecture"):
            show(kernel)
    assert {one.line for one in ptx_lines(kernel, "sm_80") if "st.global" in one.text} == {11}


@needs_nvdisasm
def test_sass_lines_are_one_kernels_with_the_lines_of_the_source(scale: JITKernel) -> None:
    lines = sass_lines(scale)
    assert {one.line for one in lines if "SR_CTAID.X" in one.text} == {6}
    assert {one.line for one in lines if "STG.E" in one.text} == {8}
    assert {one.line for one in lines if "EXIT" in one.text and "@" not in one.text} == {9}
    assert "NOP" not in lines[-1].text
    assert scale.sass is not None
    assert [one.text for one in lines] == scale.sass.splitlines(), "line information changes no instruction"


@needs_nvdisasm
def test_an_image_without_machine_code_says_so() -> None:
    with pytest.raises(GPUError, match="compute_90 has PTX only"):
        _ = jit(SOURCE, "scale", arch="compute_90").sass


def test_without_nvdisasm_one_sentence_says_what_to_install(scale: JITKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "nvdisasm", lambda: None)
    wanted = re.escape(f"needs the program nvdisasm; install it with: {install_command('inspect')}")
    with pytest.raises(GPUError, match=wanted):
        _ = scale.sass


def test_a_disassembler_that_fails_is_named(scale: JITKernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text("#!/bin/sh\necho broken on purpose >&2\nexit 3\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(toolchain, "nvdisasm", lambda: program)
    with pytest.raises(GPUError, match="nvdisasm failed: broken on purpose"):
        _ = scale.sass
