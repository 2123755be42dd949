"""asm statements in the package's headers, on the simulated device: each header is translated once, those that macros
make too, and told about at its own lines."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import pygpukit
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile import headers, sim_translation, simulator
from pygpukit.jit.compile.sim_source import without_empty_asm
from pygpukit.jit.ptx import own_headers, source
from pygpukit.jit.ptx.preprocessed import Preprocess

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
    ours = SimpleNamespace(
        own=lambda: {path.name: path for path in tmp_path.glob("*.cuh")}, text=headers.text, included=headers.included
    )
    for module in (own_headers, source):  # not what the simulator's own folder is filled from
        monkeypatch.setattr(module, "header_sets", ours)
    return tmp_path


MADE = """// made.cuh: statements that macros make
#pragma once
#include "plain.cuh"
#define TAKES(name, opcode)                      \\
  __device__ inline int name(int x) {            \\
    asm(opcode " %0, %0, 1;" : "+r"(x));         \\
    return x;                                    \\
  }
TAKES(takes, "sub.s32")
#undef TAKES
"""


def translated(text: str, read: list[str] | None = None, preprocess: Preprocess | None = None) -> source.Source:
    def never(*_: object) -> str:
        raise AssertionError("the preprocessor runs")

    return source.with_ptx(text, "k.cu", (), {}, [], preprocess or never, read)


def test_each_is_translated_and_so_is_what_leads_to_it(folder: Path) -> None:
    read: list[str] = []
    found = translated(KERNEL, read)
    assert found.text == KERNEL and not found.expanded and found.headers == ("pk_sim_ptx.h",)
    assert found.own.keys() == {"leads.cuh", "adds.cuh"}, "plain.cuh has no statement"
    assert "asm" not in found.own["adds.cuh"] and '#include "plain.cuh"' in found.own["adds.cuh"]
    assert found.own["leads.cuh"] == '#line 1 "leads.cuh"\n' + (folder / "leads.cuh").read_text()
    assert read == [str(folder / "leads.cuh"), str(folder / "adds.cuh")]


def test_a_source_without_statements_stays(folder: Path) -> None:
    plain = '#include "plain.cuh"\n__global__ void k(int *out) { out[0] = 1; }\n'
    assert translated(plain) == source.Source(plain)


def test_no_kernel_of_the_package_has_a_text_of_its_own_for_the_simulator() -> None:
    package = Path(pygpukit.__file__).parent
    sources = [path for end in ("cu", "cuh") for path in package.rglob(f"*.{end}")]
    assert sources and not [path for path in sources if "PYGPUKIT_SIM" in path.read_text(encoding="utf-8")]


def test_an_empty_statement_is_a_barrier_where_it_says_memory(folder: Path) -> None:
    text = 'asm volatile("" ::: "memory"); asm("" : "+r"(w)); asm volatile("" : "+f"(x)::"memory"); asm volatile("");\n'
    plain = without_empty_asm(text)
    assert [one.strip() for one in plain.split(";")[:-1]] == ["__pk_fence()", "(void)0", "__pk_fence()", "__pk_fence()"]
    assert len(plain) == len(text), "what follows stays at its column"
    (folder / "adds.cuh").write_text('#pragma once\n__device__ inline void held(int x) { asm("" : "+r"(x)); }\n')
    found = translated(KERNEL)
    assert "asm" not in found.own["adds.cuh"] and "(void)0" in found.own["adds.cuh"]


def test_statements_that_macros_make_are_translated_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MADE.replace("sub.s32", f"sub.s32 /* {time.time_ns()} */")  # which no cache has
    (folder / "made.cuh").write_text(made)
    kernel = '#include "made.cuh"\n__global__ void k(int *out) { out[0] = takes(out[0]); }\n'
    first = translated(kernel, preprocess=simulator.preprocess)
    text = first.own["made.cuh"]
    assert "asm" not in text and "TAKES" not in text and '#include "plain.cuh"' in text and "#pragma once" in text
    assert '#line 9 "made.cuh"' in text or "\n" * 5 in text, "lines stay"
    assert translated(kernel) == first, "from the kernel cache"
    monkeypatch.setattr(sim_translation, "digest", lambda: "another")
    with pytest.raises(AssertionError, match="the preprocessor runs"):
        translated(kernel)


def test_what_is_no_instruction_is_told_at_the_headers_line(folder: Path) -> None:
    (folder / "other.cuh").write_text(ADDS.replace("OPCODE", "sum.s32"))
    with pytest.raises(CompileError, match=r"other\.cuh:4:\d+: inline PTX: the instruction sum\.s32"):
        translated(KERNEL + '#include "other.cuh"\n')
    (folder / "made.cuh").write_text(MADE.replace("sub.s32", "sum.s32"))
    with pytest.raises(CompileError, match=r"made\.cuh:9:\d+: inline PTX: the instruction sum\.s32"):
        translated('#include "made.cuh"\n', preprocess=simulator.preprocess)


def test_lines_after_an_include_stay_the_sources() -> None:
    with pytest.raises(CompileError, match=r"k\.cu:3:\d+: .*nothing_like_it"):
        simulator.compile('#include "mma.cuh"\n__global__ void k(int *out) {\n  nothing_like_it(out);\n}', name="k.cu",
                          options=[f"-I{headers.own()['mma.cuh'].parent}"])  # fmt: skip
