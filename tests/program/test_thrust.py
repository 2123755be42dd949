"""Thrust and CUB in programs: what is wrong is told at its line before anything runs, and sides are told apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pygpukit.core.errors import CompileError
from pygpukit.program.build import Source, build
from pygpukit.program.flat import flat
from pygpukit.program.library_headers import FOLDER, names
from pygpukit.program.refusals import refusal
from pygpukit.program.unit import Unit

HEAD = "#include <thrust/device_vector.h>\n#include <thrust/sort.h>\n#line 1\n"


def error(text: str, tmp_path: Path) -> str:
    with pytest.raises(CompileError) as raised:
        build([Source(HEAD + text, "p.cu", tmp_path)])
    return str(raised.value)


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (
            "struct Twice {\n  int operator()(int x) const { return 2 * x; }\n};\nint main() {\n"
            "  thrust::device_vector<int> v(4);\n  thrust::transform(v.begin(), v.end(), v.begin(), Twice());\n}\n",
            "p.cu:2",
            "write __host__ __device__ before its operator()",
        ),
        (
            "struct Point {\n  float x, y;\n};\nint main() {\n  thrust::device_vector<Point> v(4);\n"
            "  thrust::sort(v.begin(), v.end());\n}\n",
            "p.cu:1",
            "operator<",
        ),
        (
            "int main() {\n  thrust::device_vector<int> v(4);\n  thrust::shuffle(v.begin(), v.end());\n}\n",
            "p.cu:3",
            "shuffle",
        ),
        ("#include <thrust/async/sort.h>\nint main() { }\n", "p.cu:1", "thrust/async/sort.h"),
    ],
    ids=["functor of the host", "no comparison", "no such algorithm", "no such header"],
)
def test_wrong_use_is_told_at_its_line(text: str, place: str, words: str, tmp_path: Path) -> None:
    message = error(text, tmp_path)
    assert f"{place}:" in message and words in message


@pytest.mark.parametrize(
    ("kernel", "line", "words"),
    [
        ("each<transform_work<int*, main::{lambda(int)#1}> >", 4, "a lambda of the host"),
        ("each<fold_work<int*, long, run(int, float*)::Twice> >", 7, "Twice is a class inside the function run()"),
    ],
)
def test_what_no_kernel_can_name(kernel: str, line: int, words: str) -> None:
    text = (
        "namespace n { struct Good { }; }\nint main() {\n  int a[3] = {};\n  apply([=](int x) { return a[x]; });\n}\n"
        "void run(int, float *) {\n  struct Twice { };\n}\n"
    )
    told = refusal(Unit(text, "p.cu"), kernel)
    assert told is not None and f"p.cu:{line}:" in str(told) and words in str(told)
    assert refusal(Unit(text, "p.cu"), "each<n::Good, unsigned long, (Mode)1>") is None


def test_every_name_has_its_file_and_every_file_a_name() -> None:
    assert all(path.is_file() for path in names().values())
    included = {
        file
        for path in set(names().values())
        for file in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE)
    }
    known = {path.name for path in names().values()} | {Path(file).name for file in included}
    assert {path.name for path in FOLDER.glob("*/*.h")} == known


def test_a_users_own_header_of_the_name_comes_first(tmp_path: Path) -> None:
    (tmp_path / "thrust").mkdir()
    (tmp_path / "thrust" / "sort.h").write_text("int own;\n")
    text = "#include <thrust/sort.h>\n"
    assert "int own;" in flat(text, "p.cu", tmp_path, [tmp_path]) and "stable_sort" in flat(text, "p.cu", tmp_path, [])
