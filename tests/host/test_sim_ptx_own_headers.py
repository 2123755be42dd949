"""asm statements in the package's headers, on the simulated device: translated where they are included, without the
preprocessor, and told about at their own lines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pygpukit.core.errors import CompileError
from pygpukit.jit.compile import headers, simulator
from pygpukit.jit.ptx import own_headers, source

ADDS = """// adds.cuh
#pragma once
#include "plain.cuh"
__device__ inline int adds(int x) { asm("OPCODE %0, %0, 1;" : "+r"(x)); return x; }
"""
KERNEL = """#include "leads.cuh"
#include "adds.cuh"
/*
#include "adds.cuh"
*/
__global__ void k(int *out) { out[0] = adds(out[0]); }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {"adds.cuh": ADDS, "leads.cuh": '#pragma once\n#include "adds.cuh"\n', "plain.cuh": "#pragma once\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text.replace("OPCODE", "add.s32"))
    paths = {name: tmp_path / name for name in texts}
    ours = SimpleNamespace(own=lambda: paths, text=headers.text, included=headers.included)
    for module in (own_headers, source):  # not what the simulator's own folder is filled from
        monkeypatch.setattr(module, "header_sets", ours)
    return tmp_path


def translated(text: str, read: list[str] | None = None) -> source.Source:
    def never(*_: object) -> str:
        raise AssertionError("the preprocessor runs")

    return source.with_ptx(text, "k.cu", (), {}, [], never, read)


def test_each_stands_where_it_is_included_once(folder: Path) -> None:
    read: list[str] = []
    found = translated(KERNEL, read)
    assert not found.expanded and found.headers[0] == "pk_sim_ptx.h"
    assert found.text.count("adds(int x)") == 1 and "asm" not in found.text
    assert '#include "plain.cuh"' in found.text  # which has no statement
    assert read == [str(folder / "leads.cuh"), str(folder / "adds.cuh")]
    lines = found.text.splitlines()
    assert lines[lines.index("/*") - 2] == '#line 2 "k.cu"'


def test_a_source_without_statements_stays(folder: Path) -> None:
    plain = '#include "plain.cuh"\n__global__ void k(int *out) { out[0] = 1; }\n'
    assert translated(plain) == source.Source(plain)


def test_what_is_no_instruction_is_told_at_the_headers_line(folder: Path) -> None:
    (folder / "other.cuh").write_text(ADDS.replace("OPCODE", "sum.s32"))
    source.header_sets.own()["other.cuh"] = folder / "other.cuh"
    with pytest.raises(CompileError, match=r"other\.cuh:4:\d+: inline PTX: the instruction sum\.s32"):
        translated(KERNEL + '#include "other.cuh"\n')


def test_lines_after_an_include_stay_the_sources() -> None:
    with pytest.raises(CompileError, match=r"k\.cu:3:\d+: .*nothing_like_it"):
        simulator.compile('#include "mma.cuh"\n__global__ void k(int *out) {\n  nothing_like_it(out);\n}', name="k.cu",
                          options=[f"-I{headers.own()['mma.cuh'].parent}"])  # fmt: skip
