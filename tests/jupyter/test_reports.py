"""What a run of a %%cuda cell leaves for the page: diagnostics at the lines that the user counts, kernels, figures."""

from __future__ import annotations

import gc
import json
import time
from typing import Any

import pytest
from cell_runner import AXPY

import pygpukit as gp
from pygpukit.jit.compile.nvrtc import get_nvrtc_version
from pygpukit.jupyter import assembly, control
from pygpukit.jupyter.card_listing import Listing

BAD = "__global__ void bad(float* x) {\n    x[0] = undefined_name;\n}\n"


def run(shell: Any, source: str, cell: str) -> Any:
    """The execution result of a cell with an id, as a front end runs it."""
    return shell.run_cell(source, store_history=True, cell_id=cell)


def ask(action: str, **args: Any) -> dict[str, Any]:
    answer = control.answer({"id": 1, "action": action, "args": args})
    assert answer["ok"], answer
    result: dict[str, Any] = json.loads(json.dumps(answer["result"]))
    return result


def report(cell: str) -> dict[str, Any]:
    found: dict[str, Any] = ask("reports", cells=[cell])["reports"][cell]
    return found


def finished(cell: str, kernel: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = ask("assembly", cell=cell, kernel=kernel)
        if answer["state"] == "done":
            return answer
    raise AssertionError("the listing was never done")


@pytest.mark.parametrize("above", ["", "\n", "\n\n\n"])
def test_a_compile_error_stands_at_the_line_and_column_of_the_cell(shell: Any, above: str) -> None:
    source = f"{above}%%cuda\n{BAD}"
    run(shell, source, "a")
    found = report("a")
    assert found["source"] == source
    (one,) = found["diagnostics"]
    text = source.split("\n")[one["line"] - 1]
    assert one["severity"] == "error"
    assert text[one["column"] - 1 :].startswith("undefined_name")
    run(shell, f"{above}%%cuda\n{AXPY}", "a")
    assert report("a")["diagnostics"] == []
    assert report("a")["kernels"] == ["axpy"]


def test_a_wrong_option_stands_at_the_magic(shell: Any) -> None:
    run(shell, f"\n%%cuda --no-such-option\n{AXPY}", "a")
    (one,) = report("a")["diagnostics"]
    assert (one["line"], one["column"], one["severity"]) == (2, 0, "error")
    assert "--no-such-option" in one["message"]


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
def test_a_warning_of_a_cell_that_compiles_is_told(shell: Any) -> None:
    run(shell, "%%cuda --arch sm_90a --no-launch\n#warning take care\n" + AXPY, "a")
    found = report("a")["diagnostics"]
    assert [(one["line"], one["severity"]) for one in found] == [(2, "warning")]
    assert "take care" in found[0]["message"]


def test_an_error_of_an_included_cell_stands_at_the_magic_with_its_place(shell: Any) -> None:
    run(shell, "%%cuda --name math.h\n__device__ float twice(float x) { return 2 * x; }\n", "h")
    run(shell, "%%cuda --name broken.h\n#ifdef USED\nnonsense here;\n#endif\n", "b")
    run(shell, f"%%cuda --with broken.h -D USED=1\n{AXPY}", "a")
    found = report("a")["diagnostics"]
    assert found
    assert found[0]["line"] == 1
    assert found[0]["message"].startswith("broken.h:3:")


@pytest.mark.skipif("gp.backend() != 'sim'", reason="checked mode is the simulator's")
def test_findings_stand_in_the_cell_of_the_kernel_also_when_another_cell_launched_it(shell: Any) -> None:
    source = "%%cuda --check\n__global__ void over(float* x, int n) {\n    x[n] = 1.0f;\n}\n"
    run(shell, source, "a")
    assert report("a")["diagnostics"] == []
    run(shell, "import pygpukit as gp\nv = gp.zeros(8)", "p")
    failed = run(shell, "over[1, 1](v, 8)\nv.to_numpy()", "q")
    assert type(failed.error_in_exec).__name__ == "KernelCheckError"
    (one,) = report("a")["diagnostics"]
    assert (one["line"], one["column"]) == (3, 5)
    assert one["message"].startswith("out of bounds")
    run(shell, "over[1, 1](v, 7)\nv.to_numpy()", "q")
    assert report("a")["diagnostics"] == []


def test_other_cells_and_unknown_ones_have_no_report(shell: Any) -> None:
    run(shell, "1 + 1", "p")
    run(shell, "1 / 0", "q")
    run(shell, "%%cudabar\nx", "r")
    assert ask("reports", cells=["p", "q", "r", "never"]) == {"reports": {}}


def test_the_assembly_has_source_lines_or_says_why_not(shell: Any) -> None:
    run(shell, f"%%cuda\n{AXPY}", "a")
    answer = finished("a", "axpy")
    assert set(answer["listings"]) == {"ptx", "sass"}
    for listing in answer["listings"].values():
        assert bool(listing["lines"]) != bool(listing["problem"])
        numbers = {line for line, _ in listing["lines"]} - {0}
        assert numbers <= set(range(2, 6))
    card = answer["card"]
    if answer["listings"]["ptx"]["lines"]:
        assert card["registers"] > 0
        assert 0 < card["occupancy"] <= 1
    else:
        assert card["registers"] is None
        assert card["reason"]
    assert card["copy"] is None  # nothing was measured
    assert card["median_us"] is None


@pytest.mark.skipif("gp.backend() != 'sim'", reason="the simulated device needs NVRTC for listings only")
def test_without_nvrtc_the_listings_say_so_and_what_is_known_is_told(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = "NVRTC is not installed (extra cuda13)"
    missing = lambda unit, kernels, kinds: tuple(Listing(kind, "axpy", "sm_90a", (), hint) for kind in kinds)  # noqa: E731
    monkeypatch.setattr(assembly, "listings", missing)
    monkeypatch.setattr(assembly, "inspected", lambda unit, kernels: {})
    body = "s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[31 - threadIdx.x];"
    run(shell, "%%cuda\n__global__ void axpy(float* x) {\n    __shared__ float s[32];\n    " + body + "\n}\n", "a")
    answer = finished("a", "axpy")
    assert [one["problem"] for one in answer["listings"].values()] == [hint, hint]
    assert hint not in answer["card"]["reason"], "it is told once, in the listing that is shown"
    assert answer["card"]["shared_bytes"] == 128 and answer["card"]["registers"] is None


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
def test_a_kernel_that_is_not_loaded_has_its_code_too(shell: Any) -> None:
    run(shell, f"%%cuda --arch sm_90a --no-launch\n{AXPY}", "a")
    answer = finished("a", "axpy")
    assert answer["arch"] == "sm_90a"
    assert {line for line, _ in answer["listings"]["ptx"]["lines"]} >= {4}
    assert answer["card"]["registers"] > 0


def test_the_card_has_what_the_cell_measured(shell: Any) -> None:
    run(shell, "import pygpukit as gp\nx, y, z = gp.ones(64), gp.ones(64), gp.zeros(64)", "p")
    run(shell, f"%%cuda -i x,y,a=2.0,n=64 -o z --bench\n{AXPY}", "a")
    card = finished("a", "axpy")["card"]
    assert card["median_us"] is None or card["median_us"] > 0


def test_a_kernel_that_is_gone_is_told_apart(shell: Any) -> None:
    run(shell, f"%%cuda\n{AXPY}", "a")
    shell.run_line_magic("reset", "-f")
    gc.collect()
    answer = control.answer({"id": 1, "action": "assembly", "args": {"cell": "a", "kernel": "axpy"}})
    assert "run the cell again" in answer["error"]


@pytest.mark.parametrize(
    ("action", "args", "error"),
    [
        ("reports", {}, "reports needs args"),
        ("reports", {"cells": [1]}, "reports needs args"),
        ("assembly", {"cell": "a"}, "assembly needs args"),
        ("assembly", {"cell": 3, "kernel": "k"}, "assembly needs args"),
        ("assembly", {"cell": "never", "kernel": "k"}, "this cell has not run"),
    ],
)
def test_wrong_requests_are_refused(shell: Any, action: str, args: dict[str, Any], error: str) -> None:
    answer = control.answer({"id": 1, "action": action, "args": args})
    assert answer["ok"] is False
    assert answer["error"].startswith(error)


def test_the_options_are_the_magics_own(shell: Any) -> None:
    options = ask("options")["options"]
    flags = {flag for one in options for flag in one["flags"]}
    assert {"-i", "-o", "--grid", "--bench", "--check"} <= flags
    assert all(one["help"] for one in options)


def test_unloading_forgets_the_cells(shell: Any) -> None:
    run(shell, f"%%cuda\n{AXPY}", "a")
    shell.run_line_magic("unload_ext", "pygpukit")
    try:
        assert ask("reports", cells=["a"]) == {"reports": {}}
    finally:
        shell.run_line_magic("load_ext", "pygpukit")
    assert gp.backend()
