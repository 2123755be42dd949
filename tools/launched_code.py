"""Compares what the rows of the suites matmul, attention and conv launch on an H200 with another version. Needs no GPU.

    python tools/launched_code.py RECORD.json [--beside OTHER.json]

Each row is planned on a pretended H200, with tile kernels where NVRTC and tileiras are installed: its kernels, the
grids, the clusters and the values of the arguments, and digests of the machine code of SM 9.0. With PYTHONPATH at the
package of another commit the same script records that one. --beside: prints the rows that differ from the record of
another version, and in what. A row that does not differ runs the same instructions, so it needs no measurement.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ARCH = "sm_90a"
H200: dict[str, Any] = {
    "name": "NVIDIA H200",
    "clock_khz": 1_980_000,
    "memory_clock_khz": 3_201_000,
    "memory_bus_bits": 6144,
}
_PROGBITS = 1  # sections that hold bytes
Row = dict[str, Any]


def code_digests(cubin: bytes) -> list[list[Any]]:
    """The kind, the digest and the bytes of each section of code and of constants in a cubin, without their names.

    Raises ValueError for what is no 64-bit ELF file.
    """
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError(f"machine code begins with {cubin[:5]!r}, not with the mark of a 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    digests = []
    for name, kind, _, _, offset, length in headers:
        start = headers[names][4] + name
        title = cubin[start : cubin.index(b"\0", start)].decode()
        if kind == _PROGBITS and title.startswith((".text.", ".nv.constant")):
            digest = hashlib.sha256(cubin[offset : offset + length]).hexdigest()
            digests.append([title.split(".")[1], digest, length])
    return sorted(digests)


def calls() -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """The name of each row, and a function that makes its operands and returns its call."""
    import pygpukit as gp
    from pygpukit.benchmark import attention, conv, matmul
    from pygpukit.benchmark.conv_cases import KINDS, LAYOUTS, cases, title

    for kind, shape in matmul._asked(False):
        yield f"matmul {kind} {shape}", lambda kind=kind, shape=shape: matmul._product(kind, shape)[0]  # type: ignore[misc]

    def attended(shape: str, rows: int | None, function: Callable[..., Any]) -> Callable[[], Any]:
        batch, heads, shared, positions, dim = attention._numbers(shape)
        sizes = (heads, rows or positions), (shared, positions), (shared, positions)
        q, k, v = (gp.empty((batch, *size, dim), dtype=attention.DTYPE) for size in sizes)
        return lambda: function(q, k, v)

    for shape in attention.PROMPTS:
        function = gp.sdpa_causal if shape.endswith("causal") else gp.sdpa
        yield f"prompt {shape}", lambda shape=shape, function=function: attended(shape, None, function)  # type: ignore[misc]
    for shape in attention.DECODES:
        yield f"decode {shape}", lambda shape=shape: attended(shape, 1, gp.sdpa_causal)  # type: ignore[misc]

    def convolved(case: Any, kind: str, layout: str) -> Callable[[], Any]:
        from pygpukit.ops.nn.conv.tile import packed

        tf32, last = True if kind == "tf32" else None, layout == "last"
        x, w = (gp.empty(shape, dtype="float32" if tf32 else kind) for shape in (case.x, case.w))
        if last:
            x = conv._moved(x, last).clone()
        if not case.transposed or case.setting("groups") == 1:
            w = packed(w, transposed=case.transposed, tf32=tf32)
        function = getattr(gp, f"conv{'_transpose' * case.transposed}{len(case.x) - 2}d")
        return lambda: function(x, w, **case.settings, channels_last=last, tf32=tf32)

    for case in cases("full"):
        for kind in KINDS:
            for layout in LAYOUTS:
                name = f"conv {title(case, layout)} {kind}"
                yield name, lambda case=case, kind=kind, layout=layout: convolved(case, kind, layout)  # type: ignore[misc]


def record() -> dict[str, Row]:
    """Every row: its launches, and for each of its kernels the attributes and the code."""
    from pygpukit.core import pretended
    from pygpukit.kernels import builder, registry
    from pygpukit.kernels.planning import planning

    launches: list[list[str]] = []

    class Listed(pretended.Nothing):
        def bind(self, *arguments: Any) -> Listed:
            launches.append([_text(one) for one in arguments])
            return self

        def __call__(self, *arguments: Any) -> None:
            launches.append([_text(one) for one in arguments])

    pretended.Nothing = Listed  # type: ignore[misc]
    rows, codes = {}, {}
    for name, operands in calls():
        with planning(ARCH, **H200) as asked, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the H100's times serve the H200
            call = operands()
            launches.clear()
            call()
            specs = list(asked)
        for spec in specs:
            if spec not in codes:
                unit = registry.Unit(spec, (spec.expression,))
                codes[spec] = code_digests(builder.compile_unit(unit, ARCH).image)
        rows[name] = {
            "launches": list(launches),
            "kernels": [
                {
                    "launched": [spec.shared_bytes, list(spec.cluster), spec.overlapping, spec.cooperative],
                    "code": codes[spec],
                }
                for spec in specs
            ],
        }
    return rows


def _text(argument: Any) -> str:
    if isinstance(argument, bytes):
        return argument.hex()
    return str(argument) if isinstance(argument, int | float | str | tuple | None) else type(argument).__name__


def differences(ours: dict[str, Row], theirs: dict[str, Row]) -> dict[str, str]:
    """In what each row differs; a row that is the same has no entry."""
    different = dict.fromkeys(ours.keys() ^ theirs.keys(), "one version alone has this row")
    for name in ours.keys() & theirs.keys():
        one, other = ours[name], theirs[name]
        where = []
        if one["launches"] != other["launches"]:
            where.append("launches")
        if [k["launched"] for k in one["kernels"]] != [k["launched"] for k in other["kernels"]]:
            where.append("attributes of kernels")
        if [k["code"] for k in one["kernels"]] != [k["code"] for k in other["kernels"]]:
            where.append(f"machine code: {_bytes(other)} bytes there, {_bytes(one)} here")
        if where:
            different[name] = ", ".join(where)
    return different


def _bytes(row: Row) -> int:
    return sum(length for kernel in row["kernels"] for kind, _, length in kernel["code"] if kind == "text")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Compare what benchmark rows launch with another version.")
    parser.add_argument("record", type=Path, help="written; with --beside read, where it exists")
    parser.add_argument("--beside", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.beside is None or not arguments.record.exists():
        arguments.record.write_text(json.dumps(record()) + "\n")
    ours = json.loads(arguments.record.read_text())
    if arguments.beside is None:
        print(f"{len(ours)} rows recorded")
        return 0
    different = differences(ours, json.loads(arguments.beside.read_text()))
    for name, where in sorted(different.items()):
        print(f"{name}: {where}")
    same = len(ours.keys() - different.keys())
    print(f"{same} of {len(ours)} rows launch the same machine code with the same arguments")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
