"""The worker's functions for isolated kernels: take a compiled unit, launch a kernel of it, report what came of it."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pygpukit._core import native
from pygpukit.core import faults
from pygpukit.core.errors import DriverError, GPUError, KernelArgumentError
from pygpukit.core.output import held
from pygpukit.jit.cache.image import from_bytes
from pygpukit.jit.launch.assumptions import Launcher
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jit.launch.unit import Unit
from pygpukit.profiling.bench import bench
from pygpukit.worker.printed import captured

_units: dict[str, Unit] = {}
_kernels: dict[tuple[str, str], JITKernel] = {}


def load(unit: str, source: str, arguments: dict[str, Any], image: str, dropped: list[str]) -> None:
    """Take a unit under a name: source, what it was compiled with, the image (base64). Forget the `dropped` ones."""
    for key in [key for key in _kernels if key[0] in dropped]:
        del _kernels[key]
    for name in dropped:
        _units.pop(name, None)
    compiled = Unit(source, **arguments)
    compiled.image = from_bytes(base64.b64decode(image), b"", "memory", {})  # in the place of a compile
    _units[unit] = compiled


def launch(call: dict[str, Any], *values: Any) -> dict[str, Any]:
    """Launch and wait. Returns what the kernel printed, and the error with its fields when it failed.

    call: unit, kernel, grid, block, shared_bytes, cooperative, cluster, and names: those of the last values. A value
    that JSON does not carry is {"bytes": base64} or {"complex": [real, imaginary]}.
    """
    return _run(call, values, lambda once: once())


def measure(call: dict[str, Any], *values: Any) -> dict[str, Any]:
    """bench() of the launch. Returns as launch(), with the BenchResult's fields as `bench`.

    call: as for launch(), with `bench`: what bench() takes beside the launch.
    """

    def measured(once: Callable[[], None]) -> dict[str, Any]:
        return {"bench": _plain(asdict(bench(once, **call["bench"])))}

    return _run(call, values, measured)


def _run(
    call: dict[str, Any], values: tuple[Any, ...], use: Callable[[Callable[[], None]], dict[str, Any] | None]
) -> dict[str, Any]:
    """The result that `use` makes of a function that launches once, what the kernel printed, and the error."""
    arguments = [_value(value) for value in values]
    first_named = len(arguments) - len(call["names"])
    named = dict(zip(call["names"], arguments[first_named:], strict=True))
    printed: list[str] = []
    result = error = None
    with captured(printed):
        try:
            bound = _bound(call)
            result = use(lambda: bound(*arguments[:first_named], **named))
            native.synchronize()
        except GPUError as fault:
            error = _described(fault)
            _settle()
    return {"printed": "".join(printed), "error": error, **(result or {})}


def count(call: dict[str, Any], *values: Any) -> dict[str, Any]:
    """Launch a counting kernel and wait. Returns what native.sim_take_traffic() tells, and the error as launch() does.

    call: as for launch(), with `variables` in the place of names: the last values are what these hold.
    """
    arguments = [_value(value) for value in values]
    first_variable = len(arguments) - len(call["variables"])
    try:
        bound = _bound(call)
        variables = _units[call["unit"]].globals
        for name, value in zip(call["variables"], arguments[first_variable:], strict=True):
            with contextlib.suppress(GPUError):  # this compiler left it out: nothing uses it
                native.copy(variables[name].array(), value)
        native.sim_take_traffic()
        with held():
            bound(*arguments[:first_variable])
            native.synchronize()
    except GPUError as fault:
        _settle()
        return {"traffic": None, "error": _described(fault)}
    finally:
        native.take_device_output()  # the kernel's own launch prints it
    return {"traffic": list(native.sim_take_traffic()), "error": None}


def _settle() -> None:
    """Wait for launches that were queued behind one that faulted, and may fault as it did."""
    while faults.lost() is None:
        with contextlib.suppress(GPUError):
            native.synchronize()
            return


def _bound(call: dict[str, Any]) -> Launcher:
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
    fields: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, DriverError):
        fields |= {"code": error.code, "name": error.name}
    if isinstance(error, KernelArgumentError):
        fields["parameter"] = error.parameter
    if hasattr(error, "findings"):
        fields["findings"] = _plain([asdict(finding) for finding in error.findings])
    return fields


def _plain(fields: Any) -> Any:
    """As JSON carries it: lists in the place of tuples."""
    return json.loads(json.dumps(fields))
