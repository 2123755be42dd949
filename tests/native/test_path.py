"""One path: every device byte and every launch of the tour is one that the pool and the launch function recorded.

The device's side is counted below pygpukit: on the simulation by the simulated device itself, on a GPU by a library
that stands in front of libcuda (tests/gpu/interpose).
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

LEDGER = """
import json, sys
from collections import Counter
from pygpukit import _core
_core.native.synchronize()
_data, _, _lost = _core.ring_read(1)
_records = [_data[i : i + 64] for i in range(0, len(_data), 64)]
_kinds = Counter(int.from_bytes(r[16:18], "little") for r in _records)
_segments = sum(int.from_bytes(r[40:48], "little") for r in _records if int.from_bytes(r[16:18], "little") == 5)
print(json.dumps({
    "lost": _lost, "launches": _kinds[16], "host_launches": _kinds[17], "evictions": _kinds[3],
    "segment_bytes": _segments, "allocations": _kinds[1], "counters": _core.counters(),
    "device": _core.native.device_counters(), "backend": _core.native.backend_name(),
}))
"""

COUNTS = """
sys.path.append({folder!r})
import counter
print(json.dumps(counter.counts()))
"""

INTERPOSE = Path(__file__).parent.parent / "gpu" / "interpose"
LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx")
# Every other way to device memory or to a launch, which must stay at zero.
OTHERS = (
    "cuMemAlloc",
    "cuMemAllocPitch",
    "cuMemAllocManaged",
    "cuMemAllocAsync",
    "cuMemAllocFromPoolAsync",
    "cuMemImportFromShareableHandle",
    "cuLaunchCooperativeKernel",
    "cuLaunchHostFunc",
    "cuGraphLaunch",
)


def run_tour(notebooks: Path, environment: dict[str, str], *more: str) -> list[dict[str, Any]]:
    """Execute the tour with more cells behind it; what those printed, as JSON."""
    book = nbformat.read(notebooks / "00_tour.ipynb", as_version=4)
    book.cells += [nbformat.v4.new_code_cell(source) for source in more]
    resources = {"metadata": {"path": str(notebooks)}}
    client = NotebookClient(book, timeout=300, iopub_timeout=300, raise_on_iopub_timeout=True, resources=resources)
    client.execute(env=environment)
    return [json.loads(cell.outputs[-1]["text"]) for cell in book.cells[-len(more) :]]


def check_ledger(ledger: dict[str, Any], backend: str) -> None:
    assert ledger["backend"] == backend
    assert ledger["lost"] == 0 and ledger["evictions"] == 0
    assert ledger["launches"] == ledger["counters"]["launches"] > 0
    assert ledger["host_launches"] == ledger["counters"]["host_launches"]
    assert ledger["allocations"] > 0 and ledger["segment_bytes"] > 0


def test_tour_on_the_simulated_device(notebooks: Path) -> None:
    (ledger,) = run_tour(notebooks, dict(os.environ), LEDGER)
    check_ledger(ledger, "sim")
    device = ledger["device"]
    assert device["launches"] == ledger["launches"] + ledger["counters"]["later_parts"]
    assert device["host_launches"] == 0 < ledger["host_launches"]  # those run on the calling thread, in stream order
    assert device["physical_created_bytes"] == ledger["segment_bytes"]


@pytest.mark.gpu
def test_tour_at_the_level_of_libcuda(notebooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(INTERPOSE)
    counter = importlib.import_module("counter")
    environment = counter.environment(counter.build(tmp_path), counter.real_libcuda())
    ledger, counts = run_tour(notebooks, environment, LEDGER, COUNTS.format(folder=str(INTERPOSE)))
    check_ledger(ledger, "cuda")
    calls = sum(counts[f"{name}.calls"] for name in LAUNCHES)
    assert calls == ledger["launches"] + ledger["counters"]["later_parts"]
    assert counts["cuMemCreate.bytes"] == ledger["segment_bytes"]
    assert counts["conflict.calls"] == 0
    assert {name: counts[f"{name}.calls"] for name in OTHERS} == dict.fromkeys(OTHERS, 0)
