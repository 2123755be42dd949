"""Partitions of the multiprocessors over a fake libcuda: what is asked of the driver, and what an old one says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mock_cuda import build, start

Drive = Callable[..., list[str]]


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """Run code with `t`, a table whose device 0 is in use, `groups()` and `make()`; the fake driver's log."""

    def go(code: str, **settings: str) -> list[str]:
        log = tmp_path / "log"
        prelude = """
t = Table()
t.ok("device_use", 0)
def groups():
    sizes, count = (ctypes.c_int32 * 128)(), ctypes.c_uint32()
    t.ok("sm_groups", sizes, 128, ctypes.byref(count))
    return list(sizes)[: count.value]
def make(*numbers):
    sms = ctypes.c_int32()
    chosen = (ctypes.c_uint32 * len(numbers))(*numbers)
    return t.get("sm_partition_create", chosen, len(numbers), ctypes.byref(sms)), sms.value
"""
        start(prelude + code, {"MOCK_CUDA_LOG": str(log), **settings}, build() / "mock")
        return log.read_text().splitlines()

    return go


def calls(log: list[str], *names: str) -> list[str]:
    return [line.strip() for line in log if line.split()[0] in names]


def test_the_device_is_split_once_into_pairs(drive: Drive) -> None:
    log = drive("""
assert groups() == groups() == [2] * 66
a, sms = make(*range(13))
assert sms == 26
b, sms = make(*range(13, 66))
assert sms == 106 and a != b
stream = t.get("sm_stream_create", a, -3)
t.ok("stream_query", stream)
t.ok("stream_destroy", stream)
t.ok("sm_partition_destroy", a)
t.ok("sm_partition_destroy", b)
assert t.sm_partition_destroy(b) == 1
""")
    splits = calls(log, "cuDevSmResourceSplitByCount")
    assert splits == [
        "cuDevSmResourceSplitByCount of 132 flags 1 least 2 count",
        "cuDevSmResourceSplitByCount of 132 flags 1 least 2",
    ]
    made = calls(log, "cuGreenCtxCreate")
    assert made[0] == "cuGreenCtxCreate device 0 sms 26 first " + ",".join(str(2 * i) for i in range(13))
    assert made[1].startswith("cuGreenCtxCreate device 0 sms 106 first 26,28,")
    assert calls(log, "cuGreenCtxStreamCreate") == ["cuGreenCtxStreamCreate sms 26 flags 1 priority -3"]
    assert len(calls(log, "cuCtxSetCurrent")) == len(calls(log, "cuDevicePrimaryCtxRetain")) == 1, "one context"


def test_what_is_left_over_is_a_group(drive: Drive) -> None:
    drive("""
assert groups() == [2, 2, 1]
assert make(2)[1] == 1 and make(0, 2)[1] == 3
""", MOCK_CUDA_SMS="5")  # fmt: skip


def test_bad_groups_are_refused(drive: Drive) -> None:
    drive("""
sms, partition = ctypes.c_int32(), ctypes.c_uint64()
out = (ctypes.byref(sms), ctypes.byref(partition))
status = t.sm_partition_create((ctypes.c_uint32 * 1)(66), 1, *out)
assert status == 1 and "group 66 of 66" in t.text(status), t.text(status)
status = t.sm_partition_create((ctypes.c_uint32 * 1)(), 0, *out)
assert status == 1 and "no groups" in t.text(status), t.text(status)
""")


@pytest.mark.parametrize(
    "settings",
    [{"MOCK_CUDA_VERSION": "12030"}, {"MOCK_CUDA_VERSION": "12080", "MOCK_CUDA_MISSING": "cuGreenCtxCreate"}],
)
def test_an_old_driver_says_so(drive: Drive, settings: dict[str, str]) -> None:
    version = "12.3" if len(settings) == 1 else "12.8"
    drive(f"""
count, partition = ctypes.c_uint32(), ctypes.c_uint64()
for status in (t.sm_groups(None, 0, ctypes.byref(count)), t.sm_stream_create(1, 0, ctypes.byref(partition))):
    text = t.text(status)
    assert status == 801 and "driver too old" in text and "CUDA {version}; " in text and "CUDA 12.5" in text, text
t.ok("stream_destroy", t.get("stream_create", 0))  # all else works
""", **settings)  # fmt: skip


@pytest.mark.parametrize("call", ["cuDeviceGetDevResource", "cuDevSmResourceSplitByCount"])
def test_a_refused_split_is_tried_again(drive: Drive, call: str) -> None:
    drive(f"""
import os
count = ctypes.c_uint32()
status = t.sm_groups(None, 0, ctypes.byref(count))
assert status == 801 and t.text(status).startswith("{call} failed"), t.text(status)
""", MOCK_CUDA_FAIL=f"{call}:801")  # fmt: skip


def test_a_partition_that_does_not_tell_its_size_is_not_left(drive: Drive) -> None:
    log = drive("""
sms, partition = ctypes.c_int32(), ctypes.c_uint64()
status = t.sm_partition_create((ctypes.c_uint32 * 1)(0), 1, ctypes.byref(sms), ctypes.byref(partition))
assert status == 1, status
""", MOCK_CUDA_FAIL="cuGreenCtxGetDevResource:1")  # fmt: skip
    assert len(calls(log, "cuGreenCtxCreate")) == len(calls(log, "cuGreenCtxDestroy")) == 1
