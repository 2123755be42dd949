"""A CUBIN read for what it tells of its kernels: registers, memory, symbols. Any bytes may come in."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_MACHINE_CUDA = 190
_SYMBOL_TABLE, _NO_BITS = 2, 8
_OBJECT, _FUNCTION = 1, 2
_ENTRY = 0x10  # in a symbol's "other" byte: a kernel
_RESERVED_SHARED_BYTES = 1024  # at the start of a kernel's shared memory from SM 9.0 on; not the kernel's own
_VALUE_BY_SIZE = 4  # format of an attribute whose value follows, with its size in the header
_FRAME_SIZE, _REGISTER_COUNT = 0x11, 0x2F


@dataclass(frozen=True)
class Resources:
    """The resources that one kernel uses. registers and local_bytes are a thread's, shared_bytes (static) a block's."""

    registers: int
    shared_bytes: int
    local_bytes: int


@dataclass(frozen=True)
class Cubin:
    """kernels: by symbol. variables: bytes of each __device__ or __constant__ variable, by symbol."""

    kernels: Mapping[str, Resources]
    variables: Mapping[str, int]


class _Section(NamedTuple):
    name: str
    kind: int
    contents: bytes
    nbytes: int
    link: int


class _Symbol(NamedTuple):
    name: str
    kind: int
    other: int
    section: int
    nbytes: int


def read_cubin(image: bytes) -> Cubin:
    """Kernels and variables of a CUBIN. Raises ValueError for bytes that are none, or that are damaged."""
    try:
        sections = _sections(image)
        symbols = _symbols(sections)
        registers, frames = _attributes(sections, _REGISTER_COUNT), _attributes(sections, _FRAME_SIZE)
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"the CUBIN is damaged: {error}") from None
    reserved = _RESERVED_SHARED_BYTES if any(one.name.startswith(".nv.shared.reserved") for one in sections) else 0
    shared = {one.name: max(one.nbytes - reserved, 0) for one in sections}
    kernels = {
        one.name: Resources(registers.get(at, 0), shared.get(f".nv.shared.{one.name}", 0), frames.get(at, 0))
        for at, one in enumerate(symbols)
        if one.kind == _FUNCTION and one.other & _ENTRY
    }
    objects = (one for one in symbols if one.kind == _OBJECT and one.section != 0)
    variables = {one.name: one.nbytes for one in objects if not one.name.startswith(".")}
    return Cubin(kernels, variables)


def _sections(image: bytes) -> list[_Section]:
    if image[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", image, 18)[0] != _MACHINE_CUDA:
        raise ValueError("not a CUBIN: no 64-bit ELF file for CUDA")
    (table,) = struct.unpack_from("<Q", image, 40)
    entry_bytes, count, names = struct.unpack_from("<HHH", image, 58)
    headers = []
    for index in range(count):
        name, kind, _, _, offset, nbytes, link = struct.unpack_from("<IIQQQQI", image, table + index * entry_bytes)
        contents = b"" if kind == _NO_BITS else image[offset : offset + nbytes]
        if kind != _NO_BITS and len(contents) != nbytes:
            raise ValueError(f"the CUBIN is damaged: section {index} lies outside the file")
        headers.append((name, _Section("", kind, contents, nbytes, link)))
    texts = headers[names][1].contents
    return [section._replace(name=_text(texts, name)) for name, section in headers]


def _symbols(sections: list[_Section]) -> list[_Symbol]:
    symbols: list[_Symbol] = []
    for section in sections:
        if section.kind != _SYMBOL_TABLE:
            continue
        texts = sections[section.link].contents
        for name, info, other, index, _, nbytes in struct.iter_unpack("<IBBHQQ", section.contents):
            symbols.append(_Symbol(_text(texts, name), info & 15, other, index, nbytes))
    return symbols


def _attributes(sections: list[_Section], number: int) -> dict[int, int]:
    """Values of one attribute in .nv.info, by the index of the symbol that it is about."""
    contents = next((one.contents for one in sections if one.name == ".nv.info"), b"")
    return {symbol: value for kind, symbol, value in _records(contents) if kind == number}


def _records(contents: bytes) -> Iterator[tuple[int, int, int]]:
    at = 0
    while at < len(contents):
        form, kind, nbytes = struct.unpack_from("<BBH", contents, at)
        at += 4
        if form != _VALUE_BY_SIZE:
            continue
        if nbytes == 8:
            yield (kind, *struct.unpack_from("<II", contents, at))
        at += nbytes


def _text(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    return table[offset : end if end >= 0 else len(table)].decode("utf-8", "replace")
