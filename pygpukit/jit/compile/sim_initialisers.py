"""Images that would run code of their own as soon as they are loaded: nvcc refuses their sources, and so do we.

A variable of device memory that needs a constructor's run would have it run on the host, outside any launch.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path

from pygpukit.jit.source.variables import Variable

_HEADERS, _SIZES = 0x28, 0x3A  # in an ELF file's head: where its section headers are, and their size and number
_ARRAYS = (14, 15, 16)  # of functions that run at loading or unloading
_RELOCATIONS, _CHOSEN = 4, (37, 1032)  # an address that a function chooses at loading, by x86-64 and AArch64
_RUN = re.compile(r"^(?:_GLOBAL__sub_I_|__cxx_global_var_init|_Z\d*__?static_init|_?GLOBAL__)\S*:\n(?P<body>.*?)"
                  r"^\s*\.cfi_endproc", re.MULTILINE | re.DOTALL)  # fmt: skip
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"', re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)", re.MULTILINE)
_REFUSED = "dynamic initialization is not supported for a variable of device memory"


def initialisers(image: bytes) -> int:
    """The number of functions that run when the image is loaded, or unloaded."""
    (at,) = struct.unpack_from("<Q", image, _HEADERS)
    size, count = struct.unpack_from("<HH", image, _SIZES)
    total = 0
    for number in range(count):
        _, kind, _, _, offset, nbytes = struct.unpack_from("<IIQQQQ", image, at + number * size)
        total += nbytes // 8 if kind in _ARRAYS else 0
        if kind == _RELOCATIONS:
            entries = range(offset, offset + nbytes - 23, 24)
            total += sum(struct.unpack_from("<I", image, entry + 8)[0] in _CHOSEN for entry in entries)
    return total


def complaint(compiled: Path, name: str, variables: Sequence[Variable]) -> str:
    """The compiler's message on a source whose image has initialisers. compiled: the assembly, which
    tells the lines that its parts come from."""
    assembly = compiled.read_text(errors="replace") if compiled.is_file() else ""
    files = dict(_FILE.findall(assembly))
    lines = [
        int(line)
        for run in _RUN.finditer(assembly)
        for file, line in _LOC.findall(run["body"])
        if files.get(file, "").rpartition("/")[2] == name.rpartition("/")[2]
    ]
    by_line = {one.line: one for one in variables}
    for line in lines:
        if line in by_line:
            return f"{name}:{line}: error: {_REFUSED}: {by_line[line].name!r} needs a run of its constructor"
    where = lines[0] if lines else 1
    return f"{name}:{where}: error: {_REFUSED}; give it a constant, or set it in a kernel"
