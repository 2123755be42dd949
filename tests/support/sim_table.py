"""The simulated device's driver table by ctypes: native/sim without the pool and the launch function in front."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
HEADER = (REPOSITORY / "native" / "include" / "pygpukit" / "driver.h").read_text()
GRANULE = 2 << 20

NOT_READY, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, INVALID_IMAGE, INVALID_HANDLE = 600, 1, 2, 3, 200, 400
NOT_FOUND, ILLEGAL_ADDRESS, OUT_OF_RESOURCES, TIMEOUT, ASSERT, FAILED, NOT_SUPPORTED = 500, 700, 701, 702, 710, 719, 801
CAPTURE_UNSUPPORTED = 900


def start(code: str, **environment: str) -> str:
    """Run Python code with this module's names in a process of its own; its output. Fails with the process."""
    base = {**os.environ, "PYGPUKIT_BACKEND": "sim", "PYTHONPATH": str(HERE), **environment}
    command = [sys.executable, "-c", "from sim_table import *\n" + code]
    done = subprocess.run(command, env=base, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


class Launch(ctypes.Structure):
    """pk_launch."""

    _fields_ = [
        ("function", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cluster", ctypes.c_uint32 * 3),
        ("reserved", ctypes.c_uint32),
        ("params", ctypes.c_void_p),
    ]


def _fields(structure: str) -> list[tuple[str, Any]]:
    """A plain structure of driver.h as ctypes fields."""
    types: dict[str, Any] = {
        "char": ctypes.c_char,
        "uint64_t": ctypes.c_uint64,
        "uint8_t": ctypes.c_uint8,
        "int32_t": ctypes.c_int32,
    }
    body = re.search(rf"typedef struct {structure} \{{(.*?)\}} {structure};", HEADER, re.DOTALL)
    assert body is not None
    found = re.findall(r"^\s*(\w+) (\w+)(?:\[(\d+)\])?;", body[1], re.MULTILINE)
    return [(name, types[kind] * int(count) if count else types[kind]) for kind, name, count in found]


class DeviceInfo(ctypes.Structure):
    """pk_device_info."""

    _fields_ = _fields("pk_device_info")


class FunctionInfo(ctypes.Structure):
    """pk_function_info."""

    _fields_ = _fields("pk_function_info")


class Table:
    """Every function of the table is a method that takes integers and ctypes objects and returns the status."""

    def __init__(self) -> None:
        from pygpukit._core import native

        native.open_backend("sim")
        address = native.driver_table()
        names = re.findall(r"^  (?:pk_status |const char \*)\(\*(\w+)\)\(", HEADER, re.MULTILINE)
        version, size = struct.unpack("II", ctypes.string_at(address, 8))
        assert (version, size) == (8, 16 + 8 * len(names))
        self._functions = dict(
            zip(names, struct.unpack(f"{len(names)}Q", ctypes.string_at(address + 16, size - 16)), strict=True)
        )
        self.ok("device_use", 0)

    def __getattr__(self, name: str) -> Any:
        result = ctypes.c_char_p if name.startswith("error_") else ctypes.c_int32
        function = ctypes.CFUNCTYPE(result)(self._functions[name])

        def call(*arguments: Any) -> Any:
            return function(*(ctypes.c_int64(a) if isinstance(a, int) else a for a in arguments))

        setattr(self, name, call)
        return call

    def text(self, status: int) -> str:
        return str(self.error_text(status).decode())

    def get(self, name: str, *arguments: Any) -> int:
        """Call a function whose last parameter is a 64-bit output; that value. Asserts success."""
        value = ctypes.c_uint64()
        status = getattr(self, name)(*arguments, ctypes.byref(value))
        assert status == 0, (name, status, self.text(status))
        return value.value

    def ok(self, name: str, *arguments: Any) -> None:
        status = getattr(self, name)(*arguments)
        assert status == 0, (name, status, self.text(status))

    def fails(self, expected: int, name: str, *arguments: Any) -> str:
        """Asserts the status; its sentence."""
        status = getattr(self, name)(*arguments)
        assert status == expected, (name, status, self.text(status))
        return self.text(status)

    def memory(self, size: int, device_bytes: int | None = None) -> tuple[int, int]:
        """(address, physical) of mapped memory, rounded up to granules."""
        size = -(-size // GRANULE) * GRANULE
        address = self.get("address_reserve", device_bytes or size)
        physical = self.get("physical_create", size)
        self.ok("map", address, size, physical)
        return address, physical

    def array(self, values: np.ndarray) -> Array:
        address, physical = self.memory(max(values.nbytes, 1))
        array = Array(self, address, physical, np.ascontiguousarray(values))
        array.write(values)
        return array

    def wait(self, stream: int = 0) -> None:
        """Polls as the package does, so that Ctrl-C gets through."""
        while (status := self.stream_query(stream)) == NOT_READY:
            time.sleep(0.0002)
        assert status == 0, (status, self.text(status))


class Array:
    """A NumPy array's copy on the device."""

    def __init__(self, table: Table, address: int, physical: int, like: np.ndarray) -> None:
        self.table, self.address, self.physical, self.like = table, address, physical, like

    def write(self, values: np.ndarray) -> None:
        values = np.ascontiguousarray(values, self.like.dtype)
        self.table.ok("copy_h2d", self.address, ctypes.c_void_p(values.ctypes.data), values.nbytes, 0)
        self.table.ok("stream_wait", 0)

    def read(self) -> np.ndarray:
        values = np.empty_like(self.like)
        self.table.ok("copy_d2h", ctypes.c_void_p(values.ctypes.data), self.address, values.nbytes, 0)
        self.table.ok("stream_wait", 0)
        return values


class Module:
    """A source compiled and loaded."""

    def __init__(
        self,
        table: Table,
        source: str,
        expressions: Sequence[str] = (),
        name: str = "cell",
        options: Sequence[str] = (),
    ) -> None:
        from pygpukit.jit.compile import simulator

        self.table = table
        self.image = simulator.compile(source, name=name, name_expressions=expressions, options=options)
        self.handle = table.get("module_load", self.image.image, len(self.image.image))
        self._functions: dict[str, int] = {}

    def function(self, name: str) -> int:
        if name not in self._functions:
            self._functions[name] = self.table.get("module_function", self.handle, name.encode())
        return self._functions[name]

    def launch(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Any,
        shared: int = 0,
        stream: int = 0,
        flags: int = 0,
        cluster: int | Sequence[int] = 1,
    ) -> int:
        """The launch's status. Arguments: Array, ctypes values, int and float (32 bits), bytes (a structure)."""
        values = [_argument(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
        request = Launch(
            self.function(name), stream, (ctypes.c_uint32 * 3)(*_triple(grid)), (ctypes.c_uint32 * 3)(*_triple(block)),
            shared, flags, (ctypes.c_uint32 * 3)(*_triple(cluster)), 0, ctypes.addressof(pointers),
        )  # fmt: skip
        return int(self.table.launch(ctypes.byref(request)))

    def run(
        self, name: str, grid: int | Sequence[int], block: int | Sequence[int], *arguments: Any, **more: Any
    ) -> None:
        """Launch and wait; asserts success."""
        status = self.launch(name, grid, block, *arguments, **more)
        assert status == 0, (status, self.table.text(status))
        status = self.table.stream_wait(more.get("stream", 0))
        assert status == 0, (status, self.table.text(status))

    def fault(
        self, name: str, grid: int | Sequence[int], block: int | Sequence[int], *arguments: Any, **more: Any
    ) -> tuple[int, str]:
        """Launch, wait, and forget the fault: (status, sentence)."""
        from pygpukit._core import native

        status = self.launch(name, grid, block, *arguments, **more)
        assert status == 0, (status, self.table.text(status))
        status = self.table.stream_wait(0)
        text = self.table.text(status)
        assert native.sim_clear_fault() == status
        return status, text


def _triple(extent: int | Sequence[int]) -> tuple[int, int, int]:
    given = (extent,) if isinstance(extent, int) else tuple(extent)
    return (*given, 1, 1)[:3]  # type: ignore[return-value]


def _argument(value: Any) -> Any:
    if isinstance(value, Array):
        return ctypes.c_uint64(value.address)
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    if isinstance(value, int):
        return ctypes.c_int32(value)
    if isinstance(value, float):
        return ctypes.c_float(value)
    if isinstance(value, bytes):
        return ctypes.create_string_buffer(value, len(value))
    return value
