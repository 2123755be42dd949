"""The worker's functions for isolated kernels: take a compiled unit, launch a kernel of it, report what came of it."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pygpukit._core import native
from pygpukit.core.errors import DriverError, GPUError, KernelArgumentError
from pygpukit.jit.image import from_bytes
from pygpukit.jit.kernel import JITKernel
from pygpukit.jit.unit import Unit

_units: dict[str, Unit] = {}
_kernels: dict[tuple[str, str], JITKernel] = {}


def load(unit: str, source: str, arguments: dict[str, Any], image: str, dropped: list[str]) -> None:
    """Take a unit under a name: source, what it was compiled with, the image (base64). Forget the `dropped` ones."""
    for key in [key for key in _kernels if key[0] in dropped]:
        del _kernels[key]
    for name in dropped:
        _units.pop(name, None)
    made = Unit(source, **arguments)
    made.image = from_bytes(base64.b64decode(image), b"", "memory", {})  # in the place of a compile
    _units[unit] = made


def launch(call: dict[str, Any], *values: Any) -> dict[str, Any]:
    """Launch and wait. Returns what the kernel printed, and the error with its fields when it failed.

    call: unit, kernel, grid, block, shared_bytes, cooperative, cluster, and names: those of the last values. A value
    that JSON does not carry is {"bytes": base64} or {"complex": [real, imaginary]}.
    """
    arguments = [_value(value) for value in values]
    first_named = len(arguments) - len(call["names"])
    named = dict(zip(call["names"], arguments[first_named:], strict=True))
    printed: list[str] = []
    error = None
    with _captured(printed):
        try:
            bound = _bound(call)
            bound(*arguments[:first_named], **named)
            native.synchronize()
        except GPUError as fault:
            error = _described(fault)
    return {"printed": "".join(printed), "error": error}


def _bound(call: dict[str, Any]) -> native.BoundKernel:
    key = call["unit"], call["kernel"]
    kernel = _kernels.get(key)
    if kernel is None:
        unit = _units[call["unit"]]
        kernel = _kernels[key] = JITKernel(unit.source, call["kernel"], unit=unit)
    settings = {name: call[name] for name in ("shared_bytes", "cooperative", "cluster")}
    return kernel.launcher(call["grid"], call["block"], **settings)


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return base64.b64decode(value["bytes"]) if "bytes" in value else complex(*value["complex"])


def _described(error: GPUError) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, DriverError):
        found |= {"code": error.code, "name": error.name}
    if isinstance(error, KernelArgumentError):
        found["parameter"] = error.parameter
    if hasattr(error, "findings"):
        found["findings"] = json.loads(json.dumps([asdict(finding) for finding in error.findings]))  # no tuples
    return found


@contextlib.contextmanager
def _captured(printed: list[str]) -> Iterator[None]:
    """What kernels print meanwhile; on cuda the driver writes to the process's standard output."""
    if native.backend_name() == "sim":
        try:
            yield
        finally:
            printed.append(native.take_device_output())
        return
    sys.stdout.flush()
    output, file = os.dup(1), os.memfd_create("pygpukit-printf")
    os.dup2(file, 1)
    try:
        yield
    finally:
        with contextlib.suppress(GPUError):  # of a context that a fault destroyed
            native.take_device_output()  # has the driver write what it holds back
        ctypes.CDLL(None).fflush(None)
        os.dup2(output, 1)
        with os.fdopen(file, "rb") as written:
            written.seek(0)
            printed.append(written.read().decode(errors="replace"))
        os.close(output)
