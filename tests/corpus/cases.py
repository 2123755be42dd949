"""Every case of the kernel suite."""

from __future__ import annotations

from corpus import (
    elementwise,
    fragments,
    images,
    libraries,
    linear,
    neural,
    ptx,
    reductions,
    sorting,
    synchronising,
    textures,
)
from corpus.case import Case

_MODULES = (
    *(elementwise, images, reductions, sorting, linear, fragments),
    *(neural, synchronising, libraries, ptx, textures),
)
CASES: list[Case] = [case for module in _MODULES for case in module.CASES]
