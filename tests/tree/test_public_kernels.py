"""The tool that counts how much of other people's CUDA the simulator takes: what it leaves out, and what it counts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pygpukit.jit.compile.nvrtc import get_nvrtc_version

ROOT = Path(__file__).resolve().parents[2]
NVRTC = pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
MAIN = """#include <cstdio>
#include <cuda_fp16.h>
#include "parts.h"
#define SIZE 4
static std::vector<int> kept;
const int table[2] = {1, 2};
__device__ int twice(int x) { return 2 * x; }
template <class T>
__global__ void scale(T *x) { x[threadIdx.x] = twice(x[threadIdx.x]) + offset(SIZE); }
int main() {
  scale<int><<<1, 32>>>(nullptr);
  scale<half *><<<1, 32>>>(nullptr);
#define LATER 1
  printf("}");
}
namespace more {
void host_only(FILE *f);
__global__ void one(int *x) { *x = LATER; }
}
"""
PARTS = """#include "parts.h"
#include <vector>
inline void told() { puts("{"); }
__device__ int offset(int x) { return x; }
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("public_kernels", ROOT / "tools" / "public_kernels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.cu").write_text(MAIN)
    (tmp_path / "parts.h").write_text(PARTS)
    return tmp_path


def test_host_code_goes_and_every_line_keeps_its_number(tool: ModuleType, folder: Path) -> None:
    text = tool.device_code(folder / "main.cu", [folder])
    for kept in ("#include <cuda_fp16.h>", "#define LATER 1", "const int table", "int twice", "void scale", "void one"):
        assert kept in text
    for gone in ("cstdio", "vector", "main()", "printf", "host_only", "told", "puts"):
        assert gone not in text
    assert text.count("int offset") == 1  # each included file once
    after = text.partition('#line 4 "main.cu"\n')[2].split("\n")
    for at, line in enumerate(MAIN.split("\n")[3:]):
        assert after[at] == line or "__global__" not in line


@NVRTC
def test_a_file_counts_for_the_kernels_that_it_launches(tool: ModuleType, folder: Path) -> None:
    assert tool.measured(folder / "main.cu", folder) == ("", "", "")
    assert tool.measured(folder / "parts.h", folder) is None


@NVRTC
def test_the_table_tells_the_share_and_what_stops_the_others(
    tool: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "refused.cu").write_text("__global__ void k() { nowhere(); }\n")
    (folder / "host.cu").write_text("int main() {}\n")
    only_gpu = "#include <cuda/std/chrono>\n__global__ void k(int *x) { *x = 1; }\n"
    (folder / "only_gpu.cu").write_text(only_gpu)
    assert tool.measured(folder / "only_gpu.cu", folder)[0] == ""
    for least, status in (("50", 0), ("51", 1)):
        monkeypatch.setattr(sys, "argv", ["public_kernels.py", str(folder), "--least", least, "--list"])
        assert tool.main() == status
        said = capsys.readouterr().out
        assert "3 files with kernels; NVRTC takes 2, the simulator 1 of these, 1 in checked mode, too: 50.0 %" in said
        assert "only_gpu.cu: [Compilation]" in said and "cuda/std/chrono" in said
