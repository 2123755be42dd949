"""profile(cupti=True): work of other libraries, by CUPTI's records, over a stand-in for cupti-python."""

from __future__ import annotations

import builtins
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cupti_stand_in import ActivityKind, ActivityMemcpyKind, StandIn, pause

import pygpukit as gp
from pygpukit import _core, profiling
from pygpukit._core import native
from pygpukit.profiling import profile, waiting

OURS = """
__global__ void put_into(float* x) { x[threadIdx.x] = 1; }
"""
THEIRS = "_ZN2at6native4reluEPfi"  # at::native::relu(float*, int)


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    module = StandIn(int(np.random.default_rng().integers(-(10**9), 10**15)))
    package = ModuleType("cupti")
    package.cupti = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupti", package)
    monkeypatch.setitem(sys.modules, "cupti.cupti", module)
    yield module
    assert not module.enabled, "all that was enabled is disabled again"


def test_it_ends_where_the_block_cannot_wait_for_the_device(cupti: StandIn) -> None:
    with gp.Stream().capture(), pytest.raises(gp.GPUError, match="end the capture first"), profile(cupti=True):
        pass
    with profile(cupti=True):  # another one may record
        assert cupti.enabled


def test_other_libraries_work_is_there_beside_ours(cupti: StandIn, tmp_path: Path) -> None:
    kernel = gp.jit(OURS)
    x = gp.zeros(32)
    kernel[1, 32](x)
    (symbol,) = (name for name in native.kernel_symbols() if "put_into" in name)
    a, b = gp.zeros(1024), gp.zeros(1024)
    with profile(cupti=True) as p:
        kernel[1, 32](x)
        gp.synchronize()
        ours = p.works[-1]
        cupti.kernel(symbol, ours.begin_ns, ours.end_ns)
        native.copy(a, b)
        gp.synchronize()
        copied = p.works[-1]
        assert (copied.kind, copied.nbytes) == ("copy", 4096)
        for size in (4096, 4096, 8192):  # the first is ours
            cupti.record(
                ActivityKind.MEMCPY, copied.begin_ns, copied.end_ns, bytes=size, copy_kind=ActivityMemcpyKind.DTOD
            )
        now = _core.now_ns()
        cupti.kernel(THEIRS, now, now + 3000, (4, 3, 2))
        cupti.kernel("kernel_of_theirs", now + 4000, now + 5000)
        cupti.record(ActivityKind.MEMCPY, now, now + 9, bytes=7, copy_kind=ActivityMemcpyKind.HTOD)
        cupti.record(ActivityKind.MEMCPY2, now, now + 9, bytes=8, copy_kind=ActivityMemcpyKind.PTOP)
        cupti.record(ActivityKind.MEMSET, now, now + 9, bytes=9)
        cupti.kernel("runs yet", now, 0)
        cupti.kernel("long before", p.begin_ns - 9000, p.begin_ns - 8000)
        pause()
    cupti.kernel("after it", _core.now_ns(), _core.now_ns() + 1)
    others = [work for work in p.works if work.tenant == "other libraries"]
    assert sorted((work.name, work.kind, work.stream, work.blocks, work.threads, work.nbytes) for work in others) == [
        ("at::native::relu(float*, int)", "kernel", 7, 24, 32, 0),
        ("copy on the device", "copy", 7, 0, 0, 8),
        ("copy on the device", "copy", 7, 0, 0, 4096),
        ("copy on the device", "copy", 7, 0, 0, 8192),
        ("copy to the device", "copy", 7, 0, 0, 7),
        ("fill", "fill", 7, 0, 0, 9),
        ("kernel_of_theirs", "kernel", 7, 1, 32, 0),
    ]
    assert ours in p.works and copied in p.works
    assert [work.begin_ns for work in p.works] == sorted(work.begin_ns for work in p.works)
    relu = next(work for work in others if "relu" in work.name)
    assert abs(relu.begin_ns - now) < 10**6 and relu.end_ns - relu.begin_ns == 3000
    assert "at::native::relu" in str(p) and "stream 7 of other libraries" in p._repr_html_()
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"stream 7 of other libraries"} <= {event["args"].get("name") for event in events}


def test_a_wait_that_another_library_ends_is_not_said_to_be_of_the_host(cupti: StandIn) -> None:
    with profile(cupti=True) as p:
        pause()
        now = _core.now_ns()
        cupti.kernel("copy to the device", now, now + 1000)
    first = p.waits()[0]
    assert first.cause == waiting.OTHER and first.cause in waiting.CAUSES


def test_only_one_profile_records_at_a_time_and_the_next_one_may(cupti: StandIn) -> None:
    with profile(cupti=True):
        with pytest.raises(gp.GPUError, match="another profile records"), profile(cupti=True):
            pass
        with profile() as inner:
            gp.zeros(4) + 1
    assert inner.works
    with profile(cupti=True) as p:
        now = _core.now_ns()
        cupti.kernel("late", now, now + 5)
        pause()
    assert [work.name for work in p.works] == ["late"]


@pytest.mark.parametrize(
    "name", ["activity_register_callbacks", "activity_enable", "the last activity_enable", "get_timestamp"]
)
def test_what_cupti_refuses_is_an_error_and_leaves_nothing_behind(cupti: StandIn, name: str) -> None:
    cupti.fails.add(name)
    with pytest.raises(gp.GPUError, match=r"CUPTI failed while .*SUBSCRIBERS.*another profiler"):
        profile(cupti=True).__enter__()
    assert not cupti.enabled
    cupti.fails.clear()
    with profile(cupti=True) as p:
        gp.zeros(4) + 1
    assert p.works


def test_a_failure_at_the_end_is_an_error_and_leaves_nothing_behind(cupti: StandIn) -> None:
    cupti.fails.add("activity_flush_all")
    with pytest.raises(gp.GPUError, match="handing records out"), profile(cupti=True):
        pass
    cupti.fails.clear()
    with profile(cupti=True):
        pass


def test_an_error_of_the_block_is_the_one_that_is_raised(cupti: StandIn) -> None:
    with pytest.raises(KeyError, match="mine"), profile(cupti=True):
        raise KeyError("mine")


def test_without_cupti_python_the_command_that_installs_it_is_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    monkeypatch.delitem(sys.modules, "cupti.cupti", raising=False)
    with pytest.raises(ModuleNotFoundError, match="needs cupti-python: python -m pip install"):
        profile(cupti=True)


def test_a_library_that_it_needs_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def imported(name: str, *_: Any) -> ModuleType:
        raise ModuleNotFoundError("No module named 'elftools'", name="elftools")

    monkeypatch.setattr("pygpukit.profiling.cupti.import_module", imported)
    with pytest.raises(ModuleNotFoundError, match="No module named 'elftools'"):
        profile(cupti=True)


def test_profiles_without_it_import_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def refusing(name: str, *args: Any) -> Any:
        assert not name.startswith("cupti")
        return plain(name, *args)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with profile() as p:
        gp.zeros(4) + 1
    assert p.works and profiling.Profile(10).works == []


@pytest.mark.parametrize(
    ("symbol", "expected"), [(THEIRS, "at::native::relu(float*, int)"), ("_Z", "_Z"), ("", ""), ("plain", "plain")]
)
def test_a_symbol_is_read_as_its_declaration(symbol: str, expected: str) -> None:
    assert native.demangled(symbol) == expected
