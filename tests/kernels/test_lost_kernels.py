"""What is computed where the best kernel cannot be compiled: the next one, told once, on each architecture."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import CompileError, NvrtcError, NvrtcErrorCode
from pygpukit.jit.compile import nvrtc, tile
from pygpukit.kernels import builder, lost
from pygpukit.kernels.planning import planning
from pygpukit.kernels.spec import KernelSpec

NO_TILEIRAS = "there is no tileiras; install it with: a command"
pytestmark = pytest.mark.skipif("gp.backend() == 'cuda'", reason="devices are pretended on the simulated one")


class Machine:
    """What can be compiled: everything but sources whose names have one of these words. tried: what was asked for."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.broken: list[str] = []
        self.tried: list[str] = []
        patch.setattr(builder, "compile_unit", self.compile)
        patch.setattr(nvrtc, "missing", lambda: "")
        patch.setattr(tile, "missing", lambda: "")
        patch.setattr(builder, "is_bundled", lambda spec: False)
        patch.setattr(builder.bundle, "find", lambda arch, spec: None)
        patch.setattr(lost, "_warned", set())
        self.patch = patch

    def without_tileiras(self) -> None:
        self.patch.setattr(tile, "missing", lambda: NO_TILEIRAS)

    def compile(self, unit: builder.registry.Unit, arch: str | None = None) -> None:
        self.tried.append(unit.source)
        if any(word in unit.source for word in self.broken):
            raise CompileError(f"{unit.source}: tileiras could not assemble it: words of the assembler")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    gp.ones(1)
    return Machine(monkeypatch)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def sources(asked: dict[KernelSpec, None]) -> set[str]:
    return {spec.source.rpartition("/")[2] for spec in asked}


def half(dtype: str = "float16") -> gp.GPUArray:
    return gp.zeros((256, 256), dtype)


def products() -> list[str]:
    """Backends of products of half precision, int8, tf32, fp8 and a weight of fp8, each of which is computed."""
    x, i, f = half(), half("int8"), half("float32")
    e = gp.zeros((256, 256), "float8_e4m3")
    gp.matmul(x, x), gp.matmul(i, i, dtype="int32"), gp.matmul(f, f, tf32=True)
    gp.matmul_fp8(e, e), gp.matmul_fp8(x, e)
    plans = gp.matmul_plan(x, x), gp.matmul_plan(i, i, dtype="int32"), gp.matmul_plan(f, f, tf32=True)
    return [one.backend for one in (*plans, gp.ops.matmul_fp8_plan(e, e), gp.ops.matmul_fp8_plan(x, e))]


def test_with_everything_tensor_cores_make_all_products(machine: Machine) -> None:
    with planning("sm_90a", compiles=True):
        assert set(products()) <= {"tile", "hopper"}
    with planning("sm_80", compiles=True):
        assert products() == ["tile", "tile", "tile", "plain", "plain"]


def test_without_the_assembler_kernels_for_sm90_and_mma_take_over(machine: Machine) -> None:
    machine.without_tileiras()
    with planning("sm_90a", compiles=True):
        assert products() == ["hopper", "mma", "hopper", "hopper", "plain"]
        gp.matmul(half()[1:, 3:], half()[3:, 1:]), gp.linear(half(), half(), act="gelu")
        gp.grouped_matmul(half(), gp.zeros((2, 256, 8), "float16"), gp.zeros(2, "int32"))
    assert not any("/tile" in source for source in machine.tried)
    with planning("sm_80", compiles=True) as asked:
        assert products() == ["mma", "mma", "mma", "plain", "plain"]
        for a, b in ((half()[1:, 3:], half()[3:, 1:]), (half()[:1], half()), (half().T, half().T)):
            gp.matmul(a, b)
        gp.matmul(half()[::2, ::-2], half()[:128])
    assert {"aligned.cu", "unaligned.cu"} <= sources(asked)


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_120a"])
def test_blocks_fit_the_shared_memory_of_the_device(machine: Machine, arch: str) -> None:
    machine.without_tileiras()
    with planning(arch, compiles=True) as asked:
        for m in (1, 40, 4096):
            gp.matmul(gp.zeros((m, 512), "bfloat16"), gp.zeros((512, 4096), "bfloat16"))
            gp.matmul(gp.zeros((m, 33), "bfloat16"), gp.zeros((33, 33), "bfloat16"))
        gp.matmul(half().T, half())
        room = gp.core.device.device_facts(0)["max_shared_per_block_optin_bytes"]
    for source in ("/aligned.cu", "/unaligned.cu"):
        used = [spec.shared_bytes for spec in asked if spec.source.endswith(source)]
        assert used and max(used) <= room


def test_a_kernel_that_fails_is_replaced_by_the_next_one_and_told_once(machine: Machine) -> None:
    machine.broken = ["/tile"]
    with planning("sm_90a", compiles=True):
        assert "tile" not in products()[:3]
    machine.broken.append("sm90/")
    with planning("sm_90a", compiles=True), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        x = half()
        gp.matmul(x, x), gp.matmul(x, x[:, :8]), gp.matmul(x[:3], x)
        plan = gp.matmul_plan(x, x)
    assert plan.backend == "mma" and "words of the assembler" in plan.reason
    (one,) = [str(warning.message) for warning in said]
    assert "half precision" in one and "words of the assembler" in one
    machine.broken.append("mma/aligned.cu")
    with planning("sm_90a", compiles=True) as asked:
        gp.matmul(x, x)
        assert gp.matmul_plan(x, x).backend == "mma" and sources(asked) == {"unaligned.cu"}
    machine.broken.append("mma/unaligned.cu")
    with planning("sm_90a", compiles=True) as asked:
        gp.matmul(x, x)
        assert gp.matmul_plan(x, x).backend == "plain"
    assert sources(asked) <= {"strided.cu", "gemv.cu"}


def test_each_source_of_tiles_is_lost_by_itself(machine: Machine) -> None:
    """Half precision keeps its tiles; the others are computed by what is left, and asked for once."""
    machine.broken = ["tile/int8_tf32", "tile/fp8", "tile/grouped", "sm90/"]
    with planning("sm_90a", compiles=True):
        assert "tile" not in products()[1:]
        counts = gp.from_numpy(np.full(4, 64, "int32"))
        gp.grouped_matmul(half(), gp.zeros((4, 256, 256), "float16"), counts)
    tried = [source for source in machine.tried if any(word in source for word in machine.broken)]
    assert len(tried) == len(set(tried)) >= 4


def test_kernels_that_are_asked_for_by_name_and_lost_are_refused(machine: Machine) -> None:
    machine.broken = ["sm90/"]
    with planning("sm_90a", compiles=True):
        for call in (gp.matmul, gp.matmul_plan):
            with pytest.raises(gp.GPUError, match=r"backend='hopper': .*cluster\.cu cannot be compiled here"):
                gp.matmul(half(), half(), backend="hopper")
                call(half(), half(), backend="hopper")


def test_the_kernel_for_few_rows_is_replaced_by_tiles(machine: Machine) -> None:
    machine.broken = ["tile/gemv.cu"]
    with planning("sm_90a", compiles=True) as asked:
        gp.matmul(half()[:3], half())
        assert gp.matmul_plan(half()[:3], half()).backend in ("tile", "hopper")
    assert asked and "gemv.cu" not in sources(asked)


def test_attention_and_convolution_are_computed_by_what_is_left(machine: Machine) -> None:
    q, x, w = (
        gp.zeros((4, 64, 64), "float16"),
        gp.zeros((1, 64, 16, 16), "float16"),
        gp.zeros((64, 64, 3, 3), "float16"),
    )

    def run(arch: str) -> set[str]:
        with planning(arch, compiles=True) as asked:
            gp.sdpa_causal(q, q, q)
            gp.conv2d(x, w, padding=1), gp.conv2d(x, w, padding=1, act="silu"), gp.conv1d(x[:, :, 0], w[..., 0])
            gp.conv_transpose1d(x[:, :, 0], w[..., 0])
        return sources(asked)

    assert "tile.cu" in run("sm_90a")
    machine.without_tileiras()
    found = run("sm_90a")
    assert {"mma.cu", "gathered.cu"} <= found and not {"tile.cu", "conv.cu"} & found
    machine.broken = ["gathered.cu", "attention/mma.cu"]
    assert "gathered.cu" not in run("sm_90a") and {"attention.cu", "mma.cu"} <= run("sm_80")
    machine.broken.append("conv/mma.cu")
    left = run("sm_80")
    assert "conv.cu" in left and "mma.cu" not in left


def test_what_no_other_kernel_computes_says_why(machine: Machine) -> None:
    machine.broken = ["cuda_cores/"]
    x = half("float32")
    with planning("sm_90a", compiles=True), pytest.raises(CompileError, match="words of the assembler"):
        gp.matmul(x, x)


def test_what_is_pre_compiled_serves_where_a_compiler_fails(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.broken = ["cu"]
    monkeypatch.setattr(builder, "is_sim", lambda: False)
    monkeypatch.setattr(builder.bundle, "find", lambda arch, spec: f"{spec.source} for {arch}")
    with planning("sm_90a", compiles=True) as asked:
        gp.matmul(half(), half())
        assert gp.matmul_plan(half(), half()).backend == "tile"
    assert asked


def test_a_lost_kernel_never_leaves_an_operation(machine: Machine) -> None:
    calls = []

    @lost.replanned
    def operation() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise lost.KernelLostError(f"source {len(calls)} is gone", NvrtcErrorCode.Compilation)
        return 7

    assert operation() == 7 and len(calls) == 3

    @lost.replanned
    def other() -> None:
        raise NvrtcError("another error")

    with pytest.raises(NvrtcError, match="another error"):
        other()


def test_choices_belong_to_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two unlike devices in one process: each has its own plan, also when they take turns."""
    from pygpukit.core import device
    from pygpukit.ops import plans
    from pygpukit.ops.matmul import times
    from pygpukit.ops.matmul.mma import unaligned
    from pygpukit.ops.matmul.tile import tiling

    facts = [
        {**native.device_info(0), "name": "large", "compute_major": 9, "compute_minor": 0, "multiprocessor_count": 132},
        {**native.device_info(0), "name": "small", "compute_major": 8, "compute_minor": 6, "multiprocessor_count": 20}
        | {"max_shared_per_block_optin_bytes": 101376},
    ]
    current = 0
    monkeypatch.setattr(device, "_facts", lambda index: facts[index])
    monkeypatch.setattr(times, "_is_none", lambda: False)
    monkeypatch.setattr(plans, "table", lambda family: {})
    monkeypatch.setattr(native, "current_device", lambda: current)
    seen = []
    for current in (0, 1, 0, 1):  # noqa: B007  the lambda above reads it
        shape = (4096, 4096, 4096, 1)
        seen.append(
            (
                device.current(),
                times.source(),
                unaligned.fastest(*shape, device.current().sm_count),
                tiling.fastest("half", 512, 4096, 4096, 1, 2, device.current().sm_count).time_us(
                    512, 4096, 4096, 1, 2, device.current().sm_count
                ),
            )
        )
    assert seen[0] == seen[2] and seen[1] == seen[3]
    assert all(one != other for one, other in zip(seen[0], seen[1], strict=True))


def test_times_follow_the_facts_of_a_device_without_a_table(machine: Machine) -> None:
    from pygpukit.ops.matmul import times

    def first(arch: str, **facts: int) -> dict[str, float]:
        with planning(arch, **facts):
            return times.table()["tiles"]["half"][0]

    of_h100 = first("sm_90a")
    slow = first("sm_86", clock_khz=1_755_000, memory_clock_khz=10_000_000, memory_bus_bits=384)
    assert slow["step_us"] == pytest.approx(4 * of_h100["step_us"])  # a quarter of the multiply-adds in a clock
    assert slow["us_per_mb"] == pytest.approx(of_h100["us_per_mb"] * 3.35e12 / 0.96e12)
    assert slow["fixed_us"] == of_h100["fixed_us"] and slow["rows"] == of_h100["rows"]
    for name, source in (("NVIDIA H100 80GB HBM3", "the device's table"), ("NVIDIA H200", "times of an H100")):
        with planning("sm_90a", name=name):
            assert times.source() == source
    with planning("sm_86"):
        assert "scaled by the device's facts" in gp.matmul_plan(half(), half()).reason


def test_a_kernel_that_is_chosen_though_it_is_lost_is_an_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever forces a kernel, as tests do, gets the compiler's words and no endless loop."""
    from pygpukit.ops.nn.conv import choose
    from pygpukit.ops.nn.conv import tile as conv_tile

    machine.broken = ["conv/tile"]
    monkeypatch.setattr(choose, "choose", lambda p: choose.ConvPlan("tile", "", None, conv_tile, p))
    with planning("sm_90a", compiles=True), pytest.raises(NvrtcError, match=r"words of the assembler.*no other kernel"):
        gp.conv2d(gp.zeros((1, 16, 8, 8), "float16"), gp.zeros((16, 16, 3, 3), "float16"))
    assert sum("conv/tile" in source for source in machine.tried) <= 2
