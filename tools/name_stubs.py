#!/usr/bin/env python3
"""Writes what type checkers read of the lazy packages, __init__.pyi, from what their modules say they give, and of
GPUArray's methods (method_stubs.py).

python tools/name_stubs.py          after a public name or a method of arrays was added, moved or taken away
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import method_stubs  # noqa: E402

import pygpukit as gp  # noqa: E402
from pygpukit.ops import audio, names, nn  # noqa: E402

HEADER = "# Written by tools/name_stubs.py from what the modules say they give.\n"


def stub(homes: dict[str, str], members: str, modules: tuple[str, ...] = ()) -> str:
    """The stub of a package with these names, by their modules, and these submodules of pygpukit. members: what tests
    and tools read besides."""
    lines = [f"from pygpukit import {name} as {name}" for name in sorted(modules)]
    # The order that the linter wants: modules by name; constants, then classes, then the rest.
    for name, home in sorted(homes.items(), key=lambda one: (one[1], _kind(one[0]), _natural(one[0]))):
        lines.append(f"from {home} import {name} as {name}")
    return HEADER + "\n".join(lines) + f"\n\n__all__: list[str]\n{members}"


def stubs() -> dict[Path, str]:
    """Every stub, by its path."""
    package = Path(gp.__file__).parent
    own = {**gp._HOME_OF, **names.public(), "array": "pygpukit.array.factory", "jit": "pygpukit.jit"}
    modules = tuple(name for name in gp._SUBMODULES if name not in own)
    table, homes = "_HOME_OF: dict[str, str]\n", "\ndef homes() -> dict[str, str]: ...\n"
    return {
        package / "__init__.pyi": stub(own, f"{table}_HOMES: dict[str, str]\n_SUBMODULES: tuple[str, ...]\n", modules),
        package / "ops" / "__init__.pyi": stub(gp.ops.homes(), homes),
        package / "ops" / "audio" / "__init__.pyi": stub(audio.homes(), homes),
        package / "ops" / "nn" / "__init__.pyi": stub(nn.homes(), homes),
        package / "asr" / "__init__.pyi": stub(gp.asr._HOME_OF, table),
        package / "llm" / "__init__.pyi": stub(gp.llm._HOME_OF, table),
        package / "pipeline" / "__init__.pyi": stub(gp.pipeline._HOME_OF, table),
        package / "tts" / "__init__.pyi": stub(gp.tts._HOME_OF, table),
        package / "array" / "methods.pyi": method_stubs.text(),
    }


def _kind(name: str) -> int:
    return 0 if name.isupper() else 1 if name[0].isupper() else 2


def _natural(name: str) -> list[str | int]:
    """float8 before float16, whatever the case."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name.lower())]


def main() -> int:
    """Writes all."""
    for path, text in stubs().items():
        path.write_text(text)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
