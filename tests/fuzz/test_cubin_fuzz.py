"""The CUBIN reader on damaged files: it ends, and raises nothing but ValueError."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mock_cuda import cubin

from pygpukit.jit.inspect.cubin import read_cubin

MINIMAL = cubin({"scale": [8, 4, 4], "fill": [8]})


def harmless(image: bytes) -> None:
    try:
        found = read_cubin(image)
    except ValueError as error:
        assert "CUBIN" in str(error)
        return
    assert all(one.registers >= 0 and one.shared_bytes >= 0 for one in found.kernels.values())
    assert all(nbytes >= 0 for nbytes in found.variables.values())


def with_symbols(image: bytes, count: int, names_link: int) -> bytes:
    """The image with a last section that is a symbol table of `count` random-looking entries."""
    table, sections = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    body = b"".join(struct.pack("<IBBHQQ", at * 7, 0x12 - at % 2, 0x10, 1, 0, 1 << at) for at in range(count))
    at = table + (sections - 1) * 64
    header = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, len(image), len(body), names_link, 0, 1, 24)
    return image[:at] + header + image[at + 64 :] + body


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(MINIMAL) - 1), st.integers(0, 255)), max_size=8))
@example([])
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    image = bytearray(MINIMAL)
    for at, value in changes:
        image[at] = value
    harmless(bytes(image))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(MINIMAL)), st.binary(max_size=64))
def test_cut_off_and_continued_files(length: int, tail: bytes) -> None:
    harmless(MINIMAL[:length] + tail)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 40), st.integers(0, 5), st.binary(max_size=200))
def test_symbols_of_any_kind(count: int, link: int, records: bytes) -> None:
    harmless(with_symbols(MINIMAL, count, link) + records)


@pytest.mark.parametrize("at", [40, 58, 60, 62])
def test_header_fields_at_their_limits(at: int) -> None:
    image = bytearray(MINIMAL)
    width = 8 if at == 40 else 2
    image[at : at + width] = b"\xff" * width
    harmless(bytes(image))


def test_a_symbol_table_of_broken_entries_is_refused() -> None:
    image = bytearray(with_symbols(MINIMAL, 3, 1))
    sections = struct.unpack_from("<H", image, 60)[0]
    at = struct.unpack_from("<Q", image, 40)[0] + (sections - 1) * 64
    struct.pack_into("<Q", image, at + 32, 3 * 24 - 1)
    with pytest.raises(ValueError, match="damaged"):
        read_cubin(bytes(image))
