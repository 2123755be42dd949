"""How findings are shown: place, who, the source's own lines with a mark, never more than fifteen lines."""

from __future__ import annotations

import pytest

from pygpukit.core.errors import Finding
from pygpukit.jit.inspect.findings import render

SOURCE = """
__global__ void turn(const int* in, int* out)
{
    __shared__ int part[64];
    part[threadIdx.x] = in[threadIdx.x];
    // the barrier should be here


    out[threadIdx.x] = part[63 - threadIdx.x];  // part of it
}
"""


def finding(line: int = 9, message: str = "written at cell:5", array: str = "part", index: int | None = 63) -> Finding:
    return Finding("race", message, "turn", (1, 0, 0), (5, 2, 0), line, array, index)


def test_the_place_comes_first_then_who_then_the_lines() -> None:
    assert render([finding()], "cell", SOURCE) == [
        "cell:9: race: written at cell:5",
        "  kernel turn, block (1,0,0), thread (5,2,0), part[63]",
        "       4 |     __shared__ int part[64];",
        "   >   5 |     part[threadIdx.x] = in[threadIdx.x];",
        "         |     ^~~~",
        "       6 |     // the barrier should be here",
        "      ...",
        "       8 |",
        "  ->   9 |     out[threadIdx.x] = part[63 - threadIdx.x];  // part of it",
        "         |                        ^~~~",
        "      10 | }",
    ]


def test_carets_stand_under_whole_names_only() -> None:
    source = "\tparts[in] = in + pin;  // in"
    lines = render([finding(line=1, message="bad", array="in", index=None)], "cell", source)
    assert lines[2:] == ["  ->   1 |     parts[in] = in + pin;  // in", "         |           ^~    ^~"]
    assert render([finding(line=1, message="bad", array="", index=None)], "cell", source)[1:] == [
        "  kernel turn, block (1,0,0), thread (5,2,0)",
        "  ->   1 |     parts[in] = in + pin;  // in",
    ]


def test_without_the_source_the_facts_remain() -> None:
    facts = "  kernel turn, block (1,0,0), thread (5,2,0), part[63]"
    assert render([finding(message="bad")], "", "") == ["line 9: race: bad", facts]
    assert render([finding(line=0, message="bad")], "cell", SOURCE) == ["race: bad", facts]
    assert render([finding(line=99, message="bad")], "cell", SOURCE) == ["cell:99: race: bad", facts]


@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("limit", [4, 11, 12, 15, 100])
def test_there_are_never_more_lines_than_allowed(count: int, limit: int) -> None:
    lines = render([finding()] * count, "cell", SOURCE, limit)
    assert len(lines) <= limit
    whole = sum(line.startswith("cell:9: race") for line in lines)
    left = count - whole
    assert whole >= 1
    assert (f"... and {left} more finding{'s' * (left > 1)}: see .findings" == lines[-1]) == (left > 0)


def test_nothing_found_is_nothing_shown() -> None:
    assert render([], "cell", SOURCE) == []


def test_lines_of_other_files_are_shown_from_there() -> None:
    source = '#line 1 "ahead.cuh"\n\nfloat ahead(float* from) { return from[1]; }\n#line 1 "cell"\n\nint x;\n'
    one = Finding("out of bounds", "reads from[1], at ahead.cuh:2", "k", (0, 0, 0), (0, 0, 0), 2, "from", 1)
    assert render([one], "cell", source) == [
        "ahead.cuh:2: out of bounds: reads from[1]",
        "  kernel k, block (0,0,0), thread (0,0,0), from[1]",
        "       1 |",
        "  ->   2 | float ahead(float* from) { return from[1]; }",
        "         |                                   ^~~~",
    ]
