"""Peers on the cuda table, over a libcuda with host memory: who gets access to what, and which copies are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from mock_cuda import build, run, start


def calls(log: Path, *names: str) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.split()[0] in names]


SHARING = """
t = Table()
t.ok("device_use", 1)
first, _ = t.memory(2 << 20)
t.ok("device_use", 0)
for _ in range(2):
    t.ok("peer_enable", 1)  # the second time changes nothing
own, _ = t.memory(2 << 20)
t.ok("device_use", 1)
second, physical = t.memory(4 << 20)
t.ok("unmap", second, 4 << 20)
t.ok("map", second, 4 << 20, physical)
fd = ctypes.c_int32()
t.ok("physical_export", physical, ctypes.byref(fd))
other = t.get("physical_import", fd.value, 4 << 20)
t.ok("map", t.get("address_reserve", 4 << 20), 4 << 20, other)
"""


def test_access_is_set_on_what_is_mapped_and_on_what_will_be(tmp_path: Path) -> None:
    log = tmp_path / "log"
    start(SHARING, {"MOCK_CUDA_DEVICES": "2", "MOCK_CUDA_LOG": str(log)}, build() / "mock")
    small, large = "cuMemSetAccess 2097152 location 1:{} flags 3", "cuMemSetAccess 4194304 location 1:{} flags 3"
    assert calls(log, "cuMemSetAccess", "cuCtxEnablePeerAccess") == [
        small.format(1),
        "cuCtxEnablePeerAccess c0de0002 from c0de0001 flags 0",
        small.format(0),
        small.format(0),  # of device 0 itself, to which nobody else has access
        *[large.format(device) for device in (1, 0, 1, 0)],
        large.format(1),  # memory of another process, which is not passed on
    ]


REFUSED = """
t = Table()
t.ok("device_use", 1)
t.memory(2 << 20)
t.ok("device_use", 0)
status = t.peer_enable(1)
print(status, t.text(status))
"""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"MOCK_CUDA_PEERS": "0"}, "217 peer_enable failed: "),
        ({"MOCK_CUDA_FAIL": "cuCtxEnablePeerAccess:711"}, "711 cuCtxEnablePeerAccess failed: "),
        ({"MOCK_CUDA_FAIL": "cuCtxEnablePeerAccess:704"}, "0 "),  # another library has enabled it
        ({"MOCK_CUDA_MISSING": "cuCtxEnablePeerAccess"}, "801 "),
    ],
)
def test_what_the_driver_refuses_is_told(settings: dict[str, str], expected: str) -> None:
    assert start(REFUSED, {"MOCK_CUDA_DEVICES": "2", **settings}, build() / "mock").startswith(expected)


COPIES = """
x = gp.from_numpy(np.arange(1000, dtype="int32"))
y = x.to(1)
assert y.device == 1 and np.array_equal(y.to(0).to_numpy(), np.arange(1000))
from pygpukit._core import native
print(gp.cuda.can_access_peer(0, 1), native.peer_traffic(0, 1), native.peer_traffic(1, 0))
"""


@pytest.mark.parametrize("peers", ["1", "0"])
def test_arrays_are_copied_by_the_driver_from_context_to_context(tmp_path: Path, peers: str) -> None:
    log = tmp_path / "log"
    settings = {"MOCK_CUDA_DEVICES": "2", "MOCK_CUDA_PEERS": peers, "MOCK_CUDA_LOG": str(log)}
    told = run(COPIES, build() / "mock", **settings).split(" ", 1)
    assert told == ["True", "(1, 4000, 0) (1, 4000, 0)\n"] if peers == "1" else ["False", "(1, 0, 4000) (1, 0, 4000)\n"]
    assert calls(log, "cuMemcpyPeerAsync") == [
        "cuMemcpyPeerAsync 4000 from c0de0001 to c0de0002 stream 0",
        "cuMemcpyPeerAsync 4000 from c0de0002 to c0de0001 stream 0",
    ]
    assert len(calls(log, "cuCtxEnablePeerAccess")) == (2 if peers == "1" else 0)
