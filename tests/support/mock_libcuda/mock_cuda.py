"""Builds the mock libcuda.so.1 and native/cuda as a plain library, and calls the driver table by ctypes."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[2] / "native"
_FLAGS = ["-std=c++20", "-O0", "-fPIC", "-shared", f"-I{NATIVE}", f"-I{NATIVE / 'include'}"]


@functools.cache
def build() -> Path:
    """A folder with mock/libcuda.so.1 and libtable.so, made by g++ once a process. Raises CalledProcessError."""
    folder = Path(tempfile.mkdtemp(prefix="mock-cuda-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "mock").mkdir()
    mock = [str(path) for path in sorted(HERE.glob("*.cpp"))]
    output = ["-Wl,-soname,libcuda.so.1", "-o", str(folder / "mock" / "libcuda.so.1")]
    commands = [["g++", *_FLAGS, "-fvisibility=hidden", *mock, *output, "-lpthread"]]
    sources = [str(path) for path in sorted((NATIVE / "cuda").glob("*.cpp"))]
    commands.append(["g++", *_FLAGS, *sources, "-o", str(folder / "libtable.so"), "-ldl", "-lpthread"])
    started = [subprocess.Popen(command) for command in commands]
    for process in started:
        if process.wait() != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)
    return folder


def start(code: str, environment: Mapping[str, str], libcuda: Path | None) -> str:
    """Run Python code with this module's names, libraries searched in `libcuda` (None: as ever); its output."""
    base = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES" or libcuda is None}
    base |= {"TABLE": str(build() / "libtable.so"), **environment}
    base["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), base.get("PYTHONPATH")]))
    if libcuda is not None:
        base["LD_LIBRARY_PATH"] = str(libcuda)
    command = [sys.executable, "-c", "from mock_cuda import *\n" + code]
    done = subprocess.run(command, env=base, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def run(code: str, libcuda: Path, **settings: str) -> str:
    """Output of Python code in a process whose libcuda is the one in that folder: the whole package over it."""
    base = {key: value for key, value in os.environ.items() if key not in ("CUDA_VISIBLE_DEVICES", "PYGPUKIT_BACKEND")}
    environment = base | {"LD_LIBRARY_PATH": str(libcuda), **settings}
    command = [sys.executable, "-c", "import numpy as np\nimport pygpukit as gp\n" + code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
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
    header = (NATIVE / "include" / "pygpukit" / "driver.h").read_text()
    types: dict[str, Any] = {
        "char": ctypes.c_char,
        "uint64_t": ctypes.c_uint64,
        "uint8_t": ctypes.c_uint8,
        "int32_t": ctypes.c_int32,
    }
    body = re.search(rf"typedef struct {structure} \{{(.*?)\}} {structure};", header, re.DOTALL)
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
    """The driver table: every function is a method that takes integers and ctypes objects and returns the status."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ["TABLE"])
        self.library.pk_cuda_driver.restype = ctypes.c_void_p
        self.library.pk_cuda_probe.restype = ctypes.c_char_p
        header = (NATIVE / "include" / "pygpukit" / "driver.h").read_text()
        names = re.findall(r"^  (?:pk_status |const char \*)\(\*(\w+)\)\(", header, re.MULTILINE)
        why = ctypes.c_char_p()
        address = self.library.pk_cuda_driver(ctypes.byref(why))
        self.why = (why.value or b"").decode()
        self.probe = (self.library.pk_cuda_probe() or b"").decode()
        if address is None:
            return
        version, size = struct.unpack("II", ctypes.string_at(address, 8))
        assert (version, size) == (8, 16 + 8 * len(names))
        self._functions = dict(
            zip(names, struct.unpack(f"{len(names)}Q", ctypes.string_at(address + 16, size - 16)), strict=True)
        )

    def __getattr__(self, name: str) -> Any:
        result = ctypes.c_char_p if name.startswith("error_") else ctypes.c_int32
        function = ctypes.CFUNCTYPE(result)(self._functions[name])

        def call(*arguments: Any) -> Any:
            return function(*(ctypes.c_int64(a) if isinstance(a, int) else a for a in arguments))

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

    def memory(self, nbytes: int) -> tuple[int, int]:
        """Reserved, created and mapped: (address, physical)."""
        address, physical = self.get("address_reserve", nbytes), self.get("physical_create", nbytes)
        self.ok("map", address, nbytes, physical)
        return address, physical


def cubin(kernels: Mapping[str, Sequence[int]]) -> bytes:
    """A minimal CUBIN: for each kernel its .nv.info section, with parameters of the given sizes in C layout."""
    names, contents = [b"", b".shstrtab"], [b"", b""]
    for name, sizes in kernels.items():
        info, offset = b"", 0
        for ordinal, size in enumerate(sizes):
            offset = -(-offset // size) * size
            info += struct.pack("<BBHIHHI", 4, 0x17, 12, 0, ordinal, offset, size << 18)
            offset += size
        names.append(b".nv.info." + name.encode())
        contents.append(info)
    contents[1] = b"\0".join(names) + b"\0"
    body, headers = b"", b""
    for section, content in zip(names, contents, strict=True):
        at = contents[1].index(section + b"\0") if section else 0
        kind = 0 if not section else 3 if section == b".shstrtab" else 0x70000000
        headers += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(body), len(content), 0, 0, 1, 0)
        body += content
    header = b"\x7fELF\x02\x01\x01\x33" + bytes(8)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0x5A055A, 64, 0, 0, 64, len(names), 1)
    return header + body + headers
