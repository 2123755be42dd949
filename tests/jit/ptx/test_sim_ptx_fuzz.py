"""Inline PTX on the simulated device: damaged statements are read to their end or refused with a place, and cost what
their length allows."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from pygpukit.jit.compile.sim_source import blank
from pygpukit.jit.ptx.fault import PtxFault
from pygpukit.jit.ptx.parser import MAX_REGISTERS, parse
from pygpukit.jit.ptx.translate import translate

STATEMENTS = (
    'asm volatile("{ .reg .pred p; .reg .b32 %%r<4>; setp.ne.and.s32 p|_, %1, 3, !p; @!p bra L; L: }"'
    ' : "+r"(x) : "n"(4));',
    'asm("mov.b64 {%0, _}, %2; fma.rn.f32 %1, 0f3F800000, -1.5e3, %1;"'
    ' : "=r"(a[i]), "+f"((x > ")"[0]) ? y : z) : "l"(p));',
    'asm("ld.global.nc.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4+16];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(q));',
    'asm volatile(R"(lop3.b32 %[x], %[x], 0x1F, 077, 0b10;)" /* here */ : [x] "+r"(y) :: "memory", "cc");',
    'asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1; prmt.b32 t, %%tid.x, 1, 2;" "\\n\\t// \\x41\\101"'
    ' : "=h"(h) : "f"(f));',
)
PIECES = (
    "%0", "%9", "%%", "%[x]", "{", "}", "[", "]", "(", ")", '"', "'", ":", "::", ";", ",", "@", "@!p", "|", "!", "-",
    "+", ".reg .b32 a<9>;", ".v4", "0x", "0f3F8", "1e999", "09", "9" * 90, "\\", "\n", "//", "/*", "*/", 'R"(', "asm(",
    "_", ".f32", "goto", chr(0xE001), "\0", chr(0xE9), '"C"("u32")', "#",
)  # fmt: skip


def translated(source: str) -> str:
    text, _ = translate(source, blank(source), lambda at: True, lambda start, end: "")
    return text


def test_every_statement_of_the_list_is_taken_but_for_names_that_are_nowhere() -> None:
    taken = 0
    for statement in STATEMENTS:
        try:
            taken += "asm" not in translated(statement)
        except PtxFault as fault:
            assert "declared nowhere" in fault.text
    assert taken == len(STATEMENTS) - 1


@pytest.mark.parametrize("seed", range(4))
def test_damaged_statements_are_refused_at_a_place(seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for _ in range(700):
        text = rng.choice(STATEMENTS)
        for _ in range(rng.randint(1, 6)):
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.choice((0, 0, 1, 1, 3, 12)))
            text = text[:start] + rng.choice((*PIECES, "")) + text[end:]
        source = f"void f() {{\n  {text}\n}}"
        try:
            translated(source)
        except PtxFault as fault:
            refused += 1
            assert 0 <= fault.offset <= len(source) and fault.text
    assert refused > 100


@pytest.mark.parametrize(
    "text",
    [
        "{" * 5000, "[" * 5000, "mov.b64 x, " + "{" * 5000, "add.u32 %0, " + "-" * 5000 + "1;",
        "add.u32 %0, " + "!" * 5000 + "p;",
        ".reg .b32 " + ", ".join(f"a{i}<{MAX_REGISTERS}>" for i in range(99)) + ";",
        ".reg .b32 a<99999999999999999999>;", "add.u32 %0, " + "1" * 5000 + ";", "/*" * 5000, "@" * 5000,
        ".pragma" * 999,
        "add.u32 %0, 1" + ", 1" * 5000 + ";",
    ],
)  # fmt: skip
def test_long_texts_cost_little(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(PtxFault):
            translated(f'asm("{text}" : "+r"(x));')
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_many_operands_are_refused() -> None:
    operands = ", ".join('"r"(x)' for _ in range(600))
    with pytest.raises(PtxFault, match="more than 512 operands"):
        translated(f'asm("" :: {operands});')


def test_places_are_those_of_the_text() -> None:
    for text, at in (("add.u32 a, b; }", 14), ("{ mov", 5), ("mov.u32 a, ;;", 11), (".reg .q;", 7)):
        with pytest.raises(PtxFault) as caught:
            parse(text)
        assert caught.value.offset == at, (text, caught.value.text)
