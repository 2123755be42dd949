"""Suite random on a GPU: both libraries are asked for the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.benchmark import drawn_peers
from pygpukit.benchmark.drawn import operands
from pygpukit.benchmark.drawn_cases import Case, cases, function

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", cases(5, 6, small=True), ids=lambda case: case.title)
def test_both_libraries_are_asked_for_the_same(case: Case) -> None:
    torch: Any = pytest.importorskip("torch")
    theirs = drawn_peers.operands(torch, case)
    ours = {"gp": gp, "packed": operands(case)["packed"]}
    for name in case.shapes:
        tensor = theirs[name].contiguous()
        host = (tensor.float() if tensor.dtype.itemsize == 2 else tensor).cpu().numpy()
        ours[name] = gp.from_numpy(host).astype(case.element)
    if case.gp_weight:
        ours["b"] = function(case.gp_weight, ours)()
    want, got = function(case.torch, theirs)(), function(case.gp, ours)()
    want = want.permute(0, 2, 3, 1) if "channels_last=True" in case.gp else want
    want = (want.float() if want.dtype.itemsize == 2 else want).cpu().numpy()
    result = (got.astype("float32") if got.dtype.name in ("bfloat16", "float16") else got).to_numpy()
    assert result.shape == want.shape
    assert np.allclose(result, want, rtol=2e-2, atol=2e-2 * max(1.0, float(np.abs(want).max())))
