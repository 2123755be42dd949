"""Counting floating-point operations: an addition to a counter before every such instruction of a kernel's assembly."""

from __future__ import annotations

import platform
import re

# Whether with_counters() knows this machine's instructions.
COUNTS_FLOPS = platform.machine() in ("x86_64", "AMD64")
# One instruction an operation, and nothing below the stack pointer while flags are saved there.
COUNTING_FLAGS = ("-fno-tree-vectorize", *(("-mno-red-zone",) if COUNTS_FLOPS else ()))

_INSTRUCTION = re.compile(
    r"^\tv?(?P<fused>fn?m(?:add|sub)(?:132|213|231))?(?P<plain>add|sub|mul|div|sqrt)?(?P<type>[sp][sd])\t(?P<operands>.*)$",
    re.MULTILINE,
)


def with_counters(assembly: str) -> str:
    """The assembly text (AT&T syntax) with counters: additions, subtractions, multiplications, divisions and square
    roots count 1, fused multiplications and additions 2, packed instructions as many times as they have elements."""
    return _INSTRUCTION.sub(_counted, assembly) if COUNTS_FLOPS else assembly


def _counted(match: re.Match[str]) -> str:
    if not match["fused"] and not match["plain"]:
        return match.group()
    register = 64 if "%zmm" in match["operands"] else 32 if "%ymm" in match["operands"] else 16
    element = 4 if match["type"][1] == "s" else 8
    elements = 1 if match["type"][0] == "s" else register // element
    count = elements * (2 if match["fused"] else 1)
    return f"\tpushfq\n\taddq\t${count}, pk_sim_flops(%rip)\n\tpopfq\n{match.group()}"
