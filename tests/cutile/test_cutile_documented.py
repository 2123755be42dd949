"""Examples of cuTile's own documentation, read from the installed library, print in the interpreter what it says."""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pygpukit.cutile import Kernel, cutile_available

if not cutile_available():
    pytest.skip("needs the extra cutile", allow_module_level=True)

import cuda.tile as cutile

# Blocks: the code with its options, and the output that follows it.
EXAMPLE = re.compile(r"^( *)\.\. testcode::\n(.*?)^\1\.\. testoutput::\n((?:\1    [^\n]*\n?|\s*\n)*)", re.M | re.S)
OPTION = re.compile(r"^\s*:(\w+):.*$", re.M)
# What the interpreter refuses by name (docs/cutile.md), and what only a compiler can know.
ELSEWHERE = ("mma_scaled", "foreign", "ensure_constant", "StaticAssertionError", "static_exception")


def documented() -> Iterator[tuple[str, str, str]]:
    """(name, code, output) of every example."""
    places = {name: getattr(cutile, name) for name in cutile.__all__}
    raw = vars(inspect.getmodule(cutile.Array))["RawArrayMemory"]
    for kind in (cutile.Array, cutile.Tile, cutile.TiledView, raw):
        places |= {f"{kind.__name__}.{name}": value for name, value in vars(kind).items()}
    for name, value in places.items():
        text = inspect.getdoc(value) or ""
        for at, match in enumerate(EXAMPLE.finditer(text)):
            body, output = (textwrap.dedent(OPTION.sub("", match[part])).strip("\n") for part in (2, 3))
            setup = "setup_only" in match[2]
            if not any(word in body + output + name for word in ELSEWHERE):
                yield f"{name}-{at}", body if setup else wrapped(body), output.strip()


def wrapped(body: str) -> str:
    return f"@ct.kernel\ndef kernel():\n{textwrap.indent(body, '    ')}\n\nct.launch(stream, (1,), kernel, ())\n"


def torch() -> types.SimpleNamespace:
    """As much of PyTorch as the examples name, over NumPy."""

    def array(make: Any) -> Any:
        return lambda *shape, device=None, dtype=None: make(
            shape if len(shape) > 1 else shape[0], dtype=dtype or np.float32
        )

    def arange(*limits: Any, device: Any = None, dtype: Any = np.int64) -> Any:
        return np.arange(*limits, dtype=dtype)

    names = {name: getattr(np, name) for name in ("int32", "int64", "float32", "float16", "uint32")}

    def tensor(values: Any, device: Any = None, dtype: Any = None) -> Any:
        return np.array(values, dtype)

    return types.SimpleNamespace(
        tensor=tensor, arange=arange, zeros=array(np.zeros), ones=array(np.ones), empty=array(np.empty), **names
    )


@pytest.mark.parametrize(("code", "output"), [pytest.param(*rest, id=name) for name, *rest in documented()])
def test_an_example_prints_what_is_documented(code: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    def launch(stream: Any, grid: Any, kernel: Any, arguments: tuple[Any, ...]) -> None:
        Kernel(kernel).check(grid, *arguments)

    code = code.replace("import cuda.tile as ct", "").replace("ct.launch(", "launch(")
    file = f"<documented {hash(code)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    exec(compile(code, file, "exec"), {"ct": cutile, "torch": torch(), "np": np, "stream": None, "launch": launch})
    assert capsys.readouterr().out.split() == output.split()


def test_the_examples_are_seen() -> None:
    assert len({name for name, *_ in documented()}) > 100
