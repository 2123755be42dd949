"""The counting libcuda of the GPU tests, tried over the mock: it changes nothing and misses nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import counter
import pytest
from mock_cuda import NATIVE, build, start

WORK = """
import sys
sys.path.insert(0, {counter!r})
import counter, json
G = 2 << 20
t = Table()
assert t.probe == "", t.probe
t.ok("device_use", 0)
first, second = t.memory(3 * G), t.memory(G)
t.ok("unmap", second[0], G); t.ok("physical_release", second[1])
out = ctypes.c_uint64()
assert t.physical_create(G + 1, ctypes.byref(out)) == 1
data = ctypes.create_string_buffer(1000)
t.ok("copy_h2d", first[0], data, 1000, 0)
t.ok("copy_d2h", data, first[0], 300, 0)
t.ok("copy_d2d", first[0], first[0] + G, 50, 0)
t.ok("fill", first[0], 0, 4, 25, 0)
image = cubin({{"none": []}})
function = t.get("module_function", t.get("module_load", image, len(image)), b"none")
launch = Launch(function, 0, (1, 1, 1), (1, 1, 1))
for flags in (0, 0, 0, 1):
    launch.flags = flags
    t.ok("launch", ctypes.byref(launch))
t.ok("launch_host", 0, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda argument: None), 0)
print(json.dumps([{{k: v for k, v in counter.counts().items() if v}}, counter.requested()]))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], list[str]]:
    shim = counter.build(tmp_path_factory.mktemp("shim"))
    environment = counter.environment(shim, str(build() / "mock" / "libcuda.so.1"), {})
    counts, requested = json.loads(start(WORK.format(counter=str(Path(counter.__file__).parent)), environment, shim))
    return counts, requested


def test_counts(seen: tuple[dict[str, int], list[str]]) -> None:
    granule = 2 << 20
    assert seen[0] == {
        "cuMemCreate.calls": 2,
        "cuMemCreate.failed": 1,
        "cuMemCreate.bytes": 4 * granule,
        "cuMemRelease.calls": 1,
        "cuMemRelease.bytes": granule,
        "cuMemMap.calls": 2,
        "cuMemMap.bytes": 4 * granule,
        "cuMemUnmap.calls": 1,
        "cuMemUnmap.bytes": granule,
        "live.bytes": 3 * granule,
        "peak.bytes": 4 * granule,
        "live.handles": 1,
        "cuMemcpyHtoDAsync.calls": 1,
        "cuMemcpyHtoDAsync.bytes": 1000,
        "cuMemcpyDtoHAsync.calls": 1,
        "cuMemcpyDtoHAsync.bytes": 300,
        "cuMemcpyDtoDAsync.calls": 1,
        "cuMemcpyDtoDAsync.bytes": 50,
        "cuMemsetD32Async.calls": 1,
        "cuMemsetD32Async.bytes": 100,
        "cuLaunchKernel.calls": 3,
        "cuLaunchKernelEx.calls": 1,
        "cuLaunchHostFunc.calls": 1,
    }


def test_every_symbol_is_declared(seen: tuple[dict[str, int], list[str]]) -> None:
    declared = re.findall(r"^  X\((\w+),", (NATIVE / "cuda" / "cuda_api.h").read_text(), re.MULTILINE)
    assert seen[1] == declared and len(declared) > 40
