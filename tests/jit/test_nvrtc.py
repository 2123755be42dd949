"""NVRTC through the compiled core (no GPU needed): images, logs, names, headers, threads, Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from interrupts import interrupt

from pygpukit._core import native
from pygpukit.core.errors import NvrtcError

SCALE = 'extern "C" __global__ void scale(float *x, float f, int n) { int i = threadIdx.x; if (i < n) x[i] *= f; }'
REDUCE = """
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void total(float *x) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const float sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) x[0] = sum;
}
"""
Compiled = tuple[int, str, bytes, bytes, dict[str, str]]


def nvrtc_files() -> list[str]:
    """The NVRTC of the nvidia-cuda-nvrtc package, found without the package's own search."""
    wheels = [Path(entry, "nvidia", "cu13", "lib") for entry in sys.path if entry]
    return [str(file) for folder in wheels for file in sorted(folder.glob("libnvrtc.so.13"))]


pytestmark = pytest.mark.skipif(not nvrtc_files(), reason="nvidia-cuda-nvrtc is not installed")


@pytest.fixture(scope="module", autouse=True)
def version() -> tuple[int, int]:
    path, version = native.nvrtc_open(nvrtc_files())
    assert Path(path).name.startswith("libnvrtc.so.")
    return version


def compile(
    source: str, *options: str, arch: str = "sm_90a", expressions: Sequence[str] = (), **headers: str
) -> Compiled:
    named = {f"{name}.cuh": text for name, text in headers.items()}
    flags = [f"--gpu-architecture={arch}", *options]
    return native.nvrtc_compile(source, "cell.cu", flags, named, list(expressions))[:5]  # without Tile IR


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a"])
def test_cubin_and_ptx_for_each_architecture(arch: str) -> None:
    status, log, cubin, ptx, names = compile(SCALE, arch=arch)
    assert (status, log, names) == (0, "", {})
    assert cubin[:4] == b"\x7fELF" and int.from_bytes(cubin[18:20], "little") == 190 and b".text.scale\0" in cubin
    assert f".target {arch}".encode() in ptx and b".entry scale(" in ptx and not ptx.endswith(b"\0")


def test_virtual_architecture_has_ptx_only() -> None:
    status, _, cubin, ptx, _ = compile(SCALE, arch="compute_90")
    assert status == 0 and cubin == b"" and b".entry scale(" in ptx


def test_every_listed_architecture_compiles() -> None:
    listed = native.nvrtc_architectures()
    assert {80, 90, 100} <= set(listed)
    assert [arch for arch in listed if compile(SCALE, arch=f"sm_{arch}")[0] != 0] == []


def test_errors_name_file_and_line() -> None:
    status, log, cubin, ptx, _ = compile('extern "C" __global__ void k(float *x) {\n  x[0] = y;\n}\n')
    assert status == 6 and 'cell.cu(2): error: identifier "y" is undefined' in log and (cubin, ptx) == (b"", b"")


def test_warnings_come_with_the_image() -> None:
    status, log, cubin, _, _ = compile('extern "C" __global__ void k(float *x) { int unused = 1; x[0] = 1; }')
    assert status == 0 and cubin and "cell.cu(1): warning #177-D" in log


@pytest.mark.parametrize("option", ["--gpu-architecture=sm_10", "--no-such-option"])
def test_bad_option(option: str) -> None:
    status, log, cubin, *_ = native.nvrtc_compile(SCALE, "cell.cu", [option], {}, [])
    assert status == 5 and option.split("=")[0] in log and cubin == b""


def test_name_expressions() -> None:
    source = "template <typename T, int N> __global__ void k(T *x) { x[0] = N; }"
    status, _, cubin, _, names = compile(source, expressions=["k<float, 3>", "k<double, 4>"])
    assert status == 0 and list(names) == ["k<float, 3>", "k<double, 4>"]
    assert len(set(names.values())) == 2 and all(f".text.{name}\0".encode() in cubin for name in names.values())
    status, log, _, _, names = compile(source, expressions=["absent<int>"])
    assert status == 6 and "absent" in log and names == {}


def test_headers_from_memory() -> None:
    source = '#include "outer.cuh"\nextern "C" __global__ void k(int *x) { x[0] = VALUE; }'
    assert compile(source, outer='#include "inner.cuh"', inner="#define VALUE 3")[0] == 0
    status, log, _, _, _ = compile(source, outer="")
    assert status == 6 and 'identifier "VALUE" is undefined' in log
    status, log, _, _, _ = compile(source)
    assert status == 6 and 'open source file "outer.cuh"' in log


@pytest.mark.parametrize("where", ["source", "option", "header", "expression"])
def test_nul_bytes_are_refused_not_cut_off(where: str) -> None:
    text = {"source": "", "option": "", "header": "", "expression": "", where: "a\0b"}
    status, log, cubin, *_ = native.nvrtc_compile(
        SCALE + text["source"],
        "cell.cu",
        ["-D" + text["option"]] if text["option"] else [],
        {"h.cuh": text["header"]},
        [text["expression"]] if text["expression"] else [],
    )
    assert status == 3 and "NUL byte" in log and cubin == b""


def test_half_precision_with_the_headers_that_nvrtc_carries(version: tuple[int, int], tmp_path: Path) -> None:
    if version < (13, 3):
        with pytest.raises(NvrtcError, match=r"13\.3 or newer"):
            native.nvrtc_install_headers(str(tmp_path))
        return
    native.nvrtc_install_headers(str(tmp_path / "headers"))
    native.nvrtc_install_headers(str(tmp_path / "headers"))
    body = 'extern "C" __global__ void k(__half *x) { x[0] = __hadd(x[0], x[1]); }'
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + body
    assert compile(source)[0] == 6
    status, log, cubin, _, _ = compile(source, f"-I{tmp_path / 'headers'}", f"-I{tmp_path / 'headers' / 'cccl'}")
    assert status == 0 and cubin, log
    (tmp_path / "file").write_text("")
    with pytest.raises(NvrtcError, match="could not write its headers"):
        native.nvrtc_install_headers(str(tmp_path / "file" / "below"))


def test_many_threads_at_once() -> None:
    def one(i: int) -> bool:
        status, _, cubin, ptx, _ = compile(SCALE.replace("scale", f"scale_{i}"))
        return status == 0 and f".text.scale_{i}\0".encode() in cubin and f".entry scale_{i}(".encode() in ptx

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(one, range(32)))


def test_interrupt_returns_at_once_and_the_compiler_still_works(version: tuple[int, int], tmp_path: Path) -> None:
    if version < (13, 3):
        pytest.skip("needs a source that compiles for seconds: the headers of NVRTC 13.3")
    native.nvrtc_install_headers(str(tmp_path))
    folders = (f"-I{tmp_path}", f"-I{tmp_path / 'cccl'}")
    late_s = [interrupt(lambda: compile(REDUCE, *folders), after_s=0.3) for _ in range(2)]
    # The goal is 0.1 s; this bound only tells an interrupt from a finished compilation. Other processes may delay one.
    assert min(late_s) < 1.0, late_s
    assert compile(SCALE)[0] == 0


def test_nothing_found_lists_what_was_tried(tmp_path: Path) -> None:
    (tmp_path / "libnvrtc.so.13").write_text("no library " * 20)
    code = f"""
from pygpukit._core import native
from pygpukit.core.errors import NvrtcError
for candidates in ([], ["/absent/libnvrtc.so.13", "libc.so.6", {str(tmp_path / "libnvrtc.so.13")!r}]):
    try:
        native.nvrtc_open(candidates)
    except NvrtcError as error:
        print(int(error.code), error)
status, log, *_ = native.nvrtc_compile("", "a.cu", [], {{}}, [])
print(status, log, native.nvrtc_architectures())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    nothing, tried, unopened = out.splitlines()
    assert nothing.startswith("1000 ") and "nothing to try" in nothing
    assert "/absent/libnvrtc.so.13: no such file" in tried and "libc.so.6: lacks nvrtc" in tried and "ELF" in tried
    assert unopened == "1000 NVRTC is not open []"


def test_missing_companion_is_named(tmp_path: Path) -> None:
    copy = tmp_path / "libnvrtc.so.13"
    copy.symlink_to(nvrtc_files()[0])  # the loader keeps the link's folder, where there are no builtins
    code = f"""
from pygpukit._core import native
from pygpukit.core.errors import NvrtcError
try:
    native.nvrtc_open([{str(copy)!r}])
except NvrtcError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "its companion libnvrtc-builtins.so." in out and str(tmp_path) in out
