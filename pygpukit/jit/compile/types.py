"""The types of a kernel's parameters as its compiler knows them: typedefs of other files, aliases, template arguments.

The simulator's images tell them in a section of their own (pk_sim_types.h). NVRTC tells them by the symbol of a
template that is instantiated for the kernel's type; that takes a compile, and is asked only where the source leaves a
doubt.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from pygpukit.core.errors import NvrtcError
from pygpukit.jit.source.mangled import function_types
from pygpukit.jit.source.parameters import Parameter, item_bytes
from pygpukit.jit.source.signature import KernelSignature

if TYPE_CHECKING:
    from pygpukit.jit.launch.unit import Unit

_HEADERS, _SIZES = 0x28, 0x3A  # in an ELF file's head: where its section headers are, and their size and number
_PROBE = '\n#line 1 "<types>"\ntemplate <class PkFunction> __global__ void __pk_types() {}\n'
_COMPLEX = {"complex64": "float32x2", "complex128": "float64x2"}


def resolved(unit: Unit, signature: KernelSignature) -> KernelSignature:
    """The signature with what the compiler knows of its parameters. Compiles the unit."""
    if unit.image.kind == "sim":
        types = _types(unit.image.image).get(signature.expression or signature.name)
    elif not signature.tile and any(map(_in_doubt, signature.parameters)):
        types = _asked(unit, signature)
    else:
        return signature
    if types is None or len(types) != len(signature.parameters):
        return signature
    return replace(signature, parameters=tuple(map(_settled, signature.parameters, types)))


def _in_doubt(parameter: Parameter) -> bool:
    """True where the source alone may not tell what the parameter takes."""
    if parameter.kind == "pointer":
        return parameter.dtype == "" and "void" not in parameter.type and "(" not in parameter.type
    return parameter.kind == "struct" and parameter.nbytes == 0


def _settled(parameter: Parameter, demangled: str) -> Parameter:
    """The parameter by the compiler's word: "*float32", "float32x4", or "" and "*" for types that no array has."""
    pointer, element = demangled.startswith("*"), demangled.lstrip("*")
    dtype, _, lanes = element.partition("x")
    pair = lanes == "2" and dtype in ("float32", "float64")
    if parameter.dtype in _COMPLEX and element in ("", _COMPLEX[parameter.dtype]):
        return parameter
    if pointer:
        return replace(parameter, kind="pointer", dtype="" if pair else dtype, nbytes=8)
    if parameter.kind in ("texture", "surface") and dtype == parameter.dtype:
        return parameter
    if dtype and not lanes:
        return replace(parameter, kind="scalar", dtype=dtype, nbytes=item_bytes(dtype))
    return parameter if parameter.kind == "struct" else replace(parameter, kind="struct", dtype="", nbytes=0)


def _types(image: bytes) -> dict[str, tuple[str, ...]]:
    """By the name that a kernel is asked for."""
    by_symbol = {}
    for record in _section(image, b"pk_sim_types").split(b"\1")[1:]:
        name, _, rest = record.partition(b"\0")
        types = [rest[at : at + 24].partition(b"\0")[0].decode() for at in range(0, len(rest) - 24, 24)]
        by_symbol[name.decode()] = tuple(types)
    return by_symbol


def _section(image: bytes, name: bytes) -> bytes:
    """A section of an ELF file; empty when there is none."""
    try:
        (at,) = struct.unpack_from("<Q", image, _HEADERS)
        size, count, names = struct.unpack_from("<HHH", image, _SIZES)
        headers = [struct.unpack_from("<IIQQQQ", image, at + number * size) for number in range(count)]
        text = headers[names][4]
        for start, _, _, _, offset, nbytes in headers:
            if image[text + start : text + start + len(name) + 1] == name + b"\0":
                return image[offset : offset + nbytes]
    except (struct.error, IndexError):
        pass
    return b""


def _asked(unit: Unit, signature: KernelSignature) -> tuple[str, ...] | None:
    from pygpukit.jit.compile.compiler import compile_source

    expression = f"__pk_types<decltype(&{signature.expression or signature.name})>"
    try:
        image = compile_source(unit.source + _PROBE, **{**unit.arguments(), "name_expressions": [expression]})
    except NvrtcError:  # the kernel itself compiles: nothing is known, then
        return None
    return function_types(image.symbol(expression))
