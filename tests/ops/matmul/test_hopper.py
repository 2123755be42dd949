"""Who asks for the kernels of SM 9.0 gets them or is told why not; what the driver is told of an array."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit.core import choices
from pygpukit.ops import host
from pygpukit.ops.matmul import choose
from pygpukit.ops.matmul.cuda_cores import strided
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import cluster, pingpong, tensor_maps
from pygpukit.ops.matmul.tile import gemv as tile_gemv
from pygpukit.ops.matmul.tile import half


@pytest.fixture
def a() -> gp.GPUArray:
    return gp.ones((4, 32), "float32")


def on_device(monkeypatch: pytest.MonkeyPatch, facts: Facts, capability: int) -> None:
    monkeypatch.setattr(cluster, "is_sim", lambda: False)
    monkeypatch.setattr(choose, "is_sim", lambda: False)
    facts(capability=capability)
    monkeypatch.setattr(cluster.tensor_maps, "refusal", lambda: "")


def test_what_the_kernels_do_not_take_is_refused_by_name(a: gp.GPUArray) -> None:
    with pytest.raises(ValueError, match="matmul: backend='tensor'; it is 'hopper', 'cutlass' or 'mma', or None"):
        gp.matmul(a, a.T, backend="tensor")
    with pytest.raises(gp.GPUError, match=r"matmul: backend='hopper': .*float32 with tf32=True, not float32; leave"):
        gp.matmul(a, a.T, backend="hopper")
    eight = a.astype("float8_e4m3")
    with pytest.raises(gp.GPUError, match="matmul_fp8: backend='hopper': tensor cores take operands of one type"):
        gp.matmul_fp8(eight, a.T.astype("float8_e5m2"), backend="hopper")
    with pytest.raises(ValueError, match="matmul_fp8_plan: backend='h'"):
        gp.ops.matmul_fp8_plan(eight, eight.T, backend="h")
    assert not gp.matmul(a[:, :0], a.T[:0], tf32=True, backend="hopper").to_numpy().any()


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch, a: gp.GPUArray, facts: Facts) -> None:
    on_device(monkeypatch, facts, 100)
    with pytest.raises(gp.GPUError, match=r"instructions are those of SM 9\.0; this device is SM 10\.0; leave backend"):
        gp.matmul_plan(a, a.T, tf32=True, backend="hopper")
    monkeypatch.setattr(choose, "_of_environment", lambda: "hopper")
    assert gp.matmul_plan(a, a.T, tf32=True).backend != "hopper"


def test_the_environment_asks_where_they_can(monkeypatch: pytest.MonkeyPatch, a: gp.GPUArray, facts: Facts) -> None:
    on_device(monkeypatch, facts, 90)
    assert gp.matmul_plan(a, a.T, tf32=True).backend != "hopper"
    monkeypatch.setattr(choose, "_of_environment", lambda: "hopper")
    plan = gp.matmul_plan(a, a.T, tf32=True)
    assert plan.backend == "hopper"
    assert "PYGPUKIT_MATMUL=hopper" in plan.reason
    assert gp.matmul_plan(a, a.T).backend != "hopper"
    eight = a.astype("float8_e4m3")
    assert gp.ops.matmul_fp8_plan(eight, eight.T, 2.0).backend == "hopper"


def test_plans_take_them_where_they_are_faster(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    on_device(monkeypatch, facts, 90)
    facts(sm_count=132)

    def taken(kind: str, dtype: str, m: int, n: int, k: int, along: bool = True) -> bool:
        a, b = gp.empty((m, k), dtype), gp.empty((n, k), dtype).T if along else gp.empty((k, n), dtype)
        return choose.choose(Problem.of(kind, a, b, a.dtype)).kernel in (cluster, pingpong)

    assert taken("fp8", "float8_e4m3", 2048, 2048, 2048) and not taken("fp8", "float8_e4m3", 16, 14336, 4096)
    assert taken("tf32", "float32", 2048, 2048, 2048) and not taken("tf32", "float32", 1, 2048, 2048)
    assert taken("half", "bfloat16", 4096, 4096, 4096) and not taken("half", "bfloat16", 16, 4096, 4096)
    assert taken("half", "bfloat16", 512, 512, 512), "by single blocks"
    assert not taken("half", "bfloat16", 64, 64, 4096), "few tiles of a long sum"
    assert taken("half", "bfloat16", 4093, 4099, 4101, along=False)  # as it is for every kernel
    assert not taken("int8", "int8", 2048, 2048, 2048)
    on_device(monkeypatch, facts, 100)
    assert not taken("fp8", "float8_e4m3", 2048, 2048, 2048)


def test_what_is_faster_is_taken(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    facts(capability=90)
    a = gp.ones((8, 32), "bfloat16")  # rows of whole 16 bytes
    with host.built_in_kernels():
        assert choose.choose(Problem.of("half", a, a.T, a.dtype)).kernel is strided, "without tensor cores"
        on_device(monkeypatch, facts, 90)
        monkeypatch.setattr(tile_gemv, "refusal", lambda _: "not for this test")
        for pairs_us, kernel in ((0.1, cluster), (1e9, half)):
            monkeypatch.setattr(cluster, "time_us", lambda _, pairs_us=pairs_us: pairs_us)
            monkeypatch.setattr(pingpong, "refusal", lambda _: "not for this test")
            choices.forget()
            assert choose.choose(Problem.of("half", a, a.T, a.dtype)).kernel is kernel


def test_another_name_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_MATMUL", "volta")
    with pytest.raises(ValueError, match="PYGPUKIT_MATMUL=volta; it is hopper, cutlass or mma, or unset"):
        choose._of_environment.__wrapped__()


def test_it_is_refused_on_the_simulation_too(monkeypatch: pytest.MonkeyPatch, a: gp.GPUArray) -> None:
    monkeypatch.setenv("PYGPUKIT_MATMUL", "hoper")
    choose._of_environment.cache_clear()
    try:
        for call in (gp.matmul, gp.matmul_plan):
            with pytest.raises(ValueError, match="PYGPUKIT_MATMUL=hoper; it is hopper, cutlass or mma, or unset"):
                call(a, a.T)
    finally:
        choose._of_environment.cache_clear()


class Driver:
    """Notes what it is asked for; gives maps that begin with the address, or with something else."""

    def __init__(self, status: int = 0, other: int = 0) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.status, self.other = status, other

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> int:
        self.calls.append(arguments)
        ctypes.memset(arguments[0].value, 7, 128)
        ctypes.c_uint64.from_address(arguments[0].value).value = arguments[3].value + self.other
        return self.status


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    driver = Driver()
    monkeypatch.setattr(tensor_maps, "is_sim", lambda: False)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: driver)
    tensor_maps._encoded.cache_clear()
    yield driver
    tensor_maps._encoded.cache_clear()


def test_what_the_driver_is_told_of_an_array(driver: Driver) -> None:
    for _ in range(2):  # once for the same numbers
        assert tensor_maps.tail(2, 96, 60, 8, 64, 3, 512) == b"\7" * 120
    ((place, kind, rank, _, extents, strides, box, steps, *modes),) = driver.calls
    assert place.value % 64 == 0
    assert (kind, rank.value) == (1, 3)
    assert (list(extents), list(strides)) == ([60, 8, 3], [128, 1024])
    assert (list(box), list(steps), modes) == ([64, 96, 1], [1, 1, 1], [0, 3, 3, 0])
    tensor_maps.tail(4, 128, 64, 8, 64, 1, 0)
    assert (driver.calls[1][1], list(driver.calls[1][5]), list(driver.calls[1][6])) == (11, [256, 2048], [32, 128, 1])
    driver.status = 1
    with pytest.raises(gp.GPUError, match="cuTensorMapEncodeTiled answers with status 1 for extents"):
        tensor_maps.tail(2, 96, 61, 8, 64, 3, 512)


def test_a_driver_whose_maps_begin_otherwise_is_refused(driver: Driver) -> None:
    assert tensor_maps._refusal.__wrapped__(0) == ""
    tensor_maps._encoded.cache_clear()
    driver.other = 1
    assert "does not begin with the array's address" in tensor_maps._refusal.__wrapped__(0)


def test_scales_of_blocks_of_one_column_are_those_of_a_block_of_columns(a: gp.GPUArray) -> None:
    eight = a.astype("float8_e4m3")
    of_rows, of_columns = gp.ones((4, 1)), gp.ones((1, 1))  # of 4 rows and of one column, for one block of k
    plan = gp.ops.matmul_fp8_plan(eight, eight[:1].T, of_rows, of_columns, backend="hopper")
    assert plan.backend == "hopper"
