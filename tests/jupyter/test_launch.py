"""Cells that launch: arguments from -i and -o, grids from expressions, comparisons, sweeps, measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cell_runner import AXPY, COPY, LAUNCH, compiles, cuda, failure, records, run
from IPython.core.error import UsageError

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import DriverError, KernelArgumentError, KernelCheckError
from pygpukit.jupyter.errors import CudaCompileError, VerificationError
from pygpukit.worker import counting

N = 1000
INTO = """__global__ void into(int* out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
"""
SHARED = """__global__ void reverse(float* x) {
    extern __shared__ float part[];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}
"""


@pytest.fixture
def data(shell: Any) -> dict[str, Any]:
    """x, y, z and n in the notebook."""
    rng = np.random.default_rng(0)
    host = {name: rng.standard_normal(N).astype(np.float32) for name in ("x", "y")}
    shell.user_ns.update({name: gp.from_numpy(value) for name, value in host.items()})
    shell.user_ns.update(z=gp.zeros(N), n=N, np=np, gp=gp)
    return host


def z_of(shell: Any) -> np.ndarray:
    return shell.user_ns["z"].to_numpy()


# ---- arguments ----


TWICE = """__global__ void twice(cudaTextureObject_t source, float* out, cudaSurfaceObject_t to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = 2 * tex1D<float>(source, i + 0.5f); surf1Dwrite(out[i], to, 4 * i); }
}
"""


@pytest.mark.parametrize("line", ["-i picture,canvas,n -o z", "-i to=canvas,n=n,source=picture -o z"])
def test_textures_and_surfaces_find_their_parameters(line: str, shell: Any, data: dict[str, Any]) -> None:
    shell.user_ns.update(picture=gp.Texture(gp.from_numpy(data["x"])), canvas=gp.Surface(gp.zeros(N)))
    cuda(shell, line, TWICE)
    assert np.array_equal(z_of(shell), 2 * data["x"])
    assert np.array_equal(shell.user_ns["canvas"].to_numpy(), 2 * data["x"])


def test_a_number_is_no_texture(shell: Any, data: dict[str, Any]) -> None:
    shell.user_ns.update(picture=gp.Texture(gp.from_numpy(data["x"])))
    error = failure(shell, "-i picture,n,n -o z", TWICE)
    assert isinstance(error, UsageError) and "no parameter left that takes a value" in str(error)


@pytest.mark.parametrize(
    "line",
    [
        "-i x,y,a=2,n=n -o z",  # by name
        "-i 2,n,x -i y -o z",  # by name where there is one, the others in order, each to one of its kind
        "-i a=4/2,n=x.size -i x=x,y=y -o z=z",  # destination and expression
        "-i 'x, y, a = 2.0, n = len(x)' --output z",
        "-i x, y, a = 2.0, n = len(x) --output z",  # up to the next option
        "-o z --grid 4, 1 --block 64 * 4 -i x, y, a=2, n=n",
        "-i a=2,x,max(n,0),y -o z",  # in any order
        "-i box.first,y,n=n,a=2 -o z",  # dotted: in order
        "-i holder.x,y,n=n,a=2 -o z",  # dotted: the last part is the parameter's name
    ],
)
def test_names_bind_first_and_then_order(shell: Any, data: dict[str, Any], line: str) -> None:
    class Box:
        first = x = shell.user_ns["x"]

    shell.user_ns.update(box=Box, holder=Box)
    cuda(shell, line)
    np.testing.assert_allclose(z_of(shell), 2 * data["x"] + data["y"], rtol=1e-6, atol=1e-6)


def test_a_functions_own_variables_come_first(shell: Any, data: dict[str, Any]) -> None:
    shell.user_ns["SOURCE"] = AXPY
    run(
        shell,
        "def add(x, z, a):\n    get_ipython().run_cell_magic('cuda', '-i x,y,a=a,n=n -o z', SOURCE)\n    return z\n"
        "other = add(gp.ones(n), gp.zeros(n), 3.0)",
    )
    np.testing.assert_allclose(shell.user_ns["other"].to_numpy(), 3 + data["y"], rtol=1e-6)
    assert not z_of(shell).any(), "the notebook's z is another one"


def test_an_output_with_a_shape_is_made_and_used_again(shell: Any) -> None:
    body = "__global__ void put(int* counts, int rows) { atomicAdd(&counts[threadIdx.x % rows], 1); }"
    for _ in range(2):  # a second run starts from zeros too
        cuda(shell, "-i rows=3 -o 'counts[rows, 2]' --grid 1 --block 32", body)
        counts = shell.user_ns["counts"]
        assert (counts.shape, counts.dtype.name) == ((3, 2), "int32")
        assert counts.to_numpy().ravel().tolist() == [11, 11, 10, 0, 0, 0]
    before = counts.device_ptr
    cuda(shell, "-i rows=3 -o 'counts[rows, 2]' --grid 1 --block 32", body)
    assert shell.user_ns["counts"].device_ptr == before
    assert isinstance(failure(shell, "-o 'a[3]' --grid 1", "__global__ void k(void* a) {}"), UsageError)


def test_a_slice_of_an_array_is_an_output(shell: Any) -> None:
    shell.user_ns["out"] = out = gp.zeros(100, dtype="int32")
    cuda(shell, "-o out[50:] -i 7 --grid 1 --block 50", INTO)
    assert out.to_numpy().tolist() == [0] * 50 + [7] * 50


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-i x,y -o z", "parameter 'a' (float) has no argument: add a=... to -i"),
        ("-i x,y,a=1,n=n -o unknown", "its shape cannot be told"),
        ("-i x,y,a=1,n=n,b=3 -o z", "'b' is no parameter; there are: x, y, z, a, n"),
        ("-i x,y,a=1,n=n,x=y -o z", "no parameter left that takes an array; left: none"),
        ("-i x,y,1,n=n,5 -o z", "-i 5: axpy has no parameter left that takes a value; left: none"),
        ("-i missing,y,a=1,n=n -o z", "NameError: name 'missing' is not defined"),
        ("-i 'x y' -o z", "write names and values as in a call"),
        ("-i 'x) + f(y' -o z", "write names and values as in a call"),
        ("-i x,y, -o z", "ends with a comma"),
        ("-i *x -o z", "one by one"),
        ("-i **x -o z", "one by one"),
        ("-i x,,y -o z", "as in a call"),
        ("-i 'x,(y' -o z", "as in a call"),
        ("-i x,y,n=n -o a", "no array 'a'"),
        ("-i x,y,z=z,n=n -o a=n", "an output is an array on the device"),
        ("-i z=z,y=y,a=1,n=n -o x=x", "the kernel cannot write"),
        ("-i x,y,a=1,n=n -o z --grid 4 --kernel other", "no such kernel; there are: axpy"),
        ("-i x,y,a=1,n=n -o z --block (8,8)", "a grid for it cannot be inferred"),
        ("-i x,y,a=1,n=n -o z --stream 3", "give a pygpukit Stream"),
        ("-i x,y,a=1,n=n -o z --shared -4 --grid 4", "whole number"),
        ("-i x,y,a=1,n=n -o z --grid m", "NameError"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(shell: Any, data: dict[str, Any], line: str, message: str) -> None:
    since = _core.ring_head()
    error = failure(shell, line)
    assert isinstance(error, UsageError)
    assert message in str(error)
    assert records(since, LAUNCH) == []


def test_a_refused_launch_shows_its_text_alone(shell: Any, data: dict[str, Any], capsys: Any) -> None:
    for line, parameter in (("-i x,y,a=1,n=n -o z --grid 0", "grid"), ("-i x=n,y=y,a=1,n=n -o z", "x")):
        error = failure(shell, line)
        assert isinstance(error, KernelArgumentError)
        assert error.parameter == parameter
        shown = capsys.readouterr().out
        assert shown.startswith("KernelArgumentError: axpy") and shown.count("\n") == 1


def test_a_fault_fails_the_cell_that_launched(shell: Any, data: dict[str, Any], capsys: Any) -> None:
    if gp.backend() != "sim":
        pytest.skip("a fault ends the context of a real device")
    error = failure(shell, "-i x,y,a=1,n=n -o z", AXPY.replace("z[i] =", "z[i - (1LL << 40)] ="))
    assert isinstance(error, DriverError)
    assert "cell:4" in capsys.readouterr().out
    cuda(shell, "-i x,y,a=1,n=n -o z")


# ---- the launch ----


def test_expressions_see_the_arguments_the_macros_and_the_block(shell: Any, data: dict[str, Any]) -> None:
    result = cuda(shell, "-i x,y,a=2,n=n -o z -D WIDTH=64 --block WIDTH --grid -(-n//block)")
    assert str(result.launch) == "axpy[16, 64]"
    result = cuda(shell, "-i x,y,a=2,n=500 -o z --grid (n+255)//256,1")
    assert str(result.launch) == "axpy[2, 256]", "n is the argument, not the notebook's"
    result = cuda(shell, "-i x,y,a=2,n=n -o z --block 128")
    assert str(result.launch) == "axpy[8, 128]"


def test_dynamic_shared_memory_and_a_stream(shell: Any) -> None:
    shell.user_ns.update(x=gp.arange(64, dtype="float32"), stream=gp.Stream())
    result = cuda(shell, "-o x --grid 1 --block 64 --shared block*4 --stream stream", SHARED)
    assert str(result.launch) == "reverse[1, 64, 256]"
    assert shell.user_ns["x"].to_numpy().tolist() == list(range(63, -1, -1))
    assert isinstance(failure(shell, "-o x", SHARED), KernelArgumentError)


def test_one_of_several_kernels_is_chosen(shell: Any) -> None:
    body = INTO + INTO.replace("into", "twice").replace("= value", "= 2 * value")
    shell.user_ns["out"] = out = gp.zeros(4, dtype="int32")
    error = failure(shell, "-o out -i 3 --grid 1 --block 4", body)
    assert "choose with --kernel, one of: into, twice" in str(error)
    cuda(shell, "-o out -i 3 --grid 1 --block 4 --kernel twice", body)
    assert out.to_numpy().tolist() == [6] * 4
    template = "template <class T> __global__ void set(T* out) { out[threadIdx.x] = 5; }"
    cuda(shell, "-o out --grid 1 --block 4 --instantiate set<int> --kernel set<int>", template)
    assert out.to_numpy().tolist() == [5] * 4


def test_a_kernel_without_arguments_is_launched_by_its_grid(shell: Any) -> None:
    since = _core.ring_head()
    cuda(shell, "--grid 2 --block 32", "__global__ void nothing() {}")
    assert [(a, b) for a, b, _ in records(since, LAUNCH)] == [(2, 32)]


# ---- comparisons ----


@pytest.mark.parametrize(
    "reference",
    [
        "2*x+y",
        "lambda x, y, a, n: a*x+y",
        "lambda x, y: 2*x+y",
        "{'z': a*x+y}",
        "reference",
        "np.multiply(x, 2) + y.astype(float)",
    ],
)
def test_references_of_every_form(shell: Any, data: dict[str, Any], reference: str) -> None:
    shell.user_ns["reference"] = lambda x, y, a, n: [float(v) for v in a * x + y]
    result = cuda(shell, f'-i x,y,a=2,n=n -o z --verify "{reference}"')
    (one,) = result.verify
    assert one.passed and one.name == "z" and one.first_bad is None
    assert repr(result).endswith("verified z")


@pytest.mark.parametrize(
    "reference",
    [
        "2 * x + y",
        "(lambda x, y: 2 * x + y)",
        "{'z': a * x + y}",
        "x - -y + x",
        "np.add( 2 * x, y )",
        '{"z": 2 * x + y}',
    ],
)
def test_references_go_on_to_the_next_option(shell: Any, data: dict[str, Any], reference: str) -> None:
    for line in (
        f"-i x,y,a=2,n=n -o z --verify {reference}",
        f"--verify {reference} --check -D SCALE=1 -i x,y,a=2,n=n -o z",
    ):
        assert cuda(shell, line).verify[0].passed


def test_a_function_gets_all_inputs_or_the_arrays_among_them(shell: Any) -> None:
    shell.user_ns.update(x=gp.arange(8, dtype="float32"), y=gp.ones(8), n=8, np=np)
    body = "__global__ void root(const float* x, float* z, int n) { z[threadIdx.x] = sqrtf(x[threadIdx.x]); }"
    for reference in ("np.sqrt", "lambda x: x**0.5", "lambda x, n: x**0.5", "lambda *given: given[0]**0.5"):
        cuda(shell, f"-i x,n -o z[8] --grid 1 --block 8 --verify {reference}", body)
    body = "__global__ void add(const float* x, const float* y, float* z) { z[threadIdx.x] = x[threadIdx.x] + 1; }"
    cuda(shell, "-i x,y -o z[8] --grid 1 --block 8 --verify np.add", body)
    for reference, words in (
        ("np.sqrt", "np.sqrt is a function that does not take 2 arguments; the inputs are x, y: write the expression"),
        ("lambda x, y: x.foo", "of x, y: AttributeError: 'numpy.ndarray' object has no attribute 'foo' (line 1 of <la"),
    ):
        error = failure(shell, f"-i x,y -o z[8] --grid 1 --block 8 --verify {reference}", body)
        assert isinstance(error, UsageError) and words in str(error)


def test_the_reference_gets_the_inputs_from_before_the_launch(shell: Any) -> None:
    shell.user_ns["x"] = gp.arange(8, dtype="int32")
    cuda(shell, "-i x -o x --grid 1 --block 8 --verify x+1", "__global__ void inc(int* x) { x[threadIdx.x]++; }")
    assert shell.user_ns["x"].to_numpy().tolist() == list(range(1, 9))


def test_a_difference_fails_the_cell_with_the_first_bad_index(shell: Any, data: dict[str, Any], capsys: Any) -> None:
    shell.user_ns["z2"] = gp.zeros((10, 100))
    error = failure(shell, "-i x,y,a=2,n=n -o z2 --verify '(2*x+y+(np.arange(n)>=317)).reshape(10,100)'")
    assert isinstance(error, VerificationError) and isinstance(error, AssertionError)
    (one,) = error.verifications
    assert one.first_bad == (3, 17) and one.bad == N - 317
    assert one.max_abs_error == pytest.approx(1, rel=1e-5)
    shown = capsys.readouterr().out
    assert "683 of 1000 elements differ" in shown and "first at z2[3, 17]: " in shown and "Traceback" not in shown


def test_two_outputs_need_two_references(shell: Any) -> None:
    body = "__global__ void split(const int* x, int* low, int* high) { int i = threadIdx.x; low[i] = x[i] & 15; "
    body += "high[i] = x[i] >> 4; }"
    shell.user_ns["x"] = gp.from_numpy(np.arange(0, 256, 8, dtype=np.int32))
    line = "-i x -o 'low[32],high[32]' --grid 1 --block 32 --verify "
    assert len(cuda(shell, line + "'(x%16, x//16)'", body).verify) == 2
    assert "give a tuple or a mapping" in str(failure(shell, line + "x", body))
    error = failure(shell, line + "'(x%16, x//8)'", body)
    assert isinstance(error, VerificationError) and [v.passed for v in error.verifications] == [True, False]


@pytest.mark.parametrize(
    ("reference", "message"),
    [("x[:5]", "has shape (5,), and z has (1000,)"), ("'text'", "must be numbers"), ("1/0", "ZeroDivisionError")],
)
def test_unsuitable_references_are_usage_errors(shell: Any, data: dict[str, Any], reference: str, message: str) -> None:
    error = failure(shell, f'-i x,y,a=2,n=n -o z --verify "{reference}"')
    assert isinstance(error, UsageError)
    assert message in str(error)


def test_tolerances(shell: Any, data: dict[str, Any]) -> None:
    assert isinstance(failure(shell, "-i x,y,a=2,n=n -o z --verify 1.001*(2*x+y)"), VerificationError)
    cuda(shell, "-i x,y,a=2,n=n -o z --verify 1.001*(2*x+y) --rtol 0.01")
    run(shell, "%config CudaMagics.rtol = 0.01")
    cuda(shell, "-i x,y,a=2,n=n -o z --verify 1.001*(2*x+y)")
    assert isinstance(failure(shell, "-i x,y,a=2,n=n -o z --verify 1.001*(2*x+y) --rtol 1e-6"), VerificationError)


# ---- checked mode ----


def test_checked_mode_finds_what_a_plain_launch_does_not(shell: Any, data: dict[str, Any], capsys: Any) -> None:
    body = AXPY.replace("i < n", "i <= n")
    cuda(shell, "-i x,y,a=2,n=n -o z --grid 4 --verify 2*x+y", body)
    error = failure(shell, "-i x,y,a=2,n=n -o z --grid 4 --check", body)
    assert type(error).__name__ == "KernelCheckError"
    finding = error.findings[0]  # type: ignore[attr-defined]
    assert (finding.kind, finding.line, finding.index) == ("out of bounds", 4, N)
    shown = capsys.readouterr().out
    assert "cell:4" in shown and "Traceback" not in shown
    cuda(shell, "-i x,y,a=2,n=n -o z --grid 4 --check memory --verify 2*x+y")
    assert isinstance(failure(shell, "--no-launch --arch sm_90a --check"), UsageError)


# ---- measurements and sweeps ----


def test_a_measured_launch_leaves_its_outputs_as_one_launch_does(shell: Any) -> None:
    shell.user_ns["x"] = gp.zeros(8, dtype="int32")
    body = "__global__ void inc(int* x) { x[threadIdx.x]++; }"
    result = cuda(shell, "-o x --grid 1 --block 8 --verify x+1 --bench --bytes 8*x.nbytes --flops 8", body)
    assert shell.user_ns["x"].to_numpy().tolist() == [1] * 8
    assert result.bench.median_us > 0
    assert (result.bench.bytes, result.bench.flops) == (256.0, 8.0)


def test_counted_bytes_and_operations(shell: Any, data: dict[str, Any]) -> None:
    result = cuda(shell, "-i x,y,a=2,n=n -o z --verify 2*x+y --bench --count")
    assert (result.bench.bytes, result.bench.flops) == (12 * N, 2 * N)
    np.testing.assert_allclose(z_of(shell), 2 * data["x"] + data["y"], rtol=1e-6, atol=1e-6)


def test_counting_for_a_gpu(shell: Any, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "is_sim", lambda: False)  # as on cuda: in a worker process
    result = cuda(shell, "-i x,y,a=2,n=n -o z --sweep block=64,128 --count")
    assert [(point.bench.bytes, point.bench.flops) for point in result.sweep] == [(12 * N, 2 * N)] * 2
    cuda(shell, "-i x,y,a=3,n=n -o z --verify 3*x+y --isolated --bench --count")
    error = failure(shell, "-i x,y,a=2,n=n -o z --bench --count", AXPY.replace("x[i]", "x[i - 1]"))
    assert isinstance(error, KernelCheckError) and error.findings[0].index == -1
    uncounted = AXPY + "// never counted"
    cuda(shell, "-i x,y,a=2,n=n -o z", uncounted)
    monkeypatch.setenv("PYGPUKIT_SIM_CXX", "no-such-compiler")
    error = failure(shell, "-i x,y,a=2,n=n -o z --bench --count", uncounted)
    assert isinstance(error, UsageError)
    assert str(error) == (
        "%%cuda: --count runs the kernel on the simulated device: PYGPUKIT_SIM_CXX is 'no-such-compiler', but there is "
        "no such program"
    )
    counting._worker.kill()


def test_a_sweep_measures_every_configuration(shell: Any, data: dict[str, Any]) -> None:
    body = AXPY.replace("a * x", "SCALE * a * x").replace("z[i] =", "z[i] +=")
    since = _core.ring_head()
    result = cuda(
        shell,
        "-i x,y,a=2,n=n -o z --block 64 --grid -(-n//block) --sweep block=64,128 --sweep SCALE=1,2 "
        "--verify SCALE*a*x+y",
        body,
    )
    assert compiles(since) == 2
    assert [point.settings for point in result.sweep] == [
        {"block": block, "SCALE": scale} for block in (64, 128) for scale in (1, 2)
    ]
    assert all(point.bench.median_us > 0 for point in result.sweep)
    np.testing.assert_allclose(z_of(shell), 4 * data["x"] + data["y"], rtol=1e-5, atol=1e-5)
    assert repr(result).endswith("sweep: block=64 SCALE=1, block=64 SCALE=2, block=128 SCALE=1, block=128 SCALE=2")


def test_a_configuration_that_cannot_run_is_reported(shell: Any, data: dict[str, Any]) -> None:
    result = cuda(shell, "-i x,y,a=2,n=n -o z --sweep block=64,2048")
    first, second = result.sweep
    assert first.bench is not None and second.bench is None
    assert "at most 1024" in second.error
    assert isinstance(failure(shell, "-i x,y,a=2,n=n -o z --sweep block=2048,4096"), KernelArgumentError)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--sweep block", "write AXIS=VALUES"),
        ("--sweep block=", "SyntaxError"),
        ("--sweep block=()", "has no values"),
        ("--sweep block=64 --sweep block=32", "given twice"),
        ("--sweep block=range(1,200)", "at most 64"),
        ("--sweep TILE=[[1]]", "a macro cannot be"),
    ],
)
def test_bad_sweeps_are_usage_errors(shell: Any, data: dict[str, Any], line: str, message: str) -> None:
    error = failure(shell, f"-i x,y,a=2,n=n -o z {line}")
    assert isinstance(error, UsageError)
    assert message in str(error)


def test_an_error_in_a_sweep_says_which_configuration(shell: Any, data: dict[str, Any], capsys: Any) -> None:
    error = failure(shell, "-i x,y,a=2,n=n -o z --sweep TILE=1,0", AXPY.replace("a *", "a * Broken<TILE>::factor *"))
    assert isinstance(error, CudaCompileError)
    assert error.context == "with TILE=1:\n" and capsys.readouterr().out.startswith("with TILE=1:\ncell:4:")
    error = failure(shell, "-i x,y,a=2,n=n -o z --sweep TILE=1,2 --verify 2*x+y", AXPY.replace("a *", "TILE * a *"))
    assert str(error).startswith("with TILE=2: z: ")


def test_zero_copies(shell: Any, data: dict[str, Any]) -> None:
    since = _core.ring_head()
    cuda(shell, "-i x,y,a=2,n=n -o z")
    assert records(since, COPY) == []


TILE_AXPY = """#include <cuda_tile.h>
namespace ct = cuda::tiles;
__tile_global__ void axpy(const float* __restrict__ x, const float* __restrict__ y, float* z, float a, int n) {
    using Part = ct::shape<128>;
    auto left = ct::partition_view{ct::tensor_span{x, ct::extents{n}}, Part{}};
    auto right = ct::partition_view{ct::tensor_span{y, ct::extents{n}}, Part{}};
    auto out = ct::partition_view{ct::tensor_span{z, ct::extents{n}}, Part{}};
    auto scaled = left.load_masked(ct::bid().x) * ct::full<ct::tile<float, Part>>(a);
    out.store_masked(scaled + right.load_masked(ct::bid().x), ct::bid().x);
}
"""


def test_a_tile_kernel_is_compared_and_measured(shell: Any, data: dict[str, Any]) -> None:
    result = cuda(shell, "-i x,y,a=2,n=n -o z --grid 8 --verify 2*x+y --bench", TILE_AXPY)
    (one,) = result.verify
    assert one.name == "z" and result.bench.median_us > 0
    np.testing.assert_allclose(z_of(shell), 2 * data["x"] + data["y"], rtol=1e-5, atol=1e-6)
    error = failure(shell, "-i x,y,a=3,n=n -o z --grid 7 --verify 3*x+y", TILE_AXPY)
    assert isinstance(error, VerificationError)
    assert error.verifications[0].first_bad == (7 * 128,), "what the block left out would have made"
