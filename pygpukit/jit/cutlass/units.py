"""Units that include CUTLASS or CuTe: what they are compiled with, found by the #include; a user needs no option."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from pygpukit import _core
from pygpukit.jit.compile.headers import HeaderSet
from pygpukit.jit.cutlass import place

_PRODUCERS = ("mended.py", "simulated.py")


def included(names: Iterable[str], folders: Sequence[str | Path]) -> bool:
    """True where one of these #includes is of CUTLASS, and no folder of the user's has it."""
    asked = [name for name in names if place.is_header(name)]
    return any(not any(Path(folder, name).is_file() for folder in folders) for name in asked)


def header_set() -> HeaderSet | None:
    """The headers as they were fetched; None where they have not been. The version tells how they are mended, too."""
    include = place.include()
    return None if include is None else HeaderSet("cutlass", f"{place.VERSION} {_producers()}", include)


def refusal(source: str, name: str) -> str:
    """A compiler's message at the first #include of CUTLASS, which is not on this machine."""
    match = re.search(r"^[ \t]*#[ \t]*include[ \t]*[\"<](?:cute|cutlass)/", source, re.MULTILINE)
    line = source.count("\n", 0, match.start()) + 1 if match else 1
    return f"{name}:{line}: error: {place.missing()}"


def nvrtc_flags(arch: str, flags: Sequence[str], defines: Mapping[str, str]) -> list[str]:
    """Options without which NVRTC does not compile these headers, or not well: their functions have no words that say
    where they run; assert() in them keeps the compiler from overlapping products."""
    release = [] if "NDEBUG" in defines or "-UNDEBUG" in flags else ["-DNDEBUG"]
    dependent = ["-DCUTLASS_ENABLE_GDC_FOR_SM90=1"] if arch.startswith("sm_90") else []  # programmatic launches
    return ["-default-device", "-w", *release, *dependent]


def nvrtc_texts(include: Path) -> dict[str, str]:
    """Headers by name that take the place of files."""
    from pygpukit.jit.compile import nvrtc
    from pygpukit.jit.cutlass import mended
    from pygpukit.jit.toolchain import BUNDLED_HEADERS_SINCE

    bundled = nvrtc.open_nvrtc()[1] >= BUNDLED_HEADERS_SINCE
    return {**mended.texts(include), **(mended.stubs() if bundled else {})}


@cache
def _producers() -> str:
    folder = Path(place.__file__).parent
    return _core.KernelCache.digest([(folder / file).read_bytes() for file in _PRODUCERS])[:8].hex()
