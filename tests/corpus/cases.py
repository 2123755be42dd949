"""Every case of the kernel suite."""

from __future__ import annotations

from corpus import elementwise, fragments, images, libraries, linear, neural, ptx, reductions, sorting, synchronising
from corpus.case import Case

CASES: list[Case] = [
    case
    for module in (elementwise, images, reductions, sorting, linear, fragments, neural, synchronising, libraries, ptx)
    for case in module.CASES
]
