"""Listings and figures of a kernel, made on a thread, on both backends."""

from __future__ import annotations

import time
from typing import Any
from weakref import WeakValueDictionary

import pytest

import pygpukit as gp

pytest.importorskip("IPython")

from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jupyter import assembly
from pygpukit.jupyter.card import Launch
from pygpukit.jupyter.reports import Report

SOURCE = """__global__ void tile(float* x) {
    __shared__ float row[64];
    row[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = row[63 - threadIdx.x];
}
"""


def finished(report: Report, kernel: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = assembly.ask(report, kernel)
        if answer["state"] == "done":
            return answer
        time.sleep(0.05)
    raise AssertionError("the listing was never done")


def test_the_card_has_the_compilers_figures_or_none(backend_name: str) -> None:
    kernel: JITKernel = gp.jit(SOURCE, func="tile")
    kernels: WeakValueDictionary[str, JITKernel] = WeakValueDictionary(tile=kernel)
    launch = Launch("tile", (1,), (64,))
    answer = finished(Report(SOURCE, kernels=kernels, launch=launch), "tile")
    card = answer["card"]
    if not answer["listings"]["ptx"]["lines"]:
        assert backend_name == "sim"
        assert card["registers"] is None
        assert "no registers" in card["reason"]
        return
    assert {line for line, _ in answer["listings"]["ptx"]["lines"]} >= {3, 4, 5}
    assert card["shared_bytes"] == 256
    assert card["registers"] > 0
    assert card["threads"] == 64
    assert 0 < card["occupancy"] <= 1
    if backend_name == "cuda":
        assert card["reason"] == ""
        assert card["occupancy"] == kernel.occupancy(64).fraction
    else:
        assert "sm_90a" in card["reason"]
