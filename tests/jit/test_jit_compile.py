"""compile_source() and what surrounds it: options, architectures, NVRTC where it is installed."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError, GPUError, NvrtcError, NvrtcErrorCode
from pygpukit.core.extras import install_command
from pygpukit.jit import compile_source, jit
from pygpukit.jit.compile import nvrtc
from pygpukit.jit.compile.options import parse_options
from pygpukit.jit.locate import cache_directory
from pygpukit.jit.toolchain import nvrtc_candidates

KERNEL = 'extern "C" __global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }'


def test_an_image_prints_what_it_is_and_not_its_bytes() -> None:
    image = compile_source(KERNEL, name="cell", arch="sim", name_expressions=["k"])
    text = repr(image)
    assert text.startswith(f"Image(sim, sim, {image.origin}, {len(image.image)} bytes, key ") and len(text) < 150


# Each with a kernel that uses it.
HEADERS = {
    "cuda_fp16.h": "__global__ void k(half* x) { x[0] = __hfma(x[1], x[2], __float2half(1.0f)); }",
    "cuda_bf16.h": "__global__ void k(__nv_bfloat16* x) { x[0] = __hadd(x[1], __float2bfloat16(1.0f)); }",
    "cuda_fp8.h": "__global__ void k(__nv_fp8_e4m3* x, float* y) { x[0] = __nv_fp8_e4m3(y[0]); y[1] = float(x[1]); }",
    "mma.h": """using namespace nvcuda;
        __global__ void k(half* a, float* c) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
            wmma::fill_fragment(sum, 0.0f);
            wmma::load_matrix_sync(left, a, 16);
            wmma::load_matrix_sync(right, a, 16);
            wmma::mma_sync(sum, left, right, sum);
            wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
        }""",
    "cooperative_groups.h": """namespace cg = cooperative_groups;
        __global__ void k(int* x) { cg::grid_group grid = cg::this_grid(); x[grid.thread_rank()] = 1; grid.sync(); }""",
    "cuda/std/array": "__global__ void k(int* x) { cuda::std::array<int, 2> a{3, 4}; x[0] = a[x[1] & 1]; }",
    "cuda/std/type_traits": "__global__ void k(int* x) { x[0] = cuda::std::is_same<int, int>::value; }",
}

needs_nvrtc = pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)


CONSTANTS = """
__device__ float low = -INFINITY;
__constant__ float limits[2] = {INFINITY, NAN};
template <class T> struct Start { static constexpr T value = -INFINITY; };
__global__ void k(float* x) { x[0] = fmaxf(low, Start<float>::value) + limits[1] + NAN; }
"""


@pytest.mark.parametrize("arch", ["sim", pytest.param("sm_90a", marks=needs_nvrtc)])
def test_infinity_and_nan_need_no_header_and_may_be_the_sources_own(arch: str) -> None:
    for front in ("", "#ifndef NAN\n#define NAN none\n#endif\n", "#define INFINITY 1.0f\n"):
        assert "warning" not in compile_source(front + CONSTANTS, arch=arch).log
    guarded = "#ifndef NAN\n#define NAN none\n#endif\n" + CONSTANTS
    assert "warning" not in compile_source(guarded, arch=arch, defines={"NAN": "1.0f"}).log
    with pytest.raises(CompileError, match="CUDART_INF_F"):
        compile_source("__global__ void k(float* x) { x[0] = CUDART_INF_F; }", arch=arch)
    constants = "#include <math_constants.h>\n__global__ void k(float* x) { x[0] = CUDART_INF_F * CUDART_PI_F; }"
    assert compile_source(constants, arch=arch).image


@needs_nvrtc
def test_libcudacxx_brings_its_own_infinity() -> None:
    source = "#include <cuda/std/cmath>\n__global__ void k(float* x) { x[0] = INFINITY; }"
    assert "warning" not in compile_source(source, arch="sm_90a").log


def test_options_are_sorted_into_their_meaning() -> None:
    parsed = parse_options(
        ["-DA", "-D", "B=2", "--define-macro=C=3", "-arch=sm_90", "--fmad=false", "-I", "dir", "-G"],
        {"D": True, "E": None, "F": 0},
    )
    assert parsed.defines == {"A": "1", "B": "2", "C": "3", "D": "1", "E": "1", "F": "0"}
    assert parsed.flags == ("--fmad=false", "-Idir", "-G")
    assert (parsed.arch, parsed.reads_files) == ("sm_90", True)
    assert not parse_options(["--fmad=false"]).reads_files


def test_the_order_of_options_counts_only_where_one_is_repeated() -> None:
    def content(*options: str) -> bytes:
        return parse_options(options).content()

    assert content("--fmad=false", "-G", "-DA=1", "-DB=2") == content("-DB=2", "-G", "-DA=1", "--fmad=false")
    assert content("--fmad=false", "--fmad=true") != content("--fmad=true", "--fmad=false")
    assert content("-DA=1") != content("-DA=2")
    assert content("-DA=1", "-DB") != content("-DA=1")


def test_bad_options_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="-D lacks its value"):
        parse_options(["-D"])
    with pytest.raises(ValueError, match="two architectures"):
        parse_options(["-arch=sm_80"], arch="sm_90")
    with pytest.raises(TypeError, match="list of strings"):
        parse_options("-DA")


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine"
    monkeypatch.delenv("PYGPUKIT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "pygpukit"


@needs_nvrtc
class TestNvrtc:
    """Compiling for a device that is not there: NVRTC needs none."""

    def test_cubin_and_ptx_for_the_exact_architecture(self) -> None:
        image = compile_source(KERNEL, arch="sm_90a")
        assert (image.kind, image.arch, image.image[:4]) == ("nvrtc", "sm_90a", b"\x7fELF")
        assert ".target sm_90a" in image.ptx and ".entry k" in image.ptx

    def test_name_expressions_have_symbols(self) -> None:
        source = "namespace a { template <class T> __global__ void t(T* x) {} __global__ void p(int* x) {} }"
        image = compile_source(source, arch="sm_90a", name_expressions=["a::t<float>", "a::p"])
        assert image.symbol("a::p") == "_ZN1a1pEPi"
        assert image.symbol("a::t<float>") in image.ptx
        assert image.symbol("plain") == "plain"

    @pytest.mark.parametrize("header", HEADERS)
    def test_headers_of_cuda_are_there_without_a_toolkit(self, header: str) -> None:
        if nvrtc.open_nvrtc()[1] < (13, 3):
            pytest.skip("NVRTC before 13.3 carries no headers")
        source = f"#include <{header}>\n{HEADERS[header]}"
        image = compile_source(source, arch="sm_90a", name_expressions=["k"])
        assert image.image[:4] == b"\x7fELF" and f".entry {image.symbol('k')}" in image.ptx

    def test_include_folders_defines_and_templates(self, tmp_path: Path) -> None:
        (tmp_path / "step.cuh").write_text("template <class T> __device__ T step(T x) { return x + STEP; }\n")
        source = '#include "step.cuh"\ntemplate <class T, int N> __global__ void k(T* x) { x[N] = step(x[N]); }'
        kernel = jit(source, "k<double, 3>", arch="sm_90a", include=[tmp_path], defines={"STEP": 7})
        assert kernel.signature.parameters[0].dtype == "float64"
        assert kernel.ptx is not None and "add.f64" in kernel.ptx and "[%rd2+24]" in kernel.ptx
        with pytest.raises(CompileError, match="step"):
            jit(source, "k<double, 3>", arch="sm_90a", defines={"STEP": 7})
        with pytest.raises(ValueError, match="no folder"):
            jit(source, "k<double, 3>", arch="sm_90a", include=[tmp_path / "absent"])
        with pytest.raises(TypeError, match="list of folders"):
            jit(source, "k<double, 3>", arch="sm_90a", include=str(tmp_path))

    def test_a_compile_error_has_places(self) -> None:
        with pytest.raises(CompileError) as caught:
            compile_source("\n__global__ void k(float* x) {\n  x[0] = missing;\n}", name="cell", arch="sm_90a")
        error = caught.value
        assert [(one.line, one.column, one.severity) for one in error.diagnostics] == [(3, 10, "error")]
        assert error.code == NvrtcErrorCode.Compilation
        assert "missing" in error.compilation_log

    def test_what_only_follows_from_an_error_is_not_told(self) -> None:
        with pytest.raises(CompileError) as caught:
            jit("__device__ Unknown x;\n__global__ void k(Unknown* p) { p[0] = x; }", arch="sm_90a")
        assert {(one.line, one.file) for one in caught.value.diagnostics} == {(1, "kernel"), (2, "kernel")}
        with pytest.raises(CompileError, match='"absent" is undefined'):
            compile_source(KERNEL, arch="sm_90a", name_expressions=["absent<int>"])

    def test_a_bad_option_is_named(self) -> None:
        with pytest.raises(NvrtcError, match="--no-such-option") as caught:
            compile_source(KERNEL, arch="sm_90a", options=["--no-such-option"])
        assert caught.value.code == NvrtcErrorCode.InvalidOption

    def test_files_of_the_users_own_count_by_their_contents(self, tmp_path: Path) -> None:
        header = tmp_path / "mine.h"
        source = '#include "mine.h"\n__global__ void k(int* x) { x[0] = VALUE; }'
        images = []
        for value in (1, 2):
            header.write_text(f"#define VALUE {value}\n")
            images.append(compile_source(source, arch="sm_90a", options=[f"-I{tmp_path}"], name_expressions=["k"]))
        assert [image.origin for image in images] == ["compiled", "compiled"]
        assert images[0].ptx != images[1].ptx

    @pytest.mark.skipif("gp.backend() == 'cuda'")
    def test_a_kernel_for_another_backend_can_be_read_and_not_launched(self) -> None:
        kernel = jit(KERNEL, arch="sm_90a")
        assert kernel.ptx is not None and ".entry k" in kernel.ptx
        assert kernel.registers is not None and kernel.registers > 0
        assert (kernel.shared_bytes, kernel.local_bytes) == (0, 0)
        assert kernel.occupancy(256).fraction == 1
        assert kernel.__doc__ is not None and f"{kernel.registers} registers" in kernel.__doc__
        with pytest.raises(GPUError, match="compiled for sm_90a and the backend is sim"):
            kernel(gp.ones(4), n=4)

    def test_several_threads_compile_at_once(self) -> None:
        images: dict[int, bytes] = {}

        def work(number: int) -> None:
            images[number] = compile_source(KERNEL.replace("= 1", f"= {number}"), arch="sm_90a").image

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(images.values())) == 4

    def test_a_cached_kernel_opens_no_compiler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = "#include <cuda_fp16.h>\n" + KERNEL.replace("= 1", "= 78")
        first = compile_source(source, arch="sm_90a")

        def forbidden(_candidates: list[str]) -> tuple[str, tuple[int, int]]:
            raise AssertionError("NVRTC must stay closed")

        monkeypatch.setattr(nvrtc, "_opened", None)
        monkeypatch.setattr(nvrtc.native, "nvrtc_open", forbidden)
        again = compile_source(source, arch="sm_90a")
        assert (again.origin, again.key) == ("memory", first.key)

    def test_version_and_path(self) -> None:
        version = gp.get_nvrtc_version()
        assert version is not None and version >= (12, 0)
        path = gp.get_nvrtc_path()
        assert path is not None and "nvrtc" in path


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_candidates: list[str]) -> tuple[str, tuple[int, int]]:
        raise NvrtcError("tried libnvrtc.so.13", NvrtcErrorCode.NotLoaded)

    monkeypatch.setattr(nvrtc, "_opened", None)
    monkeypatch.setattr(nvrtc.native, "nvrtc_open", nothing)
    with pytest.raises(NvrtcError, match=re.escape(install_command("cuda"))) as caught:
        compile_source(KERNEL.replace("= 1", "= 77"), arch="sm_90a")
    assert caught.value.code == NvrtcErrorCode.NotLoaded
    assert str(caught.value).startswith("[NotLoaded] NVRTC JIT compiler not available")
    assert gp.get_nvrtc_version() is None
    assert gp.get_nvrtc_path() is None


def test_is_nvrtc_available_asks_for_what_the_backend_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gp.is_nvrtc_available() is True
    if gp.backend() == "sim":
        from pygpukit.jit.compile import simulator

        def missing() -> list[str]:
            raise RuntimeError("no C++ compiler")

        monkeypatch.setattr(simulator, "find_compiler", missing)
        assert gp.is_nvrtc_available() is False


def test_warm_up() -> None:
    called = threading.Event()
    assert gp.warmup() is True
    assert gp.is_warmup_done() is True
    assert gp.get_warmup_error() is None
    assert gp.warmup(background=True, callback=called.set) is True
    assert called.wait(60)


def test_driver_requirements() -> None:
    assert gp.get_driver_requirements()["min_sm_version"].startswith("SM 8.0")
    usable, sentence = gp.check_driver_compatibility()
    assert isinstance(usable, bool) and sentence
    assert usable == (gp.backend() == "cuda") or gp.backend().reason == "PYGPUKIT_BACKEND=sim"
